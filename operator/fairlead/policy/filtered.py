"""What a filter call comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

from fairlead.policy.bound import BoundFilter, Refusal
from fairlead.policy.kept import INVERTED, KeptVerdicts

Rule = tuple[str, str]
"""A policy and its rule."""


@dataclass(frozen=True)
class Filtered:
    """Who passed. Look at the rest before the next call: it is looked up when it is asked for."""

    passed: Sequence[str]
    unknown: Sequence[str] = ()
    """Refused, too: nobody can judge a node that is not known yet."""
    _asked: Sequence[str] = ()
    _slots: Sequence[int] = ()
    _passes: Sequence[int] = ()
    _kept: KeptVerdicts | None = None

    @cached_property
    def refused(self) -> Mapping[str, Refusal]:
        """Why the others of the known nodes that were asked about are refused; empty when all may be used."""
        found = dict[str, Refusal]()
        for rule, names, codes in self._first:
            outcomes = rule.outcomes
            found.update(zip(names, [outcomes[code] for code in codes], strict=True))
        return found

    @property
    def by_rule(self) -> Mapping[Rule, int]:
        """How many known nodes were refused, by the rule that is given as the reason."""
        return {(rule.policy.name, rule.name): len(names) for rule, names, _ in self._first}

    @property
    def passes_elsewhere(self) -> bool:
        """Whether some node that is known, asked about or not, would pass."""
        return self._kept is None or 1 in self._kept.passing

    @cached_property
    def _first(self) -> Sequence[tuple[BoundFilter, list[str], bytes]]:
        if self._kept is None:
            return []
        refused = bytes(self._passes).translate(INVERTED)
        return [*self._kept.first_to_refuse([*compress(self._asked, refused)], [*compress(self._slots, refused)])]
