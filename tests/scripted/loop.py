"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

_TOO_LONG_S = 60


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a loop of its own. One that waits for what never comes fails, after a long while."""

    @functools.wraps(test)
    def run(*arguments: object, **fixtures: object) -> None:
        async def limited() -> None:
            async with asyncio.timeout(_TOO_LONG_S):
                await test(*arguments, **fixtures)

        asyncio.run(limited())

    return run
