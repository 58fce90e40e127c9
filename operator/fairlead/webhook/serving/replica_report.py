"""Report of this replica to the leader, from the state of its parts. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import all_in_shadow, rules_in_shadow
from fairlead.policy.compile.policy_conflicts import Conflict, conflicts, layout_conflicts
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.replica_state import PolicyState, ReplicaState, RuleState
from fairlead.webhook.extender.circuit_breaker import OpenCircuit, generation_of
from fairlead.webhook.serving.policy_status import PolicyStatus
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals

_MESSAGE_MAX: Final = 512


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """Inputs of the report."""

    process: str = ""
    states: Mapping[str, PolicyStatus]
    """Status of each policy."""
    serving: PolicySet | None
    """The serving policy set; None before there is one."""
    rule_errors: RuleErrorTotals
    open_circuits: Collection[OpenCircuit] = ()
    conflicts: Mapping[Conflict, int] = field(default_factory=dict)
    """Pods affected by each annotation conflict."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Pods that a policy alone leaves without a node."""
    missed: Mapping[str, int] = field(default_factory=dict)
    """Samples that it rejected completely although another node would have passed."""
    refused_connections: Mapping[str, str] = field(default_factory=dict)
    authorities: str = ""
    issuer: str = ""
    missing_permissions: str = ""
    has_rejected_pods: bool = False
    schedulable_again: bool = False
    reviewed: Callable[[str], int] = lambda _uid: 0
    """Returns the newest reviewed generation of a policy, by its UID."""
    reviews: bool = False


def report(inputs: ReportInputs) -> ReplicaState:
    """Return the report."""
    serving = inputs.serving.policies if inputs.serving is not None else ()
    compiled = {one.name: one for one in serving}
    colliding = _colliding(inputs.serving, inputs.conflicts) if inputs.serving is not None else {}
    return ReplicaState(
        process=inputs.process,
        policy_set=inputs.serving.generation if inputs.serving is not None else "",
        policies={
            name: _policy(inputs, state, compiled.get(name), colliding.get(name, ()))
            for name, state in inputs.states.items()
        },
        authorities=inputs.authorities,
        issuer=inputs.issuer,
        refused_connections=dict(inputs.refused_connections),
        missing_permission=inputs.missing_permissions,
        has_rejected_pods=inputs.has_rejected_pods,
        schedulable_again=inputs.schedulable_again,
        reviews=inputs.reviews,
    )


def _policy(
    inputs: ReportInputs, state: PolicyStatus, policy: CompiledPolicy | None, colliding: Iterable[str]
) -> PolicyState:
    minimal = PolicyState(
        uid=state.uid,
        generation=state.generation,
        reason=state.reason,
        message=state.message,
        reviewed=inputs.reviewed(state.uid),
    )
    if policy is None or policy.uid != minimal.uid:  # its first generation is not serving yet
        return minimal
    filters = policy.filters or policy.protections
    return PolicyState(
        uid=minimal.uid,
        generation=minimal.generation,
        serving="" if policy.placeholder else policy.generation,
        reason=minimal.reason,
        message=minimal.message,
        slow=any(slow.scope == "all" for slow in inputs.open_circuits if slow.policy == generation_of(policy)),
        slow_for=tuple(
            str(slow) for slow in inputs.open_circuits if slow.policy == generation_of(policy) and slow.scope != "all"
        ),
        scheduler=policy.scheduler_name,
        mode=policy.mode,
        fails=policy.enforced and policy.rejects_on_failure and not all_in_shadow(policy),
        ignores=policy.enforced and not policy.rejects_on_failure and bool(filters),
        scores=policy.enforced and bool(policy.scores),
        binds=policy.enforced and policy.binds,
        hold_s=policy.hold_s if policy.enforced else 0,
        asks_all=policy.enforced and bool(policy.domain_rules),
        rules=tuple(_rules(inputs.rule_errors, policy)),
        conflicts=tuple(colliding),
        rejected_pods=inputs.refused.get(policy.name, 0),
        missed_samples=inputs.missed.get(policy.name, 0),
        reviewed=minimal.reviewed,
    )


def _rules(errors: RuleErrorTotals, policy: CompiledPolicy) -> Iterator[RuleState]:
    in_shadow = rules_in_shadow(policy)
    for rule in policy.reports:
        failed = errors.last_error(policy.name, rule.name)
        yield RuleState(
            kind=rule.kind,
            name=rule.name,
            mode="Shadow" if (rule.kind, rule.name) in in_shadow else "Enforce",
            uses=rule.uses,
            evaluation=rule.evaluation,
            errors=failed[0].count if failed else 0,
            last_error=failed[0].last_message[:_MESSAGE_MAX] if failed else "",
            last_error_at=failed[1] if failed else "",
        )


def _colliding(serving: PolicySet, happened: Mapping[Conflict, int]) -> Mapping[str, list[str]]:
    """Return the conflicts of each policy as text, from its point of view: annotations, devices and groups."""
    found: dict[str, list[str]] = {}
    for each in conflicts(serving.policies):
        pods = happened.get(each, 0)
        so_far = f" ({pods} pods so far)" if pods else ""
        found.setdefault(each.loser, []).append(
            f"{each.key} is also written by {each.winner}, which comes first; this policy's value is left out{so_far}"
        )
        found.setdefault(each.winner, []).append(
            f"{each.key} is also written by {each.loser}, which comes later; its value is left out{so_far}"
        )
    for layout in layout_conflicts(serving.policies):
        for one, other in ((layout.loser, layout.winner), (layout.winner, layout.loser)):
            found.setdefault(one, []).append(
                f"{other} gives {layout.resource} another layout of devices; both grant from the same devices, so the"
                " layouts must be equal"
            )
    for gangs in serving.gang_conflicts:
        found.setdefault(gangs.loser, []).append(
            f"{gangs.winner} may give the same pods a group, and comes first: this policy's gang counts for the others"
        )
        found.setdefault(gangs.winner, []).append(
            f"{gangs.loser} may give the same pods a group, and comes later: its gang counts for the others"
        )
    return found
