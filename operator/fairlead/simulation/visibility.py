"""Policies for a cluster that may be read only in part: rules whose inputs are missing are left out and named."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.views.node_data import read_entries
from fairlead.policy.views.polls import Poll, poll_of
from fairlead.strategies.reads import Reads

Kind = Literal["pods", "namespace", "data"]
_WHAT: Final[dict[Kind, str]] = {
    "pods": "the pods on nodes",
    "namespace": "the pod's namespace",
    "data": "values that are not given",
}


@dataclass(frozen=True, slots=True)
class SkippedRule:
    """A rule, or a whole policy, that is not evaluated."""

    policy: str
    rule: str
    kind: Kind
    entries: tuple[str, ...] = ()
    """Entries of data whose values are not given."""

    def __str__(self) -> str:
        where = f"{self.policy}/{self.rule}" if self.rule else f"{self.policy} as a whole"
        what = ", ".join(f"data.{name}" for name in self.entries)
        return f"{where}: it reads {f'{what}, which is not known: --data can give it' if what else _WHAT[self.kind]}"


def judgeable(
    policies: Iterable[CompiledPolicy], unread: Collection[Kind], given: Collection[Poll] = ()
) -> tuple[list[CompiledPolicy], list[SkippedRule]]:
    """Return the policies without rules that cannot be evaluated, and those rules; `given` polls have values."""
    found: list[CompiledPolicy] = []
    left_out: list[SkippedRule] = []
    for policy in policies:
        if "namespace" in unread and selects_by_namespace(policy):
            left_out.append(SkippedRule(policy.name, "", "namespace"))
            continue
        blind = {rule.name: kind for rule in policy.filters if (kind := _blind(rule.filter.reads, unread))}
        blind |= {rule.name: kind for rule in policy.scores if (kind := _blind(rule.score.reads, unread))}
        left_out += [SkippedRule(policy.name, name, kind) for name, kind in blind.items()]
        reads = {rule.name: rule.filter.reads for rule in policy.filters}
        reads |= {rule.name: rule.score.reads for rule in policy.scores}
        for name, read in reads.items():
            if name not in blind and (entries := _not_given(policy, read, given)):
                blind[name] = "data"
                left_out.append(SkippedRule(policy.name, name, "data", entries))
        filters = tuple(rule for rule in policy.filters if rule.name not in blind)
        scores = tuple(rule for rule in policy.scores if rule.name not in blind)
        found.append(replace(policy, filters=filters, scores=scores) if blind else policy)
    return found, left_out


def _not_given(policy: CompiledPolicy, reads: Reads, given: Collection[Poll]) -> tuple[str, ...]:
    entries = read_entries(policy.data, reads)
    return tuple(one.name for one in entries if (poll := poll_of(one)) is not None and poll not in given)


def _blind(reads: Reads, unread: Collection[Kind]) -> Kind | None:
    if "pods" in unread and reads.of_pods:
        return "pods"
    return "namespace" if "namespace" in unread and reads.namespace else None


def selects_by_namespace(policy: CompiledPolicy) -> bool:
    """Return whether matching a policy reads the pod's namespace."""
    match = policy.match
    return match.namespace_selector is not None or any(
        "namespaceObject" in condition.expression.roots for condition in match.conditions
    )
