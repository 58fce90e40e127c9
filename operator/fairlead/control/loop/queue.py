"""All schedulers that there are, and are to be: a worker for each, and what a pass over one of them needs to know."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.control.decide import unlisted_schedulers
from fairlead.control.decide.decide import DesiredScheduler
from fairlead.control.decide.desired import PolicyIndex, is_leaving, is_paused, scheduler_of
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.reconciler import Reconciler, ReconcileResult
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.errors import ClusterError, ConflictError, ForbiddenError
from fairlead.kube.resources import PODS
from fairlead.pki.authority import AuthorityError
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.render.extenders import Wiring
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
RESYNC_S: Final = 300.0
_QUIET_S: Final = 10.0
_AGAIN_S: Final = 2.0
_MOST_AGAIN_S: Final = 30.0
NOTHING: Final = ReconcileResult()


@dataclass(slots=True, eq=False, kw_only=True)
class Worker:
    """Of one scheduler."""

    scheduler: str
    reconcile: Callable[[], Awaitable[ReconcileResult]]
    """One pass. Raises ClusterError or AuthorityError where it has to be done again."""
    report: Callable[[ReconcileResult], Awaitable[None]]
    """Told what came of each."""
    is_finished: Callable[[ReconcileResult], bool]
    """Whether there is nothing more to do for it."""
    result: ReconcileResult = NOTHING
    """What the last pass came to, or the one before those that failed."""
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0

    def enqueue(self) -> None:
        """Another pass soon."""
        self._due.set()

    async def run(self) -> None:
        """Until there is nothing more to do."""
        again = 0.0
        while True:
            try:
                async with asyncio.timeout(again):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            again = await self._reconcile_once()
            await self.report(self.result)
            if self.is_finished(self.result) and not self._due.is_set():
                return

    async def _reconcile_once(self) -> float:
        """One pass; after how long the next one follows though nothing happens."""
        try:
            self.result = await self.reconcile()
        except (ClusterError, AuthorityError) as error:
            self._failures += 1
            again: float = min(_AGAIN_S * 2**self._failures, _MOST_AGAIN_S) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            if not isinstance(error, ConflictError) or self._failures > 1:  # it is seen next time who was faster
                lacks = isinstance(error, ForbiddenError) and error.is_of_rbac
                missing, failed = (str(error), "") if lacks else ("", str(error))
                self.result = replace(self.result, missing_permission=missing, failed=failed)
            extra = {"scheduler": self.scheduler, "why": str(error), "again": f"{again:.0f} s"}
            LOG.warning("a pass failed", extra=extra)
            return again
        except Exception:
            self._failures += 1
            self.result = replace(
                self.result, missing_permission="", failed="a fault of the operator: its log says more"
            )
            LOG.exception("a pass failed, and it is a fault of ours", extra={"scheduler": self.scheduler})
            return _MOST_AGAIN_S
        self._failures = 0
        return requeue_after_s(self.result)


def requeue_after_s(passed: ReconcileResult) -> float:
    """How long nothing has to be looked at."""
    decision = passed.decision
    if passed.refused:
        return _MOST_AGAIN_S
    resync = RESYNC_S * random.uniform(0.8, 1.2)  # noqa: S311  no secret
    if passed.paused:
        return resync
    if decision is not None and (decision.phase == "Rolling" or (decision.lifecycle == "Goes" and not passed.gone)):
        return _AGAIN_S
    if decision is not None and decision.phase == "Steady" and decision.message:
        return _QUIET_S
    left = decision.requeue_after_s if decision is not None else None
    waits = decision is not None and decision.lifecycle == "Waits"
    return min(resync, left + 0.1 if left is not None else resync, _QUIET_S if waits else resync)


_NO_WIRING: Final = Wiring()
_DROPPED: Final = 20
"""Of so many that are gone it is asked at once whether pods name them still."""
_LIVING: Final = ",status.phase!=Succeeded,status.phase!=Failed"


@dataclass(slots=True, eq=False, kw_only=True)
class SchedulerQueue:
    """Of one operator."""

    policy_index: PolicyIndex
    reconciler: Reconciler
    statuses: StatusWriter
    events: EventRecorder
    managed: ManagedSchedulers
    states: Callable[[], Mapping[str, ReplicaState | str]]
    """What the replicas said last."""
    settings: Callable[[], OperatorSettings]
    facts: Callable[[str, Mapping[str, str], Collection[str]], Awaitable[ClusterFacts]]
    """What is known of the cluster, once certificates are as they have to be; told of a scheduler, of all that there
    are with the authorities that these were started with, and of those that are not to begin. Raises
    InvalidObjectError."""
    pop_restored: Callable[[str], str]
    """What somebody had done to a scheduler's certificate, told once; empty if nobody had."""
    is_leader: Callable[[], bool]
    drift: Callable[[str], None]
    """Told of the kind of each object that somebody had changed."""
    now: Callable[[], datetime]
    replicas_polled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the replicas were asked: a leader that has just begun says nothing that it does not know yet."""
    _workers: dict[str, Worker] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two at once would take the same place."""

    def __iter__(self) -> Iterator[str]:
        return iter([*self._workers])

    def enqueue(self, scheduler: str) -> None:
        """Look at a scheduler soon."""
        if scheduler not in self._workers:
            self._workers[scheduler] = Worker(
                scheduler=scheduler,
                reconcile=lambda: self._reconcile(scheduler),
                report=lambda passed: self.statuses.write(scheduler, passed),
                is_finished=lambda passed: self._is_over(scheduler, passed),
            )
            work = self._work(scheduler)
            self._tasks[scheduler] = asyncio.get_running_loop().create_task(work, name=f"scheduler {scheduler}")
        self._workers[scheduler].enqueue()

    def result(self, scheduler: str) -> ReconcileResult:
        """What the last pass over it came to."""
        worker = self._workers.get(scheduler)
        return NOTHING if worker is None else worker.result

    async def drop_finished(self) -> None:
        """Look at what only our memory knows, and forget those that are gone once no pod names them any more."""
        if not self.is_leader():
            return
        self.managed.forget()
        await self.managed.read()
        for name in self.managed.there - self._workers.keys():
            self.enqueue(name)
        gone = [
            one
            for one in self.managed.outdated(self.now())
            if not (self.policy_index.policies_of(one) or self._is_listed(one))
        ]
        for name in random.sample(gone, min(len(gone), _DROPPED)):
            if not await self.reconciler.objects.any(PODS, fieldSelector=f"spec.schedulerName={name}{_LIVING}"):
                await self.managed.drop(name)

    async def end(self) -> None:
        """Stop all work."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, scheduler: str) -> None:
        await self.replicas_polled.wait()
        await self._workers[scheduler].run()
        del self._workers[scheduler], self._tasks[scheduler]

    async def _reconcile(self, scheduler: str) -> ReconcileResult:
        if not self.is_leader():
            return self.result(scheduler)
        await self.managed.read()
        try:
            asked = self.policy_index.desired_scheduler(scheduler, self.settings(), self.states())
        except InvalidObjectError as error:
            return ReconcileResult(refused=str(error))
        denied = unlisted_schedulers.denial_reason(scheduler, self.settings()) if asked.exists else ""
        if not self._is_there(scheduler) and (why := denied or self._full(scheduler)):
            return ReconcileResult(refused=why, full=not denied)
        if denied:
            asked = replace(asked, policies=(), serving=_NO_WIRING, exists=False, denied=True)
        passed = await self._pass(scheduler, asked)
        if passed.gone and scheduler in self.managed.there:
            await self.managed.gone(scheduler, self.now())
        if passed.gone or (passed.refused and not self.result(scheduler).refused):
            self._make_way()
        if denied and not passed.refused:
            rest = "" if passed.gone else "; its scheduler goes 10 minutes after that was set"
            return replace(passed, refused=denied + rest)
        if passed.refused and not self._is_there(scheduler) and (why := self._full(scheduler)):
            return ReconcileResult(refused=why, full=True)
        return passed

    async def _pass(self, scheduler: str, asked: DesiredScheduler) -> ReconcileResult:
        drifted = list[str]()
        try:
            return await self.reconciler.reconcile(
                asked,
                lambda: self._facts(scheduler),
                paused=self._is_paused(scheduler) and not asked.denied,
                known=asked.listed or self._is_there(scheduler) or (scheduler in self.managed and not asked.exists),
                gone=self.managed.gone_since(scheduler),
                noted=scheduler in self.managed.there,
                before=self.result(scheduler).decision,
                begin=lambda: self._begin(scheduler),
                drifted=drifted.append,
            )
        finally:
            for text in filter(None, (*drifted, self.pop_restored(scheduler))):
                self.drift(text.partition(" ")[0])
                for policy in self.policy_index.policies_of(scheduler)[:1]:
                    await self.events.record(policy, "Warning", "DriftCorrected", text, "Correct", self.now())

    async def _begin(self, scheduler: str) -> None:
        """From now on it is one of ours. Raises InvalidObjectError where others were faster."""
        async with self._beginning:
            if not self._is_there(scheduler) and (why := self._full(scheduler)):
                raise InvalidObjectError([FieldError(("schedulers",), why)])
            await self.managed.note(scheduler, self.now())

    def _make_way(self) -> None:
        """Look soon at those that waited for a place."""
        for one in self._workers.values():
            if one.result.full:
                one.enqueue()

    async def _facts(self, scheduler: str) -> ClusterFacts:
        there = {
            name: one.result
            for name, one in self._workers.items()
            # nobody else has a certificate: he may be refused in a moment
            if name == scheduler or self._is_listed(name) or self._is_there(name) or one.result.started_with_ca
        }
        rolled = {name: one.started_with_ca for name, one in there.items() if not (one.refused or one.gone)}
        waits = [name for name in rolled if self._is_paused(name) and not self._is_there(name)]
        return await self.facts(scheduler, rolled, waits)

    def _full(self, scheduler: str) -> str:
        """Why it may not begin beside the others; empty if it may, and where no policy asks for it."""
        if all(map(is_leaving, self.policy_index.policies_of(scheduler))):
            return ""
        return unlisted_schedulers.no_room_reason(
            scheduler, self.settings(), self.managed.there, lambda: self._begin_too(scheduler)
        )

    def _begin_too(self, scheduler: str) -> Mapping[str, str]:
        """Whoever is refused for something else, and whoever is paused before it began, keeps nobody waiting."""
        policies = self.policy_index.policies.values()
        idle = {scheduler_of(one) for one in policies if is_paused([one])}
        idle |= {name for name, one in self._workers.items() if one.result.refused and not one.result.full}
        asked = unlisted_schedulers.asked_since(policies)
        return {name: since for name, since in asked.items() if name == scheduler or name not in idle}

    def _is_there(self, scheduler: str) -> bool:
        return scheduler in self.managed.there or self._was_managed(scheduler)

    def _is_paused(self, scheduler: str) -> bool:
        return is_paused(self.policy_index.policies_of(scheduler))

    def _is_over(self, scheduler: str, passed: ReconcileResult) -> bool:
        over = passed.gone or (passed.refused and not self._is_listed(scheduler))
        return bool(over) and not self.policy_index.policies_of(scheduler)

    def _is_listed(self, scheduler: str) -> bool:
        return self.settings().lists(scheduler)

    def _was_managed(self, scheduler: str) -> bool:
        """Whether a policy says that it ran: its status outlives an operator, and may be about another scheduler."""
        said = [one.get("status", {}).get("scheduler", {}) for one in self.policy_index.policies_of(scheduler)]
        return any(one.get("name") == scheduler and one.get("lastGoodConfigHash") for one in said)
