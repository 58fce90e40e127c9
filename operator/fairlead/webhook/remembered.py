"""The names of the last calls by the bytes that they came in.

After a filter that refuses nobody, prioritize asks about the very same bytes, and so does the next attempt where every
node is asked about. To compare is thirty times faster than to decode, and Python has hashed the names already.
"""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Final

from fairlead.webhook import protocol

ENTRIES: Final = 2
"""What is asked about more than once is asked about at once; what more would keep drives all else out of the caches."""
BYTES: Final = 16 << 20
_NAME: Final = 64
"""Bytes that a name takes beside its characters, of which each may take four."""


@dataclass(slots=True, eq=False)
class Remembered:
    """Some lists of names, oldest first."""

    entries: int = ENTRIES
    limit: int = BYTES
    size: int = 0
    _known: deque[tuple[bytes, list[str]]] = field(default_factory=deque)

    def names(self, raw: bytes) -> list[str]:
        """The names that are written there. Raises MalformedError."""
        for known, found in self._known:
            if known == raw:
                return found
        found = protocol.names(raw)
        self._keep(raw, found)
        return found

    def _keep(self, raw: bytes, names: list[str]) -> None:
        if _size(raw, names) > self.limit:
            return
        self._known.append((raw, names))
        self.size += _size(raw, names)
        while self.size > self.limit or len(self._known) > self.entries:
            self.size -= _size(*self._known.popleft())


def _size(raw: bytes, names: Sized) -> int:
    """Bytes of memory, and rather too many."""
    return 5 * len(raw) + _NAME * len(names)
