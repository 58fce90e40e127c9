"""Turns of the statuses in which only counters changed: at most two of them are written in a second. Pure."""

from dataclasses import dataclass, field
from typing import Final

EVERY_S: Final = 0.6
"""Time between the beginnings of two turns: 100 policies have one each minute."""
LASTS_S: Final = 0.2
"""Length of a turn. From its beginning to the end of the next but one it is more than a second."""


@dataclass(slots=True, eq=False)
class CounterTurns:
    """Turns in the order in which statuses ask, so that none has to wait for ever."""

    _turns: dict[str, float] = field(default_factory=dict)
    """Beginning of the turn of each status that waits."""
    _next: float = 0.0
    """Beginning of the first turn that is free."""

    def wait_s(self, name: str, now: float) -> float:
        """Return how long the turn of a status is off; 0 if it is now, which ends it."""
        turn = self._turns.get(name)
        if turn is None or now >= turn + LASTS_S:  # it asks for the first time, or has missed its turn
            turn = self._turns[name] = max(now, self._next)
            self._next = turn + EVERY_S
        if now < turn:
            return turn - now
        del self._turns[name]
        return 0.0

    def give_up(self, name: str) -> None:
        """Forget a status that does not wait any more."""
        self._turns.pop(name, None)
