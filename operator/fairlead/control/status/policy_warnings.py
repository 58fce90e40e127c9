"""Warnings in the status of a policy: what works but is probably not intended; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.control.decide.desired_affinity import PUBLISHES
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.publication_condition import publication_warnings
from fairlead.control.status.reasons import NOT_REVIEWED
from fairlead.control.status.shadow_status import shadow_warning
from fairlead.render.native_groups import FLAG
from fairlead.replica_state import PolicyState, WaitingGroups

Obj = Mapping[str, Any]
COUNTED: Final = frozenset(
    {
        "GroupsWaiting",
        "LateLabel",
        "PublicationMissed",
        "PublishedAffinityOutdated",
        "RejectedByThisPolicyOnly",
        "SampleMissed",
        "ShadowUnschedulable",
        "TooSlowForSome",
    }
)
"""Warnings that come and go with pods: they count as counters."""
_TEXT_MAX: Final = 1024


def warnings_of(
    policy: Obj,
    result: ReconcileResult,
    states: Sequence[PolicyState],
    *,
    lint: Iterable[tuple[str, str, str]],
    unreviewed_by: int | None,
    shadow: Obj | None,
) -> Iterator[dict[str, Any]]:
    """Yield the warnings of a policy: of lint, of its replicas, and of what its rules in shadow would have changed.

    `unreviewed_by` is the port of the admission check if that did not review this generation.
    """
    by_reason: dict[str, list[str]] = {}
    for reason, sentence, accepted in lint:
        if accepted:
            continue
        by_reason.setdefault(reason, []).append(sentence)
    conflicts = dict.fromkeys(text for one in states for text in one.conflicts)
    if conflicts:
        by_reason["Conflict"] = [*conflicts]
    for reason, sentences in sorted(by_reason.items()):
        yield {"reason": reason, "count": len(sentences), "message": "; ".join(sentences)[:_TEXT_MAX]}
    if unreviewed_by is not None:
        yield {
            "reason": NOT_REVIEWED,
            "count": 1,
            "message": f"generation {policy['metadata']['generation']} was stored without a review, because the "
            f"API server does not reach the admission check: let it reach port {unreviewed_by} of the "
            "operator's pods, or set the chart's ports.admission to a port that it reaches, or its hostNetwork: true; "
            "then apply the policy again",
        }
    decision = result.decision
    if decision is not None and decision.asked_nodes is not None and any(one.asks_all for one in states):
        reason, message = decision.asked_nodes
        yield {"reason": reason, "count": 1, "message": message}
    if _has_gang(policy) and (which := _which_places_native_groups(result)):
        yield {
            "reason": "NativeGroups",
            "count": 1,
            "message": f"pods with a PodGroup are left to the scheduler, which {which}: gang holds none of them, and "
            "preemption for such a group may evict members that gang holds. Give each kind of group a scheduler of its "
            "own",
        }
    if slow := dict.fromkeys(text for one in states for text in one.slow_for):
        yield {
            "reason": "TooSlowForSome",
            "count": sum(bool(one.slow_for) for one in states),
            "message": f"it missed the deadline twice in a minute: {'; '.join(slow)}, for 5 minutes; "
            "its rules are too expensive for these pods",
        }
    if refused := max((one.rejected_pods for one in states), default=0):
        pods, them = ("pod is", "it") if refused == 1 else ("pods are", "them")
        yield {
            "reason": "RejectedByThisPolicyOnly",
            "count": refused,
            "message": f"{pods} pending because this policy, and no other, keeps {them} from every node (counted once "
            "a minute); autoscalers do not see that",
        }
    if waiting := max((one.waiting_groups for one in states if one.waiting_groups), key=_waiting, default=None):
        yield {"reason": "GroupsWaiting", "count": _waiting(waiting), "message": _groups_waiting(waiting)}
    if missed := sum(one.missed_samples for one in states):
        yield {
            "reason": "SampleMissed",
            "count": missed,
            "message": "calls in which it rejected every node of the sample although another node would have passed: "
            "raise the scheduler's nodeSample, or write the rule as nodeAffinity",
        }
    if policy["spec"].get("publish") == PUBLISHES:
        yield from publication_warnings(states)
    yield from shadow_warning(shadow)


def _waiting(groups: WaitingGroups) -> int:
    return groups.complete + groups.incomplete


def _groups_waiting(groups: WaitingGroups) -> str:
    turn = "its turn" if groups.complete == 1 else "their turn"
    parts = [f"{groups.incomplete} for members"] * (groups.incomplete > 0)
    parts += [f"{groups.complete} for room or for {turn}"] * (groups.complete > 0)
    return (
        f"groups that have waited for 30 s or longer and have not started: {', '.join(parts)}; for the longest, "
        f"{groups.longest}: `fairlead groups` says what each waits for"
    )


def _has_gang(policy: Obj) -> bool:
    return bool((policy["spec"].get("binding") or {}).get("gang"))


def _which_places_native_groups(result: ReconcileResult) -> str:
    """Return that the scheduler places Kubernetes' own groups, or that it may, in words after "which"; "" if not."""
    plan = None if result.decision is None else result.decision.plan
    if plan is None or not (plan.groups.is_on or plan.groups.may_be_on):
        return ""
    places = "places Kubernetes' own groups"
    return places if plan.groups.is_on else f"{places} if you run it with {FLAG}"
