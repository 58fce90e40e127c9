"""What a filter call comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import filterfalse

from fairlead.policy.evaluate.columns import PASSED, FilterColumn, Refusal
from fairlead.policy.evaluate.verdict_cache import VerdictCache

RuleRef = tuple[str, str]
"""A policy and its rule."""


@dataclass(frozen=True)
class Filtered:
    """Who passed. Look at the rest before the next call: it is looked up when it is asked for."""

    passed: Sequence[str]
    _asked: Sequence[str] = ()
    _kept: VerdictCache | None = None

    @cached_property
    def unknown(self) -> Sequence[str]:
        """Refused, too: nobody can judge a node that is not known yet."""
        if self._kept is None or self._slots is not None:
            return ()
        return [*filterfalse(self._kept.nodes.slots.__contains__, self._others)]

    @cached_property
    def rejected(self) -> Mapping[str, Refusal]:
        """Why the others of the known nodes that were asked about are refused; empty when all may be used."""
        found = dict[str, Refusal]()
        for rule, names, codes in self._first:
            outcomes = rule.outcomes
            found.update(zip(names, [outcomes[code] for code in codes], strict=True))
        return found

    @cached_property
    def by_all(self) -> Mapping[str, Sequence[Refusal]]:
        """The same with everything that refuses a node, in order: the scheduler is told the first."""
        if self._kept is None:
            return {}
        slots, rules = self._kept.nodes.slots, self._kept.rules
        known = [name for name in self._others if name in slots]
        columns = [bytes([rule.codes[slots[name]] for name in known]) for rule in rules]
        said: dict[tuple[int, ...], Sequence[Refusal]] = {}
        found = {}
        for name, codes in zip(known, zip(*columns, strict=True), strict=True):
            if codes not in said:
                pairs = zip(rules, codes, strict=True)
                said[codes] = tuple([rule.outcomes[code] for rule, code in pairs if code != PASSED])
            found[name] = said[codes]
        return found

    @property
    def by_rule(self) -> Mapping[RuleRef, int]:
        """How many known nodes were refused, by the rule that is given as the reason."""
        return {(rule.policy.name, rule.name): len(names) for rule, names, _ in self._first}

    @property
    def any_node_passes(self) -> bool:
        """Whether some node that is known, asked about or not, would pass."""
        return self._kept is None or 1 in self._kept.passing

    @cached_property
    def _others(self) -> Sequence[str]:
        return [] if self._kept is None else [*filterfalse(self._kept.names().__contains__, self._asked)]

    @cached_property
    def _first(self) -> Sequence[tuple[FilterColumn, list[str], bytes]]:
        if self._kept is None:
            return []
        if self._slots is not None:
            return [*self._kept.first_to_reject(self._others, self._slots)]
        slots = self._kept.nodes.slots
        known = [name for name in self._others if name in slots]
        return [*self._kept.first_to_reject(known, [slots[name] for name in known])]

    @cached_property
    def _slots(self) -> Sequence[int] | None:
        """Of the others, if all are known."""
        try:
            return None if self._kept is None else [*map(self._kept.nodes.slots.__getitem__, self._others)]
        except KeyError:
            return None
