"""Turns of reviews: few run at once, and the address with the fewest is next."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class BusyError(Exception):
    """All places to wait are taken."""


@dataclass(slots=True, eq=False)
class ReviewTurns:
    """Turns that are taken, and the queue of those that wait."""

    at_once: int
    each: int
    """Turns of one address."""
    waiting: int
    _taken: Counter[str] = field(default_factory=Counter)
    _queue: dict[asyncio.Future[None], str] = field(default_factory=dict)

    @asynccontextmanager
    async def of(self, address: str) -> AsyncIterator[None]:
        """Hold one turn. Raises BusyError, also if a later request takes the place in the queue."""
        if self._is_free_for(address):
            self._taken[address] += 1
        else:
            await self._wait(address)
        try:
            yield
        finally:
            self._give_back(address)

    def _is_free_for(self, address: str) -> bool:
        return self._taken.total() < self.at_once and self._taken[address] < self.each

    async def _wait(self, address: str) -> None:
        if len(self._queue) >= self.waiting:
            self._make_room_for(address)
        turn = asyncio.get_running_loop().create_future()
        self._queue[turn] = address
        try:
            await turn
        except asyncio.CancelledError:
            if self._queue.pop(turn, None) is None and not turn.cancelled() and turn.exception() is None:
                self._give_back(address)  # the turn came just now
            raise

    def _make_room_for(self, address: str) -> None:
        """Make room in the queue: the address with the most requests gives up its last one. Raises BusyError."""
        taken = self._taken + Counter(self._queue.values())
        last = max(reversed(self._waiting()), key=lambda turn: taken[self._queue[turn]], default=None)
        if last is None or taken[self._queue[last]] <= taken[address] + 1:
            raise BusyError
        del self._queue[last]
        last.set_exception(BusyError())

    def _waiting(self) -> list[asyncio.Future[None]]:
        """Return the queue without requests that were cancelled and not yet removed."""
        return [turn for turn in self._queue if not turn.done()]

    def _give_back(self, address: str) -> None:
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]
        while turn := min(self._waiting(), key=lambda one: self._taken[self._queue[one]], default=None):
            if not self._is_free_for(self._queue[turn]):
                return
            self._taken[self._queue.pop(turn)] += 1
            turn.set_result(None)
