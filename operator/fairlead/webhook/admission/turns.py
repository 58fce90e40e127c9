"""Whose turn it is: few at once, and first whoever comes from where nobody's is. The others wait, or are too many."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class BusyError(Exception):
    """There is no place to wait."""


@dataclass(slots=True, eq=False)
class ReviewTurns:
    """Those who have one, and those who wait."""

    at_once: int
    each: int
    """Of one address."""
    waiting: int
    _taken: Counter[str] = field(default_factory=Counter)
    _queue: dict[asyncio.Future[None], str] = field(default_factory=dict)

    @asynccontextmanager
    async def of(self, address: str) -> AsyncIterator[None]:
        """One turn. Raises BusyError, also when somebody comes later who has more right to wait."""
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
                self._give_back(address)  # it has just come
            raise

    def _make_room_for(self, address: str) -> None:
        """Who has most sends his last one away."""
        there = self._taken + Counter(self._queue.values())
        last = max(reversed(self._waiting()), key=lambda turn: there[self._queue[turn]], default=None)
        if last is None or there[self._queue[last]] <= there[address] + 1:
            raise BusyError
        del self._queue[last]
        last.set_exception(BusyError())

    def _waiting(self) -> list[asyncio.Future[None]]:
        """But for those who have gone and do not know it yet."""
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
