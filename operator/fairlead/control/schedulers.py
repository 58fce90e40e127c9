"""All schedulers that there are, and are to be: a worker for each, and what a pass over one of them needs to know."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.cluster.resources import PODS
from fairlead.control import unlisted
from fairlead.control.announce import Announcer
from fairlead.control.ever import Ever
from fairlead.control.gathering import Gathered, is_leaving, paused, scheduler_of
from fairlead.control.passes import Passed, Passes
from fairlead.control.reconcile import Asked
from fairlead.control.statuses import Statuses
from fairlead.control.worker import Worker
from fairlead.render.facts import Facts
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.wiring import Wiring
from fairlead.webhook.state import ReplicaState

_NOTHING: Final = Passed()
_NO_WIRING: Final = Wiring()
_DROPPED: Final = 20
"""Of so many that are gone it is asked at once whether pods name them still."""
_LIVING: Final = ",status.phase!=Succeeded,status.phase!=Failed"


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
    are with the authorities that these were started with, and of those that are not to begin. Raises
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
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two at once would take the same place."""

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

    async def tidy(self) -> None:
        """Look at what only our memory knows, and forget those that are gone once no pod names them any more."""
        if not self.leads():
            return
        self.ever.forget()
        await self.ever.read()
        for name in self.ever.there - self._workers.keys():
            self.due(name)
        gone = [one for one in self.ever.outdated(self.now()) if not (self.gathered.of(one) or self._is_listed(one))]
        for name in random.sample(gone, min(len(gone), _DROPPED)):
            if not await self.passes.objects.any(PODS, fieldSelector=f"spec.schedulerName={name}{_LIVING}"):
                await self.ever.drop(name)

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
        await self.ever.read()
        try:
            asked = self.gathered.asked(scheduler, self.settings(), self.answers())
        except InvalidObjectError as error:
            return Passed(refused=str(error))
        denied = unlisted.denied(scheduler, self.settings()) if asked.exists else ""
        if not self._is_there(scheduler) and (why := denied or self._full(scheduler)):
            return Passed(refused=why, full=not denied)
        if denied:
            asked = replace(asked, policies=(), serving=_NO_WIRING, exists=False, denied=True)
        passed = await self._pass(scheduler, asked)
        if passed.gone and scheduler in self.ever.there:
            await self.ever.gone(scheduler, self.now())
        if passed.gone or (passed.refused and not self.passed(scheduler).refused):
            self._make_way()
        if denied and not passed.refused:
            rest = "" if passed.gone else "; its scheduler goes 10 minutes after that was set"
            return replace(passed, refused=denied + rest)
        if passed.refused and not self._is_there(scheduler) and (why := self._full(scheduler)):
            return Passed(refused=why, full=True)
        return passed

    async def _pass(self, scheduler: str, asked: Asked) -> Passed:
        drifted = list[str]()
        try:
            return await self.passes.run(
                asked,
                lambda: self._facts(scheduler),
                paused=self._is_paused(scheduler) and not asked.denied,
                known=asked.listed or self._is_there(scheduler) or (scheduler in self.ever and not asked.exists),
                gone=self.ever.gone_since(scheduler),
                noted=scheduler in self.ever.there,
                before=self.passed(scheduler).decision,
                begin=lambda: self._begin(scheduler),
                drifted=drifted.append,
            )
        finally:
            for text in filter(None, (*drifted, self.restored(scheduler))):
                self.drift(text.partition(" ")[0])
                for policy in self.gathered.of(scheduler)[:1]:
                    await self.announcer.about(policy, "Warning", "DriftCorrected", text, "Correct", self.now())

    async def _begin(self, scheduler: str) -> None:
        """From now on it is one of ours. Raises InvalidObjectError where others were faster."""
        async with self._beginning:
            if not self._is_there(scheduler) and (why := self._full(scheduler)):
                raise InvalidObjectError([FieldError(("schedulers",), why)])
            await self.ever.note(scheduler, self.now())

    def _make_way(self) -> None:
        """Look soon at those that waited for a place."""
        for one in self._workers.values():
            if one.passed.full:
                one.due()

    async def _facts(self, scheduler: str) -> Facts:
        there = {
            name: one.passed
            for name, one in self._workers.items()
            # nobody else has a certificate: he may be refused in a moment
            if name == scheduler or self._is_listed(name) or self._is_there(name) or one.passed.rolled
        }
        rolled = {name: one.rolled for name, one in there.items() if not (one.refused or one.gone)}
        waits = [name for name in rolled if self._is_paused(name) and not self._is_there(name)]
        return await self.facts(scheduler, rolled, waits)

    def _full(self, scheduler: str) -> str:
        """Why it may not begin beside the others; empty if it may, and where no policy asks for it."""
        if all(map(is_leaving, self.gathered.of(scheduler))):
            return ""
        return unlisted.full(scheduler, self.settings(), self.ever.there, lambda: self._begin_too(scheduler))

    def _begin_too(self, scheduler: str) -> Mapping[str, str]:
        """Whoever is refused for something else, and whoever is paused before it began, keeps nobody waiting."""
        policies = self.gathered.policies.values()
        idle = {scheduler_of(one) for one in policies if paused([one])}
        idle |= {name for name, one in self._workers.items() if one.passed.refused and not one.passed.full}
        asked = unlisted.asked_since(policies)
        return {name: since for name, since in asked.items() if name == scheduler or name not in idle}

    def _is_there(self, scheduler: str) -> bool:
        return scheduler in self.ever.there or self._was_managed(scheduler)

    def _is_paused(self, scheduler: str) -> bool:
        return paused(self.gathered.of(scheduler))

    def _is_over(self, scheduler: str, passed: Passed) -> bool:
        over = passed.gone or (passed.refused and not self._is_listed(scheduler))
        return bool(over) and not self.gathered.of(scheduler)

    def _is_listed(self, scheduler: str) -> bool:
        return self.settings().lists(scheduler)

    def _was_managed(self, scheduler: str) -> bool:
        """Whether a policy says that it ran: its status outlives an operator, and may be about another scheduler."""
        said = [one.get("status", {}).get("scheduler", {}) for one in self.gathered.of(scheduler)]
        return any(one.get("name") == scheduler and one.get("lastGoodConfigHash") for one in said)
