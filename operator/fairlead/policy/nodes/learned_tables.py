"""Tables of what rules have learned, as it was published last: one a rule, by type of pod and node.

All policies and evaluators of a process share them. A table is published in parts, each of which changes some nodes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from fairlead.learned.pair import NOTHING, LearnedOutcomes, OutcomeSums, node_key
from fairlead.learned.pairs import NO_PAIRS, Key, Pairs, by_type
from fairlead.policy.views.node_view import NOT_LEARNED, NodeView
from fairlead.strategies.facts import Unknown

_NO_NODES: Final[Mapping[str, OutcomeSums]] = {}
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
        changed, old, new = set[str](), by_type(before), by_type(after)
        for kind in old.keys() | new.keys():
            were, are = old.get(kind, _NO_NODES), new.get(kind, _NO_NODES)
            of_type = self._by_type.setdefault(kind, {})
            of_type.update(are)
            changed.update([node for node, one in are.items() if not _are_alike(were.get(node), one)] if were else are)
            for node in were.keys() - are.keys():
                changed.add(node)
                of_type.pop(node, None)
            if not of_type:
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


def _are_alike(before: OutcomeSums | None, after: OutcomeSums) -> bool:
    if before is None:
        return False
    return before.at == after.at and before.weight == after.weight and before.rewards == after.rewards


class NodesByKey:
    """Slots of nodes by the keys of their UIDs, from when they are needed until a node comes or goes."""

    def __init__(self) -> None:
        self._slots: dict[str, int] | None = None

    def forget(self) -> None:
        """Take note that nodes came or went."""
        self._slots = None

    def mask(self, keys: Collection[str], views: Sequence[NodeView | None]) -> bytes:
        """Return which nodes, given by slot, have one of these keys."""
        slots = self._slots
        if slots is None:
            slots = {node_key(view.uid): slot for slot, view in enumerate(views) if view is not None}
            if len(slots) < len(views) - views.count(None):  # some, of a file, share a UID
                return bytes([view is not None and node_key(view.uid) in keys for view in views])
            self._slots = slots
        found = bytearray(len(views))
        for key in keys:
            if (at := slots.get(key)) is not None:
                found[at] = 1
        return bytes(found)


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
