"""Publication of a policy in its status: the condition Published, and what is published. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.api.mode import Mode
from fairlead.control.decide.desired_affinity import PUBLISHES
from fairlead.control.status.conditions import ConditionValue
from fairlead.policy.affinity.publication_text import guard_text, term_text
from fairlead.replica_state import PolicyState, PublicationGaps, PublicationState

_TEXT_MAX: Final = 1024
_LEFT_OUT_MAX: Final = 32
_NO_GAPS: Final = PublicationGaps()


def publication_condition(
    spec: Mapping[str, Any], mode: Mode, states: Sequence[PolicyState], not_installed: str | None
) -> ConditionValue | None:
    """Return whether a policy's node affinity gets to pods; None for a policy that does not publish.

    `not_installed` is why nothing is added to pods, "" if it is, and None while that is not known.
    """
    if spec.get("publish") != PUBLISHES:
        return None
    if not_installed:
        return ConditionValue("False", "NotInstalled", not_installed)
    if mode == "Disabled":
        return ConditionValue("False", "NothingToPublish", "it is disabled")
    if mode == "Shadow":
        return ConditionValue("False", "NothingToPublish", "it is in shadow")
    publication = _publication(states)
    if publication is None or not_installed is None:
        return ConditionValue("Unknown", "Pending", "what it publishes is being computed")
    if publication.unknown_match:
        what = "labels cannot say which pods it matches, and other pods must not get its affinity"
        return ConditionValue("False", "MatchNotPublishable", f"{what}: {publication.unknown_match}")
    left_out = _left_out(publication)
    if publication.policy is None:
        why = f"labels of nodes cannot say what its filters ask: {left_out}" if left_out else _without_filters(states)
        return ConditionValue("False", "NothingToPublish", why)
    if publication.left_out:
        return ConditionValue("True", "Wider", f"it also selects nodes that do not pass: {left_out}")
    return ConditionValue("True", "Exact", "it selects exactly the nodes that pass its filters")


def _without_filters(states: Sequence[PolicyState]) -> str:
    modes = {rule.mode for one in states for rule in one.rules if rule.kind == "Filter"}
    return "all its filters are in shadow" if modes == {"Shadow"} else "it has no filters"


def publication_status(states: Sequence[PolicyState]) -> Mapping[str, Any] | None:
    """Return what the serving generation publishes; None if it publishes nothing."""
    publication = _publication(states)
    if publication is None or (publication.policy is None and not publication.left_out):
        return None
    found: Any = publication.policy or {}
    pods = " and ".join(map(guard_text, found.get("when", ())))
    terms = [
        f"{term_text(one)}{f', for pods with {pods}' if pods else ''}"[:_TEXT_MAX] for one in found.get("terms", ())
    ]
    left_out = [{"rule": rule, "reason": why[:_TEXT_MAX]} for rule, why in publication.left_out[:_LEFT_OUT_MAX]]
    generation = {"generation": found["generation"]} if found else {}
    return {**generation, **({"terms": terms} if terms else {}), **({"leftOut": left_out} if left_out else {})}


def publication_warnings(states: Sequence[PolicyState]) -> Iterator[dict[str, Any]]:
    """Yield the warnings of a policy about pods and nodes that its publication does not reach.

    Every replica sees all pods and nodes, so of several the one that saw most is right.
    """
    gaps = [one.gaps for one in states if one.gaps is not None]
    outdated = max(gaps, key=lambda one: one.outdated, default=_NO_GAPS)
    if outdated.outdated:
        names = _named(outdated.outdated_pods, outdated.outdated)
        message = f"pending with node affinity that was published before an edit, and cannot be changed: {names}"
        yield _counted("PublishedAffinityOutdated", outdated.outdated, f"{message}; create them again")
    missed = max(gaps, key=lambda one: one.missed, default=_NO_GAPS)
    if missed.missed:
        names = _named(missed.missed_pods, missed.missed)
        message = f"created without the node affinity that is published for them: {names}"
        why = "an API server that has just started leaves it out for up to half a minute; create pending ones again"
        yield _counted("PublicationMissed", missed.missed, f"{message}; {why}")
    late = max(gaps, key=lambda one: one.late_labels, default=_NO_GAPS)
    if late.late_labels:
        names = _named(late.late, late.late_labels)
        fix = "put them into the templates of nodes, or their prefixes into publishedAffinity.lateLabels"
        message = f"labels that it publishes came late, so autoscalers may not expect them on a new node: {names}"
        yield _counted("LateLabel", late.late_labels, f"{message}; {fix}")


def _counted(reason: str, count: int, message: str) -> dict[str, Any]:
    return {"reason": reason, "count": count, "message": message[:_TEXT_MAX]}


def _named(names: Sequence[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _publication(states: Sequence[PolicyState]) -> PublicationState | None:
    """Return what all replicas that have answered publish; None if they do not say the same, or nothing yet."""
    found = [one.publication for one in states]
    return found[0] if found and all(one == found[0] for one in found) else None


def _left_out(publication: PublicationState) -> str:
    return "; ".join(f"{rule}: {why}" for rule, why in publication.left_out)
