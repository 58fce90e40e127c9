"""A clock that tests wind: waits of retries pass at once, longer ones when a test says so."""

import asyncio
from collections.abc import Callable

from fairlead.kube.http.client import Clock

SHORT_S = 31.0


class Wound:
    """Time as a test wants it. `random` is a constant, unless the test gives another."""

    def __init__(self, random: Callable[[], float] = lambda: 0.5) -> None:
        self.time = 1000.0
        self.waited: list[float] = []
        """The short waits, in order."""
        self.waiting = asyncio.Event()
        """Set when somebody begins a long wait."""
        self._long: list[tuple[float, asyncio.Future[None]]] = []
        self.clock = Clock(lambda: self.time, self._sleep, random)

    def advance(self, seconds: float) -> None:
        """Let time pass; who has waited long enough goes on."""
        self.time += seconds
        for until, waiter in self._long:
            if until <= self.time and not waiter.done():
                waiter.set_result(None)

    async def _sleep(self, seconds: float) -> None:
        if seconds < SHORT_S:
            self.waited.append(seconds)
            self.time += seconds
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        entry = self.time + seconds, waiter
        self._long.append(entry)
        self.waiting.set()
        try:
            await waiter
        finally:
            self._long.remove(entry)
