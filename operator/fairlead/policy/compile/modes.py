"""Division of a policy into the rules that decide and those in shadow, by its mode and theirs: the weaker one holds."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from fairlead.api.data import DataEntry
from fairlead.api.mode import Mode
from fairlead.policy.compile.expression import as_reads
from fairlead.policy.compile.model import (
    FILTER_PREFIX,
    AnnotationRule,
    CompiledPolicy,
    DomainRule,
    ExpressionRule,
    FilterRule,
    RuleKind,
    ScoreRule,
)
from fairlead.policy.nodes.annotated_values import read_entries
from fairlead.strategies.contract import CompiledShare

R = TypeVar("R", FilterRule, ScoreRule, ExpressionRule, AnnotationRule)
J = TypeVar("J", FilterRule, ScoreRule, ExpressionRule, AnnotationRule, DomainRule)


def in_mode(policy: CompiledPolicy, mode: Mode) -> CompiledPolicy:
    """Return a generation as it is in force under this mode, whatever its own is.

    The mode of the newest object decides how much of any generation is in force. So `mode: Disabled` turns a policy off
    also where the rules of the same edit do not compile.
    """
    return policy if policy.mode == mode else divided(replace(undivided(policy), mode=mode))


def divided(policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy of which no rule is in shadow yet, with those in shadow that it or they say."""
    all_are = policy.mode == "Shadow"
    filters, filters_in_shadow = _divided(policy.filters, all_are=all_are)
    scores, scores_in_shadow = _divided(policy.scores, all_are=all_are)
    protections, protections_in_shadow = _divided(policy.protections, all_are=all_are)
    annotations, annotations_in_shadow = _divided(policy.annotations, all_are=all_are)
    domains = {rule.name for rule in filters_in_shadow}
    shadow = replace(
        policy,
        mode="Enforce",
        filters=filters_in_shadow,
        scores=scores_in_shadow,
        protections=protections_in_shadow,
        annotations=annotations_in_shadow,
        device_shares=policy.device_shares if all_are else (),
        gangs=policy.gangs if all_are else (),
        domain_rules=tuple([rule for rule in policy.domain_rules if rule.name in domains]),
        publishes=all_are and policy.publishes,
        reports=(),
    )
    if not (shadow.filters or shadow.scores or shadow.protections or shadow.binds):
        return policy
    return replace(
        policy,
        filters=filters,
        scores=scores,
        protections=protections,
        annotations=annotations,
        device_shares=() if all_are else policy.device_shares,
        gangs=() if all_are else policy.gangs,
        domain_rules=tuple([rule for rule in policy.domain_rules if rule.name not in domains]),
        publishes=not all_are and policy.publishes,
        shadow=shadow,
    )


def undivided(policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy with all its rules in their written order, whether or not they are in shadow."""
    shadow = policy.shadow
    if shadow is None:
        return policy
    at = {(report.kind, report.name): at for at, report in enumerate(policy.reports)}

    def joined(kind: RuleKind, name: Callable[[Any], str], rules: Iterable[J]) -> tuple[J, ...]:
        return tuple(sorted(rules, key=lambda rule: at.get((kind, name(rule)), 0)))

    return replace(
        policy,
        filters=joined("Filter", _name, (*policy.filters, *shadow.filters)),
        scores=joined("Score", _name, (*policy.scores, *shadow.scores)),
        protections=joined("Protection", _name, (*policy.protections, *shadow.protections)),
        annotations=joined("Annotation", _key, (*policy.annotations, *shadow.annotations)),
        device_shares=(*policy.device_shares, *shadow.device_shares),
        gangs=(*policy.gangs, *shadow.gangs),
        domain_rules=joined("Filter", _name, (*policy.domain_rules, *shadow.domain_rules)),
        publishes=policy.publishes or shadow.publishes,
        shadow=None,
    )


def as_enforced(policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy as it would be if all that is in shadow were enforced.

    A device share has no filter of its own where a rule by its name decides, and here those in shadow do.
    """
    every = undivided(policy)
    named = {rule.filter.reads.devices for rule in every.filters if rule.in_shadow} - {frozenset()}

    def stays(rule: FilterRule) -> bool:
        return not (rule.name.startswith(FILTER_PREFIX) and rule.filter.reads.devices in named)

    filters = tuple([rule for rule in every.filters if stays(rule)])
    return replace(every, filters=filters, mode="Enforce" if policy.mode == "Shadow" else policy.mode)


def compared(policy: CompiledPolicy) -> CompiledPolicy | None:
    """Return the rules in shadow that can be evaluated for calls, as a policy that is enforced; None if there are none.

    What a gang, a device share or a filter `topology` says depends on what it holds or has written; in shadow it does
    neither.
    """
    shadow = policy.shadow
    if shadow is None or policy.placeholder or not policy.evaluated:
        return None
    domains = {rule.name for rule in shadow.domain_rules}
    filters = [rule for rule in shadow.filters if rule.name not in domains]
    if shadow.device_shares:
        filters = [rule for rule in filters if not rule.filter.reads.devices]
    found = replace(shadow, filters=tuple(filters), device_shares=(), gangs=(), domain_rules=())
    return found if found.filters or found.scores or found.protections or found.annotations else None


def rules_in_shadow(policy: CompiledPolicy) -> frozenset[tuple[RuleKind, str]]:
    """Return the rules that decide nothing, each by its kind and name."""
    shadow = policy.shadow
    if shadow is None:
        return frozenset()
    conditions = policy.match.conditions if policy.mode == "Shadow" else ()
    rules: list[tuple[RuleKind, str]] = [("Condition", rule.name) for rule in conditions]
    rules += [("Filter", rule.name) for rule in shadow.filters]
    rules += [("Filter", rule.rule) for rule in shadow.gangs]
    rules += [("Score", rule.name) for rule in shadow.scores]
    rules += [("Protection", rule.name) for rule in shadow.protections]
    rules += [("Annotation", rule.key) for rule in shadow.annotations]
    return frozenset(rules)


def all_in_shadow(policy: CompiledPolicy) -> bool:
    """Return whether a policy has rules, and each of them is in shadow, so that nothing of it decides."""
    return policy.shadow is not None and not (policy.filters or policy.scores or policy.protections or policy.binds)


def shares_in_force(policies: Iterable[CompiledPolicy]) -> list[tuple[str, CompiledShare]]:
    """Return the device shares of the policies that are enforced, with the name of their policy, in their order."""
    ordered = sorted((one for one in policies if one.enforced), key=lambda one: one.order)
    return [(policy.name, rule.share) for policy in ordered for rule in policy.device_shares]


def data_in_force(policy: CompiledPolicy) -> list[DataEntry]:
    """Return the entries of `data` that rules which decide read: nothing waits for the values of the others."""
    if not policy.enforced:
        return []
    expressions = [rule.expression for rule in policy.protections]
    expressions += [rule.expression for rule in policy.annotations]
    reads = [policy.reads, *(as_reads(one.paths) for one in expressions)]
    names = {entry.name for one in reads for entry in read_entries(policy.data, one)}
    return [entry for entry in policy.data if entry.name in names]


def _divided(rules: tuple[R, ...], *, all_are: bool) -> tuple[tuple[R, ...], tuple[R, ...]]:
    in_shadow = [rule for rule in rules if all_are or rule.in_shadow]
    return tuple([rule for rule in rules if not (all_are or rule.in_shadow)]), tuple(in_shadow)


def _name(rule: FilterRule | ScoreRule | ExpressionRule | DomainRule) -> str:
    return rule.name


def _key(rule: AnnotationRule) -> str:
    return rule.key
