"""Result of a filter call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import filterfalse

from fairlead.policy.evaluate.columns import PASSED, FilterColumn, Rejection
from fairlead.policy.evaluate.verdict_cache import VerdictCache

RuleRef = tuple[str, str]
"""The names of a policy and of one of its rules."""


@dataclass(frozen=True)
class Filtered:
    """Nodes that passed. Read the rest before the next call: it is computed on access, from the cache."""

    passed: Sequence[str]
    _names: Sequence[str] = ()
    _cache: VerdictCache | None = None

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
        return found

    @cached_property
    def by_all(self) -> Mapping[str, Sequence[Rejection]]:
        """Return all reasons of each rejected known node, in order; the scheduler gets the first."""
        if self._cache is None:
            return {}
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
        return found

    @property
    def by_rule(self) -> Mapping[RuleRef, int]:
        """Return how many known nodes were rejected, by the rule that gives the first reason."""
        return {(rule.policy.name, rule.name): len(names) for rule, names, _ in self._first}

    @property
    def names_by_rule(self) -> Mapping[RuleRef, Sequence[str]]:
        """Return the known nodes that were rejected, by the rule that gives the first reason."""
        return {(rule.policy.name, rule.name): names for rule, names, _ in self._first}

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
