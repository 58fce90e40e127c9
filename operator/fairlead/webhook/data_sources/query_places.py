"""Places for queries at a server, which those who ask get in turn, and the connections to it.

One that asks much waits for itself, and one that asks little does not wait for others. A query that was not answered in
time, or was never answered, gets one of a part of the places only: queries that hang leave room for those that do not.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp

AT_ONCE: Final = 20
"""Queries that a server runs at the same time if its query.max-concurrency is the default; others would wait there."""
ANSWERED_AT_ONCE: Final = 15
UNANSWERED_AT_ONCE: Final = 10


class _Lane:
    """Queries that wait for one kind of places, by owner."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.taken = 0

    def wait(self, owner: str) -> "asyncio.Future[None]":
        """Return a future that ends when its owner has a place."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(place)
        return place

    def give(self) -> bool:
        """Give a place to the next owner; return whether there was one to give, and an owner."""
        while self.taken < self._most and self._waiting:
            owner = next(iter(self._waiting))
            places = self._waiting.pop(owner)
            place = places.popleft()
            if places:
                self._waiting[owner] = places  # behind all others
            if not place.done():
                place.set_result(None)
                self.taken += 1
                return True
        return False


class QueryPlaces:
    """Places of one server."""

    def __init__(self) -> None:
        self._lanes = {True: _Lane(ANSWERED_AT_ONCE), False: _Lane(UNANSWERED_AT_ONCE)}

    @asynccontextmanager
    async def place(self, owner: str, *, is_answered: bool) -> AsyncIterator[None]:
        """Wait for a place, and hold it. `is_answered`: whether the server answered in time when it was last asked."""
        lane = self._lanes[is_answered]
        place = lane.wait(owner)
        try:
            self._give()
            await place
            yield
        finally:
            if place.done() and not place.cancelled():
                lane.taken -= 1
            place.cancel()
            self._give()

    def _give(self) -> None:
        while sum(lane.taken for lane in self._lanes.values()) < AT_ONCE:
            if not any(lane.give() for lane in self._lanes.values()):
                return


class QueryConnections(aiohttp.TCPConnector):
    """Connections that are kept, except those on which something came that was not asked for: it is no answer."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """Return a connection on which nothing has come yet."""
        for _ in range(AT_ONCE + 1):
            made = await super().connect(req, traces, timeout)
            if made.protocol is not None and not made.protocol.should_close:
                return made
            made.close()
        raise aiohttp.ServerDisconnectedError("it sends what was not asked for")
