"""Tables of what rules have learned, as it was published last: one a rule, by type of pod and node.

All policies and evaluators of a process share them. A table is published in parts, each of which changes some nodes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from fairlead.cooperative import Steps, finish
from fairlead.learned.pair import NOTHING, LearnedOutcomes, OutcomeSums, Sums, node_key
from fairlead.learned.pairs import NO_PAIRS, Key, Pairs
from fairlead.learned.published_pairs import by_type
from fairlead.policy.views.node_view import NOT_LEARNED, NodeView
from fairlead.strategies.facts import Unknown

_KEYS: Final = 500  # between two pauses
_NO_NODES: Final[Mapping[str, Sums]] = {}
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
        self._by_type: dict[str, dict[str, Sums]] = {}
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


def _are_alike(before: Sums | None, after: Sums) -> bool:
    if before is None:
        return False
    return before.at == after.at and before.weight == after.weight and before.rewards == after.rewards


class NodesByKey:
    """Slots of nodes by the keys of their UIDs, from when they are needed on: a key takes two microseconds."""

    def __init__(self) -> None:
        self._is_kept = False
        self._keys: list[str] = []
        """Keys by slot, as far as they are known; "" for a slot without a node."""
        self._slots: dict[str, int] = {}

    def note(self, slot: int, view: NodeView | None) -> None:
        """Take note that a slot has another node, or none."""
        if self._is_kept and slot <= len(self._keys):
            self._set(slot, view)

    def keep(self, views: Sequence[NodeView | None]) -> Steps[None]:
        """Know the keys of all nodes, given by slot, from now on: computed with pauses, in which nodes may change."""
        self._is_kept = True
        while (first := len(self._keys)) < len(views):
            for slot in range(first, min(first + _KEYS, len(views))):
                self._set(slot, views[slot])
            yield

    def mask(self, keys: Collection[str], views: Sequence[NodeView | None]) -> bytes:
        """Return which nodes, given by slot, have one of these keys."""
        finish(self.keep(views))
        if len(self._slots) < len(self._keys) - self._keys.count(""):  # some, of a file, share a UID
            return bytes([bool(key) and key in keys for key in self._keys])
        found = bytearray(len(views))
        for slot in map(self._slots.get, keys):
            if slot is not None:
                found[slot] = 1
        return bytes(found)

    def _set(self, slot: int, view: NodeView | None) -> None:
        if slot == len(self._keys):
            self._keys.append("")
        before, after = self._keys[slot], "" if view is None else node_key(view.uid)
        self._keys[slot] = after
        if before and self._slots.get(before) == slot:
            del self._slots[before]
        if after:
            self._slots[after] = slot


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
