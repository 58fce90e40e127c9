"""Limits of connections per port, and connections by address, so that none takes the places of all others. Pure.

A TLS connection costs 110 KiB while it is open, 64 of them for asyncio's buffer, and a handshake a millisecond of the
thread that answers schedulers; a connection that has sent nothing yet costs neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of one port. `..._each` is per address."""

    served: int
    """Open connections, after their handshake."""
    served_each: int
    pending: int
    """Connections before their handshake: they have sent nothing yet, or wait for their turn."""
    pending_each: int
    handshakes: int
    """Handshakes at the same time; further connections wait."""
    handshakes_each: int
    unread: int | None = None
    """Size of the kernel's receive buffer, and so of what is read at once; the kernel may use twice as much. None: its
    default.
    """
    pending_s: float = 5.0
    """How long a connection may send nothing, or wait."""
    handshake_s: float = 5.0
    """How long a handshake may take."""
    late_s: float = 1.0
    """The same while others of its address wait for its place, or while others wait and its address is known: a
    scheduler has given up by then.
    """
    hurried_s: float = 0.25
    """The same while a known address waits, or one with fewer handshakes."""


UNREAD: Final = 16384
"""For ports without client certificates. A TLS client can change keys with 27 bytes, which costs the server 15
microseconds.
"""
WEBHOOK: Final = ConnectionLimits(
    served=2048, served_each=756, pending=1024, pending_each=512, handshakes=16, handshakes_each=8
)
"""For schedulers: each has one filter call at a time, and one bind call per pod that it binds. 500 of these may be held
for a group, each on a connection of its own, and there are 256 for others of its address, as schedulers on the host
network share one. A scheduler keeps two idle connections an entry, which is Go's default, so that all members of a
group may open theirs at once.
"""
ADMISSION: Final = ConnectionLimits(
    served=64, served_each=16, pending=64, pending_each=16, handshakes=4, handshakes_each=2, unread=UNREAD
)
"""For API servers: at most five, each with one connection per policy that is being applied."""
METRICS: Final = ConnectionLimits(
    served=64, served_each=16, pending=64, pending_each=16, handshakes=4, handshakes_each=2, unread=UNREAD
)
"""For Prometheus, with TLS: its servers have one connection each."""
PROBES: Final = ConnectionLimits(
    served=64, served_each=16, pending=64, pending_each=16, handshakes=16, handshakes_each=16, unread=UNREAD
)
"""For the kubelet and Prometheus."""
IDLE_S: Final = 10.0
"""On ports without client certificates: from the end of a request to the end of the next one's head."""


T = TypeVar("T")


@dataclass(slots=True)
class ConnectionsByAddress(Generic[T]):
    """Connections by address, the oldest first."""

    most: int
    each: int
    """Most connections of one address."""
    _at: dict[T, str] = field(default_factory=dict)
    _of: dict[str, dict[T, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[T]:
        return iter(self._at)

    def has(self, address: str) -> bool:
        """Return whether there is a connection from this address."""
        return address in self._of

    def is_full_for(self, address: str) -> bool:
        """Return whether a new connection from this address would displace another one from it."""
        count = len(self._of.get(address, ()))
        return count >= self.each or (len(self._at) >= self.most and count >= len(self._of[self._largest()]))

    def add(self, item: T, address: str) -> T | None:
        """Add a connection; return the one that must close for it, if any.

        That is the oldest of its own address, or of the address with the most connections.
        """
        displaced = None
        if self.is_full_for(address):
            displaced = next(iter(self._of[address]))
        elif len(self._at) >= self.most:
            displaced = next(iter(self._of[self._largest()]))
        if displaced is not None:
            self.remove(displaced)
        self._at[item] = address
        self._of.setdefault(address, {})[item] = None
        return displaced

    def remove(self, item: T) -> bool:
        """Remove a connection; return whether it was there."""
        address = self._at.pop(item, None)
        if address is None:
            return False
        rest = self._of[address]
        del rest[item]
        if not rest:
            del self._of[address]
        return True

    def _largest(self) -> str:
        return max(self._of, key=lambda address: len(self._of[address]))
