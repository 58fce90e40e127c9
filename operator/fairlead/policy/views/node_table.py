"""The nodes as rules see them, and a journal of what became different about each.

Owned by one thread. Whoever keeps something that was computed from nodes remembers how far in the journal it has read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fairlead.policy.views.pod_and_node import Data, NodeView
from fairlead.strategies.reads import Change

JOURNAL: Final = 20_000  # entries; who is further behind computes everything anew
_NO_DATA: Final = Data()


class JournalEntry(NamedTuple):
    """One thing that happened."""

    slot: int
    change: Change | None  # None: everything
    policy: str | None = None  # whose data it was


@dataclass(slots=True)
class Nodes:
    """All nodes, each in a slot of its own, that it keeps while it lives."""

    limit: int = JOURNAL
    slots: dict[str, int] = field(default_factory=dict)
    views: list[NodeView | None] = field(default_factory=list)
    data: dict[str, list[Data | None]] = field(default_factory=dict)  # by policy, then by slot
    journal: list[JournalEntry] = field(default_factory=list)
    start: int = 0  # of the journal
    removals: int = 0  # how many nodes went
    _unused: list[int] = field(default_factory=list)

    @property
    def head(self) -> int:
        """How far the journal goes."""
        return self.start + len(self.journal)

    def put(self, view: NodeView, change: Change | None = None) -> None:
        """A node came (no change is given) or became different in what the change says."""
        slot = self.slots.get(view.name)
        if slot is None:
            change = None
            slot = self._unused.pop() if self._unused else len(self.views)
            if slot == len(self.views):
                self.views.append(None)
            self.slots[view.name] = slot
        self.views[slot] = view
        self._note(JournalEntry(slot, change))

    def remove(self, name: str) -> None:
        """A node went."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        self.removals += 1
        self.views[slot] = None
        for values in self.data.values():
            if slot < len(values):
                values[slot] = None
        self._unused.append(slot)
        self._note(JournalEntry(slot, None))

    def put_data(self, policy: str, slot: int, data: Data, changed: frozenset[str]) -> None:
        """The values of a policy's data on a node became different."""
        values = self.data.setdefault(policy, [])
        values.extend([None] * (slot + 1 - len(values)))
        values[slot] = data
        self._note(JournalEntry(slot, Change(data=changed), policy))

    def data_of(self, policy: str, slot: int) -> Data | None:
        """The values of a policy's data on the node in a slot, if they were computed."""
        values = self.data.get(policy, ())
        return values[slot] if slot < len(values) else None

    def seen_by(self, policy: str, reads_data: bool) -> Callable[[int], NodeView | None]:  # noqa: FBT001 - of the policy
        """The node in a slot, with the data of a policy as they were last computed."""
        if not reads_data:
            return self.views.__getitem__
        values = self.data.setdefault(policy, [])

        def view(slot: int) -> NodeView | None:
            held = self.views[slot]
            if held is None:
                return None
            data = values[slot] if slot < len(values) else None
            return held.with_data(_NO_DATA if data is None else data)

        return view

    def view_of(self, name: str) -> NodeView | None:
        """The node of this name, without data."""
        slot = self.slots.get(name)
        return None if slot is None else self.views[slot]

    def since(self, position: int) -> Iterator[JournalEntry] | None:
        """What happened after a position of the journal; None if that is forgotten."""
        if position < self.start:
            return None
        return iter(self.journal[position - self.start :])

    def _note(self, entry: JournalEntry) -> None:
        self.journal.append(entry)
        if len(self.journal) > self.limit:
            gone = (len(self.journal) + 1) // 2
            del self.journal[:gone]
            self.start += gone
