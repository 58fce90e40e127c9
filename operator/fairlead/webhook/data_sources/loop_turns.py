"""Turns of the event loop for computations that pause, so that calls are answered in between."""

import asyncio

from fairlead.cooperative import Pauses, Steps, T


async def in_turns(steps: Steps[T]) -> T:
    """Run a computation, with a turn for the loop at each of its pauses."""
    for _ in (pauses := Pauses(steps)):
        await asyncio.sleep(0)
    return pauses.result
