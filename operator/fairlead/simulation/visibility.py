"""Policies for a cluster that may be read only in part: rules whose inputs are missing are left out and named."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.strategies.reads import Reads

Kind = Literal["pods", "namespace"]
_WHAT: Final[dict[Kind, str]] = {"pods": "the pods on nodes", "namespace": "the pod's namespace"}


@dataclass(frozen=True, slots=True)
class SkippedRule:
    """A rule, or a whole policy, that is not evaluated."""

    policy: str
    rule: str
    kind: Kind

    def __str__(self) -> str:
        where = f"{self.policy}/{self.rule}" if self.rule else f"{self.policy} as a whole"
        return f"{where}: it reads {_WHAT[self.kind]}"


def judgeable(
    policies: Iterable[CompiledPolicy], unread: Collection[Kind]
) -> tuple[list[CompiledPolicy], list[SkippedRule]]:
    """Return the policies without rules that cannot be evaluated, and those rules."""
    found: list[CompiledPolicy] = []
    left_out: list[SkippedRule] = []
    for policy in policies:
        if "namespace" in unread and selects_by_namespace(policy):
            left_out.append(SkippedRule(policy.name, "", "namespace"))
            continue
        blind = {rule.name: kind for rule in policy.filters if (kind := _blind(rule.filter.reads, unread))}
        blind |= {rule.name: kind for rule in policy.scores if (kind := _blind(rule.score.reads, unread))}
        left_out += [SkippedRule(policy.name, name, kind) for name, kind in blind.items()]
        filters = tuple(rule for rule in policy.filters if rule.name not in blind)
        scores = tuple(rule for rule in policy.scores if rule.name not in blind)
        found.append(replace(policy, filters=filters, scores=scores) if blind else policy)
    return found, left_out


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
