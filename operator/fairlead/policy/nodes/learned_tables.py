"""Tables of what rules have learned, as it was published last: one a rule, by type of pod and node.

All policies and evaluators of a process share them. A table is published in parts, each of which changes some nodes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fairlead.learned.pair import NOTHING, LearnedOutcomes, OutcomeSums, node_key
from fairlead.learned.pairs import NO_PAIRS, Key, Pairs
from fairlead.policy.views.node_view import NOT_LEARNED, NodeView
from fairlead.strategies.facts import Unknown

_NO_TYPE: Final = Unknown("the pod", "has no type", expected=True)
_UNREADABLE: Final = Unknown("the learned state", "cannot be read")


class TableOfRule(NamedTuple):
    """Owner of a table: a rule, as far as its numbers mean the same."""

    policy: str
    """UID of the policy; its name for one from a file."""
    rule: str
    meaning: str


class LearnedTable:
    """Outcomes that a rule has learned."""

    def __init__(self) -> None:
        self._parts: dict[int, Pairs] = {}
        self._by_type: dict[str, dict[str, OutcomeSums]] = {}
        self._unreadable: set[int] = set()

    @property
    def pairs(self) -> int:
        """Return the number of pairs."""
        return sum(map(len, self._parts.values()))

    def all_pairs(self) -> Iterator[tuple[Key, OutcomeSums]]:
        """Yield all pairs."""
        for part in self._parts.values():
            yield from part.items()

    @property
    def is_readable(self) -> bool:
        """Return whether all of it could be read; if not, the rule adds nothing."""
        return not self._unreadable

    def put(self, number: int, pairs: Pairs | None) -> Collection[str] | None:
        """Put a part, None for one that cannot be read; return the keys of the nodes that it changes, None for all."""
        was_readable, before = self.is_readable, self._parts.get(number, NO_PAIRS)
        (self._unreadable.add if pairs is None else self._unreadable.discard)(number)
        after = self._parts[number] = NO_PAIRS if pairs is None else pairs
        changed = set[str]()
        for key in before.keys() | after.keys():
            old, new = before.get(key), after.get(key)
            if old is not None and new is not None and _sums(old) == _sums(new):
                continue
            kind, node = key
            changed.add(node)
            of_type = self._by_type.setdefault(kind, {})
            if new is not None:
                of_type[node] = new
            elif of_type.pop(node, None) is not None and not of_type:
                del self._by_type[kind]
        return changed if was_readable == self.is_readable else None

    def learned(self, kind: str | Unknown, node: NodeView) -> LearnedOutcomes | Unknown:
        """Return what is known of pods of a type on a node."""
        if not isinstance(kind, str):
            return kind
        if not kind:
            return _NO_TYPE
        if self._unreadable:
            return _UNREADABLE
        of_type = self._by_type.get(kind)
        return LearnedOutcomes(kind, NOTHING if of_type is None else of_type.get(node_key(node.uid), NOTHING))


def _sums(pair: OutcomeSums) -> tuple[float, float, int]:
    return pair.rewards, pair.weight, pair.at


class LearnedTables:
    """Tables of the rules that learn."""

    def __init__(self) -> None:
        self.tables: Mapping[TableOfRule, LearnedTable] = {}

    def keep(self, rules: Iterable[TableOfRule]) -> None:
        """Have a table for each of these rules, and no others."""
        self.tables = {rule: self.tables.get(rule) or LearnedTable() for rule in rules}

    def learned(self, rule: TableOfRule, kind: str | Unknown, node: NodeView) -> LearnedOutcomes | Unknown:
        """Return what a rule has learned of pods of a type on a node."""
        table = self.tables.get(rule)
        return NOT_LEARNED if table is None else table.learned(kind, node)
