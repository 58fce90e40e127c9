"""Status of a policy, from the states of the replicas and the result of reconciling its scheduler; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, cast, get_args

from fairlead.api.mode import MODES, Mode, mode_of
from fairlead.api.names import scheduler_of
from fairlead.api.status import Evaluation
from fairlead.control.decide.desired import edit_id
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.conditions import ConditionInputs, Reason, ReplicaSummary, conditions, serving_generation
from fairlead.control.status.data_condition import data_condition, data_status, measured_entries, without_ages
from fairlead.control.status.policy_warnings import COUNTED, warnings_of
from fairlead.control.status.publication_condition import publication_condition, publication_status
from fairlead.control.status.shadow_status import shadow_status, without_counts
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates, RuleState

Obj = Mapping[str, Any]
COUNTERS_S: Final = 60.0
"""Minimum time between two writes in which only counters changed."""
AGES_S: Final = 300.0
"""Minimum time between two writes in which only ages of measured values changed, as they do after each poll."""
_TEXT_MAX: Final = 1024
_EVALUATIONS: Final = get_args(Evaluation)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInputs:
    """Inputs of a status."""

    policy: Obj
    states: ReplicaStates
    result: ReconcileResult
    missing_permissions: Sequence[str] = ()
    """Permissions that are missing for anything else than the reconcile."""
    paused: bool
    crd_outdated: str = ""
    """Fields that it has lost because the CRD is older than the operator."""
    invalid: str = ""
    warnings: Sequence[tuple[str, str, str]] = ()
    """Reasons and messages of lint."""
    not_installed: str | None = None
    """Reason that node affinity which it publishes gets to no pod; "" if it does, None while that is not known."""
    unreviewed_by: int | None = None
    """Port of the admission check, which did not review this generation; None if it did, or if that is unknown."""


def build_status(inputs: StatusInputs, now: datetime) -> dict[str, Any]:
    """Return the status."""
    policy, decision = inputs.policy, inputs.result.decision
    before, uid = policy.get("status", {}), policy["metadata"]["uid"]
    generation, name = policy["metadata"]["generation"], policy["metadata"]["name"]
    on_replicas = {pod: _of(one, name, uid) for pod, one in inputs.states.items()}
    missing = {pod: one.missing_permission for pod, one in inputs.states.items() if isinstance(one, ReplicaState)}
    found = [one for one in on_replicas.values() if isinstance(one, PolicyState)]
    data = {pod: one.data for pod, one in on_replicas.items() if isinstance(one, PolicyState)}
    # A mode that this version cannot read changes nothing, so the replicas know what is applied.
    served = {one.mode or "Enforce" for one in found}
    strongest: Mode = next((one for one in MODES if one in served), "Disabled")
    mode = mode_of(policy) or strongest
    current = [one for one in found if one.generation == str(generation)]
    known = ConditionInputs(
        generation=generation,
        mode=mode,
        refused=inputs.result.refused,
        crd_outdated=inputs.crd_outdated,
        invalid=inputs.invalid,
        compiled=cast("Reason", current[0].reason) if current else None,
        fault=current[0].message if current else "",
        replicas=[_replica(pod, one, missing.get(pod, "")) for pod, one in on_replicas.items()],
        phase=decision.phase if decision is not None and edit_id(policy) in inputs.result.policy_edits else None,
        rollout_message=decision.message if decision is not None else "",
        missing_permission=inputs.result.missing_permission,
        failure=inputs.result.failed,
        missing_permissions=inputs.missing_permissions,
        paused=inputs.paused,
        data=data_condition(measured_entries(policy["spec"]), data, mode),
        published=publication_condition(policy["spec"], mode, found, inputs.not_installed),
        unreadable=sorted({fault for one in found for fault in one.unreadable}),
    )
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    shadow = shadow_status(policy, inputs.states, time)
    made: dict[str, Any] = {
        "observedGeneration": generation,
        "conditions": conditions(known, before.get("conditions", ()), time),
        "scheduler": {"name": scheduler_of(policy), **_of_plan(inputs)},
        "rules": [*_rules(found)],
        "warnings": [
            *warnings_of(
                policy,
                inputs.result,
                found,
                lint=inputs.warnings,
                unreviewed_by=inputs.unreviewed_by,
                shadow=shadow,
            )
        ],
    }
    if (serving := serving_generation(known)) is not None:
        made["servingGeneration"] = serving
    if accepted := [*_accepted(inputs)]:
        made["acceptedWarnings"] = accepted
    if measured := data_status(data, now):
        made["data"] = measured
    if published := publication_status(found):
        made["published"] = published
    if shadow is not None:
        made["shadow"] = shadow
    return made


def status_change(before: Obj, after: Obj) -> Literal["", "ages", "counters", "all"]:
    """Return what changed: "" if nothing, "ages" or "counters" if only those."""
    if before == after:
        return ""
    if _without_counters(before) != _without_counters(after):
        return "all"
    return "ages" if _without_ages(before) == _without_ages(after) else "counters"


def _of(answer: ReplicaState | str, name: str, uid: str) -> PolicyState | str:
    """Return the state of a policy on a replica, or why it is unknown."""
    if isinstance(answer, str):
        return answer
    one = answer.policies.get(name)
    return one if one is not None and one.uid == uid else PolicyState(uid=uid, generation="", reason="")


def _replica(pod: str, state: PolicyState | str, missing: str) -> ReplicaSummary:
    if isinstance(state, str):
        return ReplicaSummary(name=pod, silent=state)
    return ReplicaSummary(
        name=pod,
        serving=state.serving or None,
        mode=state.mode,
        slow=state.slow,
        missing=missing or state.missing_permission,
    )


def _of_plan(inputs: StatusInputs) -> dict[str, str]:
    decision = inputs.result.decision
    if decision is None or decision.plan is None:
        return {}
    groups = decision.plan.groups
    found = {
        "configHash": decision.plan.config_hash,
        "lastGoodConfigHash": decision.persisted.rollout.last_good,
        "groups": "Native" if groups.is_on else "Off",
        "groupsMessage": groups.message,
    }
    return {key: value for key, value in found.items() if value}


def _rules(states: Sequence[PolicyState]) -> Iterator[dict[str, Any]]:
    """Yield the rules, with errors added up over the replicas."""
    if not states:
        return
    others = [{(rule.kind, rule.name): rule for rule in one.rules} for one in states[1:]]
    for rule in states[0].rules:
        same = [rule, *(one[key] for one in others if (key := (rule.kind, rule.name)) in one)]
        made: dict[str, Any] = {"kind": rule.kind, "name": rule.name}
        if all(one.mode == "Shadow" for one in same):  # a replica that does not say so enforces it
            made["mode"] = "Shadow"
        if rule.uses:
            made["uses"] = [*rule.uses]
        if rule.evaluation in _EVALUATIONS:  # a replica of another version may have other words
            made["evaluation"] = rule.evaluation
        if count := sum(one.errors for one in same):
            last = max(same, key=_when)
            made["errors"] = {
                "count": count,
                "lastMessage": last.last_error[:_TEXT_MAX],
                "lastTime": last.last_error_at,
            }
        yield made


def _when(rule: RuleState) -> str:
    return rule.last_error_at


def _accepted(inputs: StatusInputs) -> Iterator[dict[str, Any]]:
    by_reason: dict[str, list[str]] = {}
    for reason, sentence, accepted in inputs.warnings:
        if accepted:
            by_reason.setdefault(reason, []).append(f"{accepted} ({sentence})")
    for reason, sentences in sorted(by_reason.items()):
        yield {"reason": reason, "count": len(sentences), "message": "; ".join(sentences)[:_TEXT_MAX]}


def _without_ages(what: Obj) -> Obj:
    return {**what, "data": without_ages(what.get("data", ()))}


def _without_counters(what: Obj) -> Obj:
    return {
        **what,
        "data": [one["name"] for one in what.get("data", ())],
        "conditions": [
            {**one, "message": ""} if one["type"] == "DataReady" else one for one in what.get("conditions", ())
        ],
        "rules": [{key: one[key] for key in one if key != "errors"} for one in what.get("rules", ())],
        "shadow": without_counts(what.get("shadow")),
        "warnings": sorted({one["reason"] for one in what.get("warnings", ())} - COUNTED),
    }
