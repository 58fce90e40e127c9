"""Changes of nodes that came after a call, so that what rules say of these nodes now is not about the call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.policy.evaluate.columns import Column
from fairlead.policy.evaluate.compared_score import ComparedScore
from fairlead.policy.nodes.annotated_values import reads_of
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import JournalEntry, Nodes
from fairlead.strategies.reads import Reads


@dataclass(slots=True, eq=False)
class LaterChanges:
    """Entries of the journal since a call, except those that an evaluation makes itself."""

    nodes: Nodes
    position: int
    """Position in the journal up to which it was read; at first that of the call."""
    is_lost: bool = False
    """Whether some are dropped already, so that any node may have changed."""
    _entries: list[JournalEntry | Published] = field(default_factory=list)

    def read(self) -> None:
        """Read what has changed since the last time."""
        if self.position != self.nodes.head:
            entries = self.nodes.since(self.position)
            self.is_lost = self.is_lost or entries is None
            self._entries += entries or ()
            self.position = self.nodes.head

    def skip(self) -> None:
        """Skip what was noted since the last time, as nothing but the evaluation has noted anything."""
        self.position = self.nodes.head

    @property
    def are_there(self) -> bool:
        """Return whether there are any."""
        return self.is_lost or bool(self._entries)

    @property
    def count(self) -> int:
        """Return how many were read."""
        return len(self._entries)

    def changed(self, name: str) -> bool:
        """Return whether anything of a node may be different from what it was at the call."""
        slot = self.nodes.slots.get(name)
        if slot is None or self.is_lost:
            return self.are_there
        return any(
            entry.slot == slot if isinstance(entry, JournalEntry) else slot < len(entry.mask) and entry.mask[slot]
            for entry in self._entries
        )

    def left_out(self, column: Column, places: Mapping[int, int], nodes: int, unknown: int) -> bytes | None:
        """Return for each node 1 if a result of the column about it may be another one than at the call; None: none is.

        `places` has the number of a node by its slot; the last ones were unknown at the call.
        """
        if not self.are_there:
            return None
        if self.is_lost:
            return b"\1" * nodes
        reads, policy = _reads(column), column.policy.name
        found = bytearray(nodes)
        found[nodes - unknown :] = b"\1" * unknown
        for entry in self._entries:
            if isinstance(entry, Published):
                if not entry.sources.isdisjoint(column.sources):
                    _mark(found, entry.mask, places)
            elif (at := places.get(entry.slot)) is not None and not found[at]:
                found[at] = _affects(entry, reads, policy)
        return bytes(found) if 1 in found else None

    def affect(self, score: ComparedScore) -> bool:
        """Return whether a score that compares nodes may be another one than at the call: it may sum up all nodes."""
        if not self.are_there or self.is_lost:
            return self.is_lost
        reads = score.rule.score.reads
        several = [reads, *(one.of_node for one in reads.system), *(one.of_node for one in reads.topology)]
        policy = score.policy.name
        return any(
            isinstance(entry, Published) or any(_affects(entry, one, policy) for one in several)
            for entry in self._entries
        )


def slots_by_place(slots: Sequence[int]) -> Mapping[int, int]:
    """Return the number of each node by its slot."""
    return {slot: at for at, slot in enumerate(slots)}


def _reads(column: Column) -> Reads:
    """Return what a column reads, also through the data of its policy."""
    reads = column.reads
    return reads | reads_of(column.policy.data) if reads.data or reads.unmeasured else reads


def _affects(entry: JournalEntry, reads: Reads, policy: str) -> bool:
    return entry.change is None or (entry.policy in (None, policy) and reads.affected_by(entry.change))


def _mark(marks: bytearray, mask: bytes, places: Mapping[int, int]) -> None:
    for slot, at in places.items():
        if slot < len(mask) and mask[slot]:
            marks[at] = 1
