"""Turns of the event loop for computations that pause, so that calls are answered in between."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from fairlead.cooperative import Pauses, Share, Steps, T

PART: Final = 1 / 2
"""Most of a core that all of them together take for long, so that calls find the other half."""
_LARGE_PART: Final = 1 / 5
"""Most of a core that large and compressed replies together take: most calls then find the loop idle. Those of honest
servers are small, and not compressed."""
_LARGE_BURST_S: Final = 0.02
_ENDED: Final = object()


class LoopTurns:
    """Turns that several computations share: between two of them goes everything else, whatever their number."""

    def __init__(self, clock: Callable[[], float] = perf_counter, share: Share | None = None) -> None:
        self._clock = clock
        self.share: Final = share or Share(clock, PART)
        self._lock = asyncio.Lock()

    async def run(self, steps: Steps[T]) -> T:
        """Run a computation, one stretch a turn."""
        stretches = iter(pauses := Pauses(steps))
        while True:
            async with self._lock:
                began = self._clock()
                if next(stretches, _ENDED) is _ENDED:
                    return pauses.result
                await asyncio.sleep(self.share.pause(began))


def turns_of_large_replies() -> LoopTurns:
    """Return the turns of what is read from large replies, which take less time than others."""
    return LoopTurns(perf_counter, Share(perf_counter, _LARGE_PART, _LARGE_BURST_S))


def after_others(function: Callable[[], None]) -> None:
    """Call a function in the turn of the event loop after the next one, which finds the calls that wait."""
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, function)


def later(seconds: float, function: Callable[[], None]) -> asyncio.TimerHandle:
    """Call a function in so many seconds."""
    return asyncio.get_running_loop().call_later(seconds, function)
