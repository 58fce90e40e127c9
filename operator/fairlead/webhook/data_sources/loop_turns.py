"""Turns of the event loop for computations that pause, so that calls are answered in between."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from fairlead.cooperative import Pauses, Share, Steps, T

PART: Final = 1 / 2
"""Most of a core that all of them together take for long, so that calls find the other half."""
_ENDED: Final = object()


class LoopTurns:
    """Turns that several computations share: between two of them goes everything else, whatever their number."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._share = Share(clock, PART)
        self._lock = asyncio.Lock()

    async def run(self, steps: Steps[T]) -> T:
        """Run a computation, one stretch a turn."""
        stretches = iter(pauses := Pauses(steps))
        while True:
            async with self._lock:
                began = self._clock()
                if next(stretches, _ENDED) is _ENDED:
                    return pauses.result
                await asyncio.sleep(self._share.pause(began))
