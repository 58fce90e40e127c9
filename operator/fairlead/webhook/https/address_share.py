"""Connections counted by address, so that no address takes the places of all others. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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

    def add(self, one: T, address: str) -> T | None:
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
        self._at[one] = address
        self._of.setdefault(address, {})[one] = None
        return displaced

    def remove(self, one: T) -> bool:
        """Remove a connection; return whether it was there."""
        address = self._at.pop(one, None)
        if address is None:
            return False
        rest = self._of[address]
        del rest[one]
        if not rest:
            del self._of[address]
        return True

    def _largest(self) -> str:
        return max(self._of, key=lambda address: len(self._of[address]))
