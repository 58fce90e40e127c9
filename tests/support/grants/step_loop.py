"""An event loop that stands still until it is told which reply arrives and which timer fires."""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast


class StepLoop(asyncio.AbstractEventLoop):
    """Runs what is ready, and nothing else. A timer may fire at any moment, as no clock takes part."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self.timers: list[asyncio.TimerHandle] = []
        self.errors: list[str] = []
        self.dead = False

    def run_ready(self) -> None:
        events._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(None)
        if self.timers:
            self.timers = [one for one in self.timers if not one.cancelled()]

    def fire(self, timer: asyncio.TimerHandle) -> None:
        self.timers.remove(timer)
        self._ready.append(timer)

    def stop_dead(self) -> None:
        """End as a killed process does: nothing of it runs any more."""
        self.dead = True
        self._ready.clear()
        self.timers.clear()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(cast("Callable[..., Any]", callback), args, self, context)
        if not self.dead:
            self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(delay, cast("Callable[..., Any]", callback), args, self, context)
        self.timers.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **_named: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        return asyncio.Task(coro, loop=self)

    def time(self) -> float:
        return 0.0

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer that is cancelled."""
