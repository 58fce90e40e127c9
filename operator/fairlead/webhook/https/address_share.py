"""Who is there, by address: none takes the places of all others. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class ConnectionsByAddress(Generic[T]):
    """Those who are there, of each address the oldest first."""

    most: int
    each: int
    """Of one address."""
    _at: dict[T, str] = field(default_factory=dict)
    _of: dict[str, dict[T, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[T]:
        return iter(self._at)

    def has(self, address: str) -> bool:
        """Whether anybody is from there."""
        return address in self._of

    def is_full_for(self, address: str) -> bool:
        """Whether one more from there would take the place of another one from there."""
        there = len(self._of.get(address, ()))
        return there >= self.each or (len(self._at) >= self.most and there >= len(self._of[self._largest()]))

    def add(self, one: T, address: str) -> T | None:
        """Let it in; who has to leave for it: the oldest of its own address, or of the one that most are from."""
        leaves = None
        if self.is_full_for(address):
            leaves = next(iter(self._of[address]))
        elif len(self._at) >= self.most:
            leaves = next(iter(self._of[self._largest()]))
        if leaves is not None:
            self.remove(leaves)
        self._at[one] = address
        self._of.setdefault(address, {})[one] = None
        return leaves

    def remove(self, one: T) -> bool:
        """Whether it was there."""
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
