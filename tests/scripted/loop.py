"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_TOO_LONG_S = 60
_CLOSED_S = 1.0
"""A connection over TLS takes a moment to close; one that a test leaves open on purpose is not waited for longer."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a loop of its own. One that waits for what never comes fails, after a long while."""

    @functools.wraps(test)
    def run(*arguments: object, **fixtures: object) -> None:
        async def limited() -> None:
            async with asyncio.timeout(_TOO_LONG_S):
                await test(*arguments, **fixtures)

        run_to_its_end(limited())

    return run


def run_to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run in a loop of its own, which ends once the connections are closed: others would be told of as forgotten."""

    async def whole() -> T:
        loop = asyncio.get_running_loop()
        before = _open(loop)
        try:
            return await work
        finally:
            end = loop.time() + _CLOSED_S
            while _open(loop) > before and loop.time() < end:
                await asyncio.sleep(0.005)

    return asyncio.run(whole())


def _open(loop: asyncio.AbstractEventLoop) -> int:
    """Count what the loop watches."""
    selector: Any = getattr(loop, "_selector", None)
    return 0 if selector is None else len(selector.get_map() or ())
