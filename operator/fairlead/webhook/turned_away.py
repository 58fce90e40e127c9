"""Who was turned away lately, and why: the leader asks whether that happened to a scheduler of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ADDRESSES: Final = 128
LATELY: Final = 10_000_000_000
"""Nanoseconds."""


@dataclass(slots=True)
class TurnedAway:
    """The last ones, each with its last reason. Moments are of a clock that never goes back."""

    limit: int = ADDRESSES
    _last: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, address: str, reason: str, at: int) -> None:
        """One more."""
        self._last.pop(address, None)
        if len(self._last) >= self.limit:
            del self._last[next(iter(self._last))]
        self._last[address] = at, reason

    def lately(self, at: int) -> Mapping[str, str]:
        """Why, by their addresses."""
        return {address: reason for address, (when, reason) in self._last.items() if at - when <= LATELY}
