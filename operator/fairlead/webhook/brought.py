"""The nodes that requests bring along, by the bytes that they came in: simulators bring the same ones again and again.

To compare a node with what came last under its name is ten times faster than to find where it ends and to decode it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from fairlead.webhook.protocol import Bytes

BYTES: Final = 96 << 20
DECODED: Final = 4
"""So many times the bytes that a node came in are what it is read to, about."""
T = TypeVar("T")
_NAME: Final = re.compile(rb'\{"metadata":\{"name":"([^"\\]+)"')
_COMMA: Final = ord(",")


@dataclass(slots=True, eq=False)
class Brought(Generic[T]):
    """Some nodes, oldest first; whatever else is known of a node than its bytes is not kept."""

    read: Callable[[bytes], T]
    """Raises what it likes for what is no node."""
    limit: int = BYTES
    size: int = 0
    _written: dict[bytes, bytes] = field(default_factory=dict)  # by name
    _read: dict[bytes, T] = field(default_factory=dict)

    def node(self, written: Bytes) -> T:
        """What is written there."""
        raw = bytes(written)
        found = self._read.get(raw)
        if found is None:
            found = self.read(raw)
            self._keep(raw, found)
        return found

    def split(self, body: bytes, begin: int, end: int) -> list[bytes] | None:
        """The nodes between two places of a body, with commas between them; None unless all came before."""
        found = list[bytes]()
        while name := _NAME.match(body, begin, end):
            raw = self._written.get(name[1])
            if raw is None or not body.startswith(raw, begin):
                return None
            found.append(raw)
            begin += len(raw) + 1
            if begin > end:
                return found if begin == end + 1 else None
            if body[begin - 1] != _COMMA:
                return None
        return None

    def _keep(self, raw: bytes, found: T) -> None:
        name = _NAME.match(raw)
        if name is None:
            return
        self._forget(name[1])
        self._written[name[1]], self._read[raw] = raw, found
        self.size += (1 + DECODED) * len(raw)
        while self.size > self.limit:
            self._forget(next(iter(self._written)))

    def _forget(self, name: bytes) -> None:
        raw = self._written.pop(name, None)
        if raw is not None:
            del self._read[raw]
            self.size -= (1 + DECODED) * len(raw)
