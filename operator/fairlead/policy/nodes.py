"""The nodes as rules see them, and a journal of what became different about each.

Owned by one thread. Whoever keeps something that was computed from nodes remembers how far in the journal it has read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.facts import Data, NodeView
from fairlead.strategies.reads import Change

JOURNAL: Final = 20_000  # entries; who is further behind computes everything anew


@dataclass(slots=True)
class Nodes:
    """All nodes, each in a slot of its own, that it keeps while it lives."""

    slots: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)  # by slot
    views: list[NodeView | None] = field(default_factory=list)
    data: dict[str, list[Data | None]] = field(default_factory=dict)  # by policy, then by slot
    journal: list[tuple[int, Change | None, str | None]] = field(default_factory=list)  # None: all; the policy of data
    start: int = 0  # of the journal
    _unused: list[int] = field(default_factory=list)

    @property
    def head(self) -> int:
        """How far the journal goes."""
        return self.start + len(self.journal)

    def put(self, view: NodeView, change: Change | None = None) -> None:
        """A node came (no change is given) or became different in what the change says."""
        name = view.name
        slot = self.slots.get(name)
        if slot is None:
            slot = self._unused.pop() if self._unused else len(self.views)
            if slot == len(self.views):
                self.views.append(None)
                self.names.append(name)
            self.names[slot] = name
            self.slots[name] = slot
            change = None
        self.views[slot] = view
        self._note(slot, change, None)

    def remove(self, name: str) -> None:
        """A node went."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        self.views[slot] = None
        for values in self.data.values():
            if slot < len(values):
                values[slot] = None
        self._unused.append(slot)
        self._note(slot, None, None)

    def put_data(self, policy: str, name: str, data: Data, change: Change) -> None:
        """The values of a policy's data on a node became different."""
        slot = self.slots[name]
        values = self.data.setdefault(policy, [])
        values.extend([None] * (slot + 1 - len(values)))
        values[slot] = data
        self._note(slot, change, policy)

    def seen_by(self, policy: str, reads_data: bool) -> Callable[[int], NodeView | None]:  # noqa: FBT001 - of the policy
        """The node in a slot, with the data of a policy."""
        if not reads_data:
            return self.views.__getitem__
        values = self.data.get(policy, [])
        empty: Final = Data()

        def view(slot: int) -> NodeView | None:
            held = self.views[slot]
            if held is None:
                return None
            data = values[slot] if slot < len(values) else None
            return held.with_data(empty if data is None else data)

        return view

    def since(self, position: int) -> Iterator[tuple[int, Change | None, str | None]] | None:
        """What happened after a position of the journal; None if that is forgotten."""
        if position < self.start:
            return None
        return iter(self.journal[position - self.start :])

    def _note(self, slot: int, change: Change | None, policy: str | None) -> None:
        self.journal.append((slot, change, policy))
        if len(self.journal) > JOURNAL:
            half = len(self.journal) // 2
            del self.journal[:half]
            self.start += half


