"""What this replica says of itself to the one that leads: from what its parts know. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.annotations import Conflict, conflicts
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.replica_state import PolicyState, ReplicaState, RuleState
from fairlead.webhook.extender.circuit_breaker import OpenCircuit, version
from fairlead.webhook.serving.policy_status import PolicyStatus
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals

_MESSAGE_MAX: Final = 512
_NOBODY: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """What the parts know at this moment."""

    process: str = ""
    states: Mapping[str, PolicyStatus]
    """What became of the policies that were seen."""
    serving: PolicySet | None
    """None before there is one."""
    rule_errors: RuleErrorTotals
    open_circuits: Collection[OpenCircuit] = ()
    conflicts: Mapping[Conflict, int] = field(default_factory=dict)
    """The pods to which each happened."""
    refused: Mapping[str, int] = field(default_factory=lambda: _NOBODY)
    """Pods that a policy alone leaves without a node."""
    missed: Mapping[str, int] = field(default_factory=lambda: _NOBODY)
    """Samples that it refused as a whole although another node would have passed."""
    refused_connections: Mapping[str, str] = field(default_factory=dict)
    authorities: str = ""
    issuer: str = ""
    missing_permissions: str = ""
    schedulable_again: bool = False


def report(known: ReportInputs) -> ReplicaState:
    """All of it."""
    serving = known.serving.policies if known.serving is not None else ()
    compiled = {one.name: one for one in serving}
    colliding = _colliding(serving, known.conflicts)
    return ReplicaState(
        process=known.process,
        policy_set=known.serving.generation if known.serving is not None else "",
        policies={
            name: _policy(known, state, compiled.get(name), colliding.get(name, ()))
            for name, state in known.states.items()
        },
        authorities=known.authorities,
        issuer=known.issuer,
        turned_away=dict(known.refused_connections),
        missing=known.missing_permissions,
        freed=known.schedulable_again,
    )


def _policy(
    known: ReportInputs, state: PolicyStatus, one: CompiledPolicy | None, colliding: Iterable[str]
) -> PolicyState:
    seen = PolicyState(uid=state.uid, generation=state.generation, reason=state.reason, message=state.message)
    if one is None or one.uid != seen.uid:  # it is about to serve, or one that had its name is about to go
        return seen
    gates = one.filters or one.protections
    return PolicyState(
        uid=seen.uid,
        generation=seen.generation,
        serving="" if one.placeholder else one.generation,
        reason=seen.reason,
        message=seen.message,
        slow=any(slow.scope == "all" for slow in known.open_circuits if slow.policy == version(one)),
        slow_for=tuple(
            str(slow) for slow in known.open_circuits if slow.policy == version(one) and slow.scope != "all"
        ),
        scheduler=one.scheduler_name,
        fails=one.enforced and one.rejects_on_failure,
        ignores=one.enforced and not one.rejects_on_failure and bool(gates),
        scores=one.enforced and bool(one.scores),
        binds=one.enforced and bool(one.annotations),
        rules=tuple(_rules(known.rule_errors, one)),
        conflicts=tuple(colliding),
        refused_pods=known.refused.get(one.name, 0),
        missed_samples=known.missed.get(one.name, 0),
    )


def _rules(undecided: RuleErrorTotals, one: CompiledPolicy) -> Iterator[RuleState]:
    for rule in one.reports:
        failed = undecided.last_error(one.name, rule.name)
        yield RuleState(
            kind=rule.kind,
            name=rule.name,
            uses=rule.uses,
            evaluation=rule.evaluation,
            errors=failed[0].count if failed else 0,
            last_error=failed[0].last_message[:_MESSAGE_MAX] if failed else "",
            last_error_at=failed[1] if failed else "",
        )


def _colliding(serving: Iterable[CompiledPolicy], happened: Mapping[Conflict, int]) -> Mapping[str, list[str]]:
    """In the words of each side."""
    found: dict[str, list[str]] = {}
    for each in conflicts([*serving]):
        pods = happened.get(each, 0)
        so_far = f" ({pods} pods so far)" if pods else ""
        found.setdefault(each.loser, []).append(
            f"{each.key} is written by {each.winner}, too, which comes first: ours is left out{so_far}"
        )
        found.setdefault(each.winner, []).append(
            f"{each.key} is written by {each.loser}, too, which comes later and is left out{so_far}"
        )
    return found
