"""Watches on demand: those that are wanted run, and a fault of one is seen, ends no other, and is tried again."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from fairlead.kube.watch.reflector import Reflector
from fairlead.logs import FaultError

LOG: Final = logging.getLogger(__name__)
_RETRY_S: Final = 30.0


class ReflectorSet:
    """Reflectors by name, each from when it is wanted until it is not."""

    def __init__(self, retry_s: float = _RETRY_S) -> None:
        self._retry_s = retry_s
        self._reflectors: dict[str, Reflector[Any]] = {}
        self._wake = asyncio.Event()

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return those that are wanted, by name."""
        return self._reflectors

    def want(self, wanted: Mapping[str, Callable[[], Reflector[Any]]]) -> None:
        """Set which are wanted; new ones are made, and others end."""
        before = self._reflectors
        self._reflectors = {name: before[name] if name in before else make() for name, make in wanted.items()}
        self._wake.set()

    async def run(self) -> NoReturn:
        """Run what is wanted until cancelled."""
        running: dict[Reflector[Any], asyncio.Task[NoReturn]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                wanted = {*self._reflectors.values()}
                for reflector in wanted - running.keys():
                    running[reflector] = group.create_task(self._keep_running(reflector))
                for reflector in running.keys() - wanted:
                    running.pop(reflector).cancel()
                await self._wake.wait()

    async def _keep_running(self, reflector: Reflector[Any]) -> NoReturn:
        """Run a reflector; after a fault, as of its sink, list again a while later. Until then its error is shown."""
        while True:
            try:
                await reflector.run()
            except Exception as error:  # what an author makes us watch must not end the process
                extra = {"resource": str(reflector.where)}
                LOG.exception("reflector.fault", exc_info=FaultError(error), extra=extra)
                reflector.state.last_error = f"an internal fault ({type(error).__name__}); the log says where"
            await asyncio.sleep(self._retry_s)
