"""The nodes as rules see them, and a journal of their changes.

Owned by one thread. A cache of results that were computed from nodes stores its position in the journal, and so learns
later what has changed since.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fairlead.policy.views.data_values import Data
from fairlead.policy.views.pod_and_node import NodeView
from fairlead.strategies.reads import Change

JOURNAL: Final = 20_000  # entries; a cache that is further behind starts from nothing
_NO_DATA: Final = Data()


class JournalEntry(NamedTuple):
    """One change of one node."""

    slot: int
    change: Change | None  # None: everything
    policy: str | None = None  # the policy whose data changed


@dataclass(slots=True)
class Nodes:
    """All nodes, each with a slot of its own for as long as it exists."""

    limit: int = JOURNAL
    slots: dict[str, int] = field(default_factory=dict)
    views: list[NodeView | None] = field(default_factory=list)
    data: dict[str, list[Data | None]] = field(default_factory=dict)  # by policy, then by slot
    journal: list[JournalEntry] = field(default_factory=list)
    start: int = 0  # position of the journal's first entry
    removals: int = 0  # number of nodes removed so far
    _unused: list[int] = field(default_factory=list)

    @property
    def head(self) -> int:
        """Return the position after the journal's last entry."""
        return self.start + len(self.journal)

    def put(self, view: NodeView, change: Change | None = None) -> None:
        """Add a node, or replace it; `change` says what differs, None stands for everything."""
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
        """Remove a node, if it is known."""
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
        """Store a policy's data on a node; `changed` names the entries that differ."""
        values = self.data.setdefault(policy, [])
        values.extend([None] * (slot + 1 - len(values)))
        values[slot] = data
        self._note(JournalEntry(slot, Change(data=changed), policy))

    def data_of(self, policy: str, slot: int) -> Data | None:
        """Return a policy's data on the node in a slot; None if it was not computed."""
        values = self.data.get(policy, ())
        return values[slot] if slot < len(values) else None

    def seen_by(self, policy: str, reads_data: bool) -> Callable[[int], NodeView | None]:  # noqa: FBT001
        """Return a function from slot to node, with the data of a policy as last computed."""
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
        """Return the node of a name, without data; None if it is unknown."""
        slot = self.slots.get(name)
        return None if slot is None else self.views[slot]

    def since(self, position: int) -> Iterator[JournalEntry] | None:
        """Return the journal's entries from a position on; None if some of these are dropped already."""
        if position < self.start:
            return None
        return iter(self.journal[position - self.start :])

    def _note(self, entry: JournalEntry) -> None:
        self.journal.append(entry)
        if len(self.journal) > self.limit:
            gone = (len(self.journal) + 1) // 2
            del self.journal[:gone]
            self.start += gone
