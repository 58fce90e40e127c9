"""Caches for the node lists of requests, by their bytes: simulators send the same nodes again and again.

Comparing a node with the bytes that came last under its name is ten times as fast as finding its end and decoding it.
"""

import re
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from fairlead.webhook.extender import requests
from fairlead.webhook.extender.requests import Bytes

NODE_BYTES: Final = 96 << 20
DECODED: Final = 4
"""Memory of a decoded node, as a multiple of the bytes it came in; approximate."""
T = TypeVar("T")
_NODE_NAME: Final = re.compile(rb'\{"metadata":\{"name":"([^"\\]+)"')
_COMMA: Final = ord(",")


@dataclass(slots=True, eq=False)
class FullNodeCache(Generic[T]):
    """Decoded nodes by their bytes. When it is full, the oldest go first."""

    read: Callable[[bytes], T]
    """Decodes a node; may raise anything for bytes that are not a node."""
    limit: int = NODE_BYTES
    size: int = 0
    _written: dict[bytes, bytes] = field(default_factory=dict)  # by name
    _read: dict[bytes, T] = field(default_factory=dict)

    def node(self, written: Bytes) -> T:
        """Return the decoded node, from the cache if these bytes came before."""
        raw = bytes(written)
        found = self._read.get(raw)
        if found is None:
            found = self.read(raw)
            self._keep(raw, found)
        return found

    def split(self, body: bytes, begin: int, end: int) -> list[bytes] | None:
        """Return the nodes of a comma-separated list in a body, each as its bytes; None unless all are cached."""
        found = list[bytes]()
        while name := _NODE_NAME.match(body, begin, end):
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

    def _keep(self, raw: bytes, item: T) -> None:
        name = _NODE_NAME.match(raw)
        if name is None:
            return
        self._forget(name[1])
        self._written[name[1]], self._read[raw] = raw, item
        self.size += (1 + DECODED) * len(raw)
        while self.size > self.limit:
            self._forget(next(iter(self._written)))

    def _forget(self, name: bytes) -> None:
        raw = self._written.pop(name, None)
        if raw is not None:
            del self._read[raw]
            self.size -= (1 + DECODED) * len(raw)


ENTRIES: Final = 2
"""Lists that come again come at once; more entries would push other data out of the CPU caches."""
NAME_BYTES: Final = 16 << 20
_NAME_OVERHEAD: Final = 64
"""Bytes that a name takes besides its characters, which take up to four bytes each."""


@dataclass(slots=True, eq=False)
class NodeNameCache:
    """Decoded name lists by their bytes. When it is full, the oldest go first."""

    entries: int = ENTRIES
    limit: int = NAME_BYTES
    size: int = 0
    _known: deque[tuple[bytes, list[str]]] = field(default_factory=deque)

    def names(self, raw: bytes) -> list[str]:
        """Return the names in a JSON list, from the cache if the same bytes came before. Raises MalformedError."""
        for known, found in self._known:
            if known == raw:
                return found
        found = requests.decode_names(raw)
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
    """Return the memory of an entry in bytes, rather too high than too low."""
    return 5 * len(raw) + _NAME_OVERHEAD * len(names)
