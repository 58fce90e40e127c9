"""Helpers of a process: repeated tasks and those of a leader, signals, ports and file descriptors."""

import asyncio
import logging
import resource
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final, NoReturn, Protocol

from fairlead.logs import FaultError
from fairlead.process.settings import Address
from fairlead.strategies.guard import LIMIT_S, StrategyGuard
from fairlead.webhook.capability import Capability

Work = Callable[[], Coroutine[None, None, None]]
_DESCRIPTORS: Final = 16_384
_LOOK_S: Final = 1.0
_AGAIN_S: Final = 30.0
_END_S: Final = 5.0
LOG: Final = logging.getLogger(__name__)


async def do_nothing() -> None:
    """Do nothing."""


def every(seconds: float, work: Work) -> Work:
    """Return a task that repeats this one, with a pause before each time."""

    async def again() -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    return again


async def listen(start: Callable[[str | None, int], Awaitable[int]], address: Address) -> int:
    """Start to listen; return the port. Raises OSError with the address in its message."""
    try:
        return await start(address.host or None, address.port)
    except (OSError, UnicodeError) as error:  # a UnicodeError is a name with two dots in a row
        number, why = (error.errno, error.strerror) if isinstance(error, OSError) else (None, None)
        raise OSError(number, f"cannot listen on {address}: {why or error}") from error


async def done_before(stop: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
    """Run the work; return whether it was done before `stop` was set."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return False


def raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors: some runtimes set 1,024, fewer than the ports accept connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def told_to_stop() -> asyncio.Event:
    """Return an event that a signal sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


@contextmanager
def endless_strategies_interrupted(guard: StrategyGuard, limit_s: float = LIMIT_S) -> Iterator[None]:
    """Interrupt each custom strategy that does not return. Enter it in the main thread, which runs the strategies.

    A signal does it, because its handler runs in the main thread between two steps of the strategy, and nowhere else.
    """
    main = threading.get_ident()
    guard.is_serving_thread, guard.clock = lambda: threading.get_ident() == main, monotonic
    over = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: guard.interrupt())

    def watch() -> None:
        entered, since = 0, 0.0
        while not over.wait(limit_s / 4):
            if guard.entered != entered or not guard.running:
                entered, since = guard.entered, monotonic()
            elif monotonic() - since >= limit_s:
                signal.pthread_kill(main, signal.SIGUSR1)

    watchdog = threading.Thread(target=watch, name="strategy-watchdog", daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        over.set()
        watchdog.join()
        signal.signal(signal.SIGUSR1, before)


class LeaderCandidate(Protocol):
    """Candidate in the leader election, which runs the controller while it leads."""

    def start(self) -> None:
        """Become a candidate."""

    def stop(self, within_s: float) -> None:
        """Stop leading and release the Lease. Waits."""

    @property
    def is_leader(self) -> bool:
        """True if it leads now."""

    @property
    def has_lease(self) -> bool:
        """True if the Lease is its own now, also while another operator manages the policies."""

    @property
    def other_leader(self) -> str:
        """Address and port of the replica that leads; "" if it is this one, or none is known."""

    def summary(self) -> str:
        """Return one line for /readyz: who leads, and what keeps this replica from leading."""


class LeaderTasks:
    """Tasks of the capabilities of a replica while it leads."""

    def __init__(self, capabilities: Sequence[Capability], is_leader: Callable[[], bool]) -> None:
        self._capabilities, self._is_leader = capabilities, is_leader
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    async def run(self) -> NoReturn:
        """Begin and end the tasks as this replica leads, until cancelled."""
        while True:
            if self._is_leader() and not (self._tasks or self._is_over):
                self._tasks = [asyncio.create_task(self._keep_running(one)) for one in self._capabilities]
            elif self._tasks and not self._is_leader():
                await self._end()
            await asyncio.sleep(_LOOK_S)

    async def stop(self) -> None:
        """End the tasks for good, and wait for them, but not for long."""
        self._is_over = True
        await self._end()

    async def _end(self) -> None:
        tasks, self._tasks = self._tasks, []
        for one in tasks:
            one.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_S)

    async def _keep_running(self, capability: Capability) -> None:
        """Run the task of a capability; a fault of one ends no other, and it is tried again."""
        while True:
            try:
                await capability.lead(self._is_leader)
            except Exception as error:
                LOG.exception("lead.fault", exc_info=FaultError(error), extra={"capability": type(capability).__name__})
                await asyncio.sleep(_AGAIN_S)
            else:
                return
