"""A loop in which time passes only when nobody has anything to do, and then at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits for somebody else"
            self.time += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.time


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine; no time passes for others."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
