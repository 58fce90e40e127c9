"""Result of a filter call: by each node, and by the domain that a group shares, of those that are left."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress, filterfalse
from typing import Final, NamedTuple, TypeAlias

from fairlead.grants.entry import Domain
from fairlead.policy.columns.column import PASSED, FilterColumn, Rejection
from fairlead.policy.evaluate.group_membership import UNDECIDED, RequiredGroup
from fairlead.policy.evaluate.verdict_cache import VerdictCache
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.domains import Values, rejected_by_domain

RuleRef = tuple[str, str]
"""The names of a policy and of one of its rules."""


class SharedDomain(NamedTuple):
    """Domain of a group, as far as it is known."""

    domain: Domain | None = None
    """None: no member is placed, or about to be."""
    avoided: Domain | None = None
    """Domain in which the last attempt to place the group failed."""
    lately: Values = frozenset()
    """Domains that held the group a moment ago, or the one in which a member is being bound."""


NO_DOMAIN: Final = SharedDomain()
DomainOf: TypeAlias = Callable[[str], SharedDomain]
"""Returns the domain of a group, which is given as its namespace and value with a slash between them."""


@dataclass(frozen=True)
class Filtered:
    """Nodes that passed. Read the rest before the next call: it is computed on access, from the cache."""

    passed: Sequence[str]
    _names: Sequence[str] = ()
    _cache: VerdictCache | None = None
    by_domain: Mapping[str, Rejection] = field(default_factory=dict)
    """Why nodes are rejected by the domains that groups share, though they pass all else."""

    @cached_property
    def unknown(self) -> Sequence[str]:
        """Return the nodes that are rejected because they are not known yet."""
        if self._cache is None or self._slots is not None:
            return ()
        return [*filterfalse(self._cache.nodes.slots.__contains__, self._others)]

    @cached_property
    def rejected(self) -> Mapping[str, Rejection]:
        """Return why known nodes are rejected, by name: the first reason of each."""
        found = dict[str, Rejection]()
        for rule, names, codes in self._first:
            outcomes = rule.outcomes
            found.update(zip(names, [outcomes[code] for code in codes], strict=True))
        return {**found, **self.by_domain}

    @cached_property
    def by_all(self) -> Mapping[str, Sequence[Rejection]]:
        """Return all reasons of each rejected known node, in order; the scheduler gets the first."""
        of_domains = {name: (one,) for name, one in self.by_domain.items()}
        if self._cache is None:
            return of_domains
        slots, rules = self._cache.nodes.slots, self._cache.rules
        known = [name for name in self._others if name in slots]
        columns = [bytes([rule.codes[slots[name]] for name in known]) for rule in rules]
        reasons: dict[tuple[int, ...], Sequence[Rejection]] = {}
        found = {}
        for name, codes in zip(known, zip(*columns, strict=True), strict=True):
            if codes not in reasons:
                pairs = zip(rules, codes, strict=True)
                reasons[codes] = tuple([rule.outcomes[code] for rule, code in pairs if code != PASSED])
            found[name] = reasons[codes]
        return found | of_domains

    @property
    def by_rule(self) -> Mapping[RuleRef, int]:
        """Return how many known nodes were rejected, by the rule that gives the first reason."""
        return {rule: len(names) for rule, names in self.names_by_rule.items()}

    @property
    def names_by_rule(self) -> Mapping[RuleRef, Sequence[str]]:
        """Return the known nodes that were rejected, by the rule that gives the first reason."""
        found = {(rule.policy.name, rule.name): names for rule, names, _ in self._first}
        if self.by_domain:
            found = {rule: [*names] for rule, names in found.items()}
        for name, one in self.by_domain.items():
            found.setdefault((one.policy, one.rule), []).append(name)
        return found

    def first_reasons(self) -> Iterator[tuple[RuleRef, str, Sequence[str]]]:
        """Yield the rules that give the first reason of known nodes: each reason, with the names of its nodes."""
        for rule, names, codes in self._first:
            ref, outcomes = (rule.policy.name, rule.name), rule.outcomes
            if codes.count(codes[0]) == len(codes):
                yield ref, outcomes[codes[0]].reason, names
                continue
            for code in dict.fromkeys(codes):
                yield ref, outcomes[code].reason, [*compress(names, map(code.__eq__, codes))]
        by_domain: dict[tuple[str, str, str], list[str]] = {}
        for name, one in self.by_domain.items():
            by_domain.setdefault((one.policy, one.rule, one.reason), []).append(name)
        for (policy, rule_name, reason), names in by_domain.items():
            yield (policy, rule_name), reason, names

    @property
    def any_node_passes(self) -> bool:
        """Report whether any known node would pass, whether it is in the call or not; one out of date is left out."""
        return self._cache is None or self._cache.any_known_passes

    @cached_property
    def _others(self) -> Sequence[str]:
        return [] if self._cache is None else [*filterfalse(self._cache.names().__contains__, self._names)]

    @cached_property
    def _first(self) -> Sequence[tuple[FilterColumn, list[str], bytes]]:
        if self._cache is None:
            return []
        if self._slots is not None:
            return [*self._cache.first_to_reject(self._others, self._slots)]
        slots = self._cache.nodes.slots
        known = [name for name in self._others if name in slots]
        return [*self._cache.first_to_reject(known, [slots[name] for name in known])]

    @cached_property
    def _slots(self) -> Sequence[int] | None:
        """Return the slots of the nodes that did not pass; None if one of them is unknown."""
        try:
            return None if self._cache is None else [*map(self._cache.nodes.slots.__getitem__, self._others)]
        except KeyError:
            return None


def within_domains(
    filtered: Filtered,
    required: Sequence[RequiredGroup],
    pod: PodView,
    view_of: Callable[[str], NodeView | None],
    domain_of: DomainOf,
    *,
    sees_all: bool,
    took: Callable[[], None] = lambda: None,
    on_holding: Callable[[str, Values], None] = lambda *_: None,
) -> Filtered:
    """Return the result of a call without the nodes outside the domains that a pod's groups share.

    `sees_all`: the call has all nodes that other filters leave. `took` is called now and then, and may raise.
    `on_holding` hears which domains hold a group that has none yet.
    """
    for one in required:
        names, rule = filtered.passed, one.rule.name
        if one.error is not None:
            reasons = dict.fromkeys(names, UNDECIDED)
        else:
            views = [view for name in names if (view := view_of(name)) is not None]
            known = domain_of(one.key)
            reasons = rejected_by_domain(
                views,
                one.rule.labels,
                known.domain,
                size=one.size,
                request=pod.request,
                avoided=known.avoided,
                lately=known.lately,
                sees_all=sees_all,
                took=took,
                on_holding=partial(on_holding, one.key),
            )
        if reasons:
            rejected = {name: Rejection(one.policy, rule, why, resolvable=False) for name, why in reasons.items()}
            passed = [name for name in names if name not in rejected]
            filtered = replace(filtered, passed=passed, by_domain={**filtered.by_domain, **rejected})
    return filtered
