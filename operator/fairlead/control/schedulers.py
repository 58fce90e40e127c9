"""All schedulers that there are, and are to be: a worker for each, and what a pass over one of them needs to know."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.control.announce import Announcer
from fairlead.control.ever import Ever
from fairlead.control.gathering import Gathered, paused
from fairlead.control.passes import Passed, Passes
from fairlead.control.statuses import Statuses
from fairlead.control.worker import Worker
from fairlead.render.facts import Facts
from fairlead.render.operator_settings import OperatorSettings
from fairlead.webhook.state import ReplicaState

_NOTHING: Final = Passed()


@dataclass(slots=True, eq=False, kw_only=True)
class Schedulers:
    """Of one operator."""

    gathered: Gathered
    passes: Passes
    statuses: Statuses
    announcer: Announcer
    ever: Ever
    answers: Callable[[], Mapping[str, ReplicaState | str]]
    """What the replicas said last."""
    settings: Callable[[], OperatorSettings]
    facts: Callable[[str, Mapping[str, str], Collection[str]], Awaitable[Facts]]
    """What is known of the cluster, once certificates are as they have to be; told of a scheduler, of all that there
    are with the authorities that these were started with, and of those for which nothing is written. Raises
    InvalidObjectError."""
    restored: Callable[[str], str]
    """What somebody had done to a scheduler's certificate, told once; empty if nobody had."""
    leads: Callable[[], bool]
    drift: Callable[[str], None]
    """Told of the kind of each object that somebody had changed."""
    now: Callable[[], datetime]
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the replicas were asked: a leader that has just begun says nothing that it does not know yet."""
    _workers: dict[str, Worker] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._workers])

    def due(self, scheduler: str) -> None:
        """Look at a scheduler soon."""
        if scheduler not in self._workers:
            self._workers[scheduler] = Worker(
                scheduler=scheduler,
                once=lambda: self._once(scheduler),
                say=lambda passed: self.statuses.say(scheduler, passed),
                is_over=lambda passed: self._is_over(scheduler, passed),
            )
            work = self._work(scheduler)
            self._tasks[scheduler] = asyncio.get_running_loop().create_task(work, name=f"scheduler {scheduler}")
        self._workers[scheduler].due()

    def passed(self, scheduler: str) -> Passed:
        """What the last pass over it came to."""
        worker = self._workers.get(scheduler)
        return _NOTHING if worker is None else worker.passed

    async def end(self) -> None:
        """Stop all work."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, scheduler: str) -> None:
        await self.begun.wait()
        await self._workers[scheduler].run()
        del self._workers[scheduler], self._tasks[scheduler]

    async def _once(self, scheduler: str) -> Passed:
        if not self.leads():
            return self.passed(scheduler)
        try:
            asked = self.gathered.asked(scheduler, self.settings(), self.answers())
        except InvalidObjectError as error:
            return Passed(refused=str(error))
        drifted, noted = list[str](), await self.ever.managed(scheduler)
        try:
            return await self.passes.run(
                asked,
                lambda: self._facts(scheduler),
                paused=paused(self.gathered.of(scheduler)),
                known=asked.listed or noted or self._was_managed(scheduler),
                noted=noted,
                before=self.passed(scheduler).decision,
                begin=lambda: self.ever.note(scheduler, self.now()),
                drifted=drifted.append,
            )
        finally:
            for text in filter(None, (*drifted, self.restored(scheduler))):
                self.drift(text.partition(" ")[0])
                for policy in self.gathered.of(scheduler)[:1]:
                    await self.announcer.about(policy, "Warning", "DriftCorrected", text, "Correct", self.now())

    async def _facts(self, scheduler: str) -> Facts:
        there = {name: one.passed for name, one in self._workers.items()}
        rolled = {name: one.rolled for name, one in there.items() if not (one.refused or one.gone)}
        return await self.facts(scheduler, rolled, [name for name in rolled if paused(self.gathered.of(name))])

    def _is_over(self, scheduler: str, passed: Passed) -> bool:
        over = passed.gone or (passed.refused and not self._is_listed(scheduler))
        return bool(over) and not self.gathered.of(scheduler)

    def _is_listed(self, scheduler: str) -> bool:
        return any(one.name == scheduler for one in self.settings().schedulers)

    def _was_managed(self, scheduler: str) -> bool:
        """Whether a policy says that it ran: its status outlives an operator."""
        policies = self.gathered.of(scheduler)
        return any(one.get("status", {}).get("scheduler", {}).get("lastGoodConfigHash") for one in policies)
