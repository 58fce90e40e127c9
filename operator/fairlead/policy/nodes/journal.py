"""Journal of the changes of nodes, as long as its bounds allow.

A cache of results that were computed from nodes stores its position in it, and so learns later what has changed since;
one that is further behind than the journal reaches starts from nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fairlead.policy.nodes.measured_table import Published
from fairlead.strategies.reads import NodeChange

ENTRIES_MAX: Final = 20_000
MASKS_MAX: Final = 4 << 20
"""Bytes of the masks in a journal: those of the largest cluster for 270 publications of measured values."""


class JournalEntry(NamedTuple):
    """One change of one node."""

    slot: int
    change: NodeChange | None  # None: everything
    policy: str | None = None  # the policy whose data changed


@dataclass(slots=True)
class Journal:
    """Changes of nodes, of which the older half is dropped when there are too many."""

    entries_max: int = ENTRIES_MAX
    masks_max: int = MASKS_MAX
    entries: list[JournalEntry | Published] = field(default_factory=list)
    start: int = 0
    """Position of the first entry."""
    _masks: int = 0
    """Bytes of the masks."""

    @property
    def head(self) -> int:
        """Return the position after the last entry."""
        return self.start + len(self.entries)

    def append(self, entry: JournalEntry | Published) -> None:
        """Append a change."""
        self.entries.append(entry)
        if isinstance(entry, Published):
            self._masks += len(entry.mask)
        if len(self.entries) > self.entries_max or self._masks > self.masks_max:
            gone = (len(self.entries) + 1) // 2
            self._masks -= sum(len(one.mask) for one in self.entries[:gone] if isinstance(one, Published))
            del self.entries[:gone]
            self.start += gone

    def since(self, position: int) -> Iterator[JournalEntry | Published] | None:
        """Return the entries from a position on; None if some of these are dropped already."""
        if position < self.start:
            return None
        return iter(self.entries[position - self.start :])
