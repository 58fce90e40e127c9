"""Watches on demand: those that are wanted run, under the supervision of who runs the set."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from fairlead.kube.watch.reflector import Reflector


class ReflectorSet:
    """Reflectors by name, each from when it is wanted until it is not. A fault of one, as of its sink, ends `run`."""

    def __init__(self) -> None:
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
                    running[reflector] = group.create_task(reflector.run())
                for reflector in running.keys() - wanted:
                    running.pop(reflector).cancel()
                await self._wake.wait()
