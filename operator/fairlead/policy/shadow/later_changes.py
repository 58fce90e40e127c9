"""Changes of nodes that came after a call, so that what rules say of these nodes now is not about the call."""

from collections.abc import Collection
from dataclasses import dataclass, field

from fairlead.policy.columns.column import Column
from fairlead.policy.evaluate.compared_score import ComparedScore
from fairlead.policy.nodes.annotated_values import reads_of
from fairlead.policy.nodes.journal import JournalEntry
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.shadow.effects import NodeMask, mask_of
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

    def left_out(self, column: Column, nodes: NodeMask, among: Collection[int], unknown: NodeMask) -> NodeMask:
        """Return those of the nodes about which a result of a column may be another one than at the call.

        `among` are the slots of the nodes, and `unknown` those of the nodes that were not known at the call.
        """
        if not self.are_there:
            return 0
        if self.is_lost:
            return nodes
        reads, policy, slots, several = _reads(column), column.policy.name, set[int](), unknown
        for entry in self._entries:
            if isinstance(entry, Published):
                if not entry.sources.isdisjoint(column.sources):
                    several |= int.from_bytes(entry.mask, "little")
            elif entry.slot in among and entry.slot not in slots and _affects(entry, reads, policy):
                slots.add(entry.slot)
        return (several | mask_of([*slots])) & nodes

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


def _reads(column: Column) -> Reads:
    """Return what a column reads, also through the data of its policy."""
    reads = column.reads
    return reads | reads_of(column.policy.data) if reads.data or reads.unmeasured else reads


def _affects(entry: JournalEntry, reads: Reads, policy: str) -> bool:
    return entry.change is None or (entry.policy in (None, policy) and reads.affected_by(entry.change))
