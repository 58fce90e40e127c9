"""Work queue of schedulers, with one worker for each, so that a slow one does not delay the others.

A worker alone writes the statuses of its scheduler's policies: after each reconcile, and whenever something else that
they show changed.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Final

from fairlead.control.decide.drift import DriftLog
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.control.reconcile.result import NOTHING, ReconcileResult
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.errors import ClusterError, ConflictError, ForbiddenError
from fairlead.kube.resources import NOT_ENDED, PODS
from fairlead.pki.authority import AuthorityError

LOG: Final = logging.getLogger(__name__)
RESYNC_S: Final = 300.0
_QUIET_S: Final = 10.0
_RETRY_S: Final = 2.0
_RETRY_MAX_S: Final = 30.0
_CHECKED_MAX: Final = 20
"""Number of deleted schedulers for which a resync checks whether pods still name them."""


@dataclass(slots=True, eq=False)
class _Worker:
    """State of one scheduler's worker."""

    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_due: bool = False
    """True if a reconcile is requested; else it is woken only to write statuses."""
    has_pending_status: bool = False
    """True if a status could not be written yet, or need not be written so soon."""
    failures: int = 0
    """Number of failures in a row."""
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class SchedulerQueue:
    """Work queue of one operator's schedulers."""

    registry: SchedulerRegistry
    reconciler: Reconciler
    statuses: StatusWriter
    events: EventRecorder
    drifts: DriftLog
    is_leader: Callable[[], bool]
    metrics: LeaderMetrics
    now: Callable[[], datetime]
    replicas_polled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first poll: before that, a new leader does not know enough to write statuses."""
    _workers: dict[str, _Worker] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._workers])

    def enqueue(self, scheduler: str) -> None:
        """Reconcile a scheduler soon."""
        worker = self._workers.get(scheduler)
        if worker is None:
            worker = self._workers[scheduler] = _Worker()
            self.registry.results[scheduler] = NOTHING
            loop = asyncio.get_running_loop()
            worker.task = loop.create_task(self._work(scheduler, worker), name=f"scheduler {scheduler}")
        worker.is_due = True
        worker.woken.set()

    def enqueue_statuses(self, *, only_pending: bool = False) -> None:
        """Write the statuses of every scheduler soon, without a reconcile, or only those that are pending."""
        for worker in self._workers.values():
            if worker.has_pending_status or not only_pending:
                worker.woken.set()

    def enqueue_all(self) -> None:
        """Reconcile every scheduler soon."""
        for one in self:
            self.enqueue(one)

    def depth(self) -> int:
        """Return how many schedulers wait for a reconcile."""
        return sum(one.is_due for one in [*self._workers.values()])

    async def drop_finished(self) -> None:
        """Enqueue schedulers that only the list of managed ones has, and drop those that no pod names any more."""
        if not self.is_leader():
            return
        registry = self.registry
        registry.managed.forget()
        await registry.managed.read()
        for name in registry.managed.existing - self._workers.keys():
            self.enqueue(name)
        unused = [
            one
            for one in registry.managed.find_expired(self.now())
            if not (registry.policy_index.policies_of(one) or registry.is_listed(one))
        ]
        for name in random.sample(unused, min(len(unused), _CHECKED_MAX)):
            if not await self.reconciler.objects.any(PODS, fieldSelector=f"spec.schedulerName={name},{NOT_ENDED}"):
                await registry.managed.drop(name)

    async def stop(self) -> None:
        """Stop all workers."""
        tasks = [one.task for one in self._workers.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, scheduler: str, worker: _Worker) -> None:
        """Reconcile a scheduler and write statuses, until nothing is left to do for it."""
        await self.replicas_polled.wait()
        time = asyncio.get_running_loop().time
        next_at = time()
        while True:
            worker.woken.clear()
            if worker.is_due or time() >= next_at:
                worker.is_due = False
                pause = await self._reconcile(scheduler, worker)
                next_at = time() + pause
                await self.report_drifts()
            result = self.registry.result(scheduler)
            worker.has_pending_status = not await self.statuses.write(scheduler, result, worker.woken.set)
            if self.registry.is_finished(scheduler) and not worker.is_due:
                del self._workers[scheduler], self.registry.results[scheduler]
                return
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await worker.woken.wait()

    async def report_drifts(self) -> None:
        """Count corrected drift, and post an event about each to a policy of its scheduler."""
        for one in self.drifts.take():
            self.metrics.drift.add(one.kind)
            if policy := self.registry.policy_index.first_policy(one.scheduler):
                await self.events.record(policy, "Warning", "DriftCorrected", one.message, "Correct", self.now())

    async def _reconcile(self, scheduler: str, worker: _Worker) -> float:
        """Reconcile once; return the time until the next reconcile if no event comes."""
        before = self.registry.result(scheduler)
        if not self.is_leader():
            return requeue_after_s(before)
        begun, result = monotonic(), None
        try:
            result = await self.reconciler.reconcile(scheduler)
        except Exception:
            LOG.exception("reconcile.fault", extra={"scheduler": scheduler})
            worker.failures += 1
            failed = "internal error of the operator: see its log"
            self.registry.results[scheduler] = replace(before, missing_permission="", failed=failed)
            return _RETRY_MAX_S
        finally:
            self.metrics.count_reconcile(scheduler, result, monotonic() - begun)
        if result.error is not None:
            worker.failures += 1
            backoff: float = min(_RETRY_S * 2**worker.failures, _RETRY_MAX_S)
            pause = backoff * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            # after a first conflict the next reconcile sees what others wrote
            if not isinstance(result.error, ConflictError) or worker.failures > 1:
                self.registry.results[scheduler] = after_failure(before, result.error)
            extra = {"scheduler": scheduler, "error": str(result.error), "requeue_after_s": round(pause)}
            LOG.warning("reconcile.failed", extra=extra)
            return pause
        worker.failures = 0
        self.registry.results[scheduler] = result
        if result.gone or (result.refused and not before.refused):
            for name in self.registry.waiting_for_room():
                self.enqueue(name)
        return requeue_after_s(result)


def after_failure(before: ReconcileResult, error: ClusterError | AuthorityError) -> ReconcileResult:
    """Return the result of a failed reconcile: the previous one, and why it failed."""
    is_missing = isinstance(error, ForbiddenError) and error.is_of_rbac
    missing, failed = (str(error), "") if is_missing else ("", str(error))
    return replace(before, missing_permission=missing, failed=failed)


def requeue_after_s(result: ReconcileResult) -> float:
    """Return the time until the next reconcile if no event comes."""
    decision = result.decision
    if result.refused:
        return _RETRY_MAX_S
    resync = RESYNC_S * random.uniform(0.8, 1.2)  # noqa: S311  no secret
    if result.paused:
        return resync
    if decision is not None and (decision.phase == "Rolling" or (decision.lifecycle == "Delete" and not result.gone)):
        return _RETRY_S
    if decision is not None and decision.phase == "Steady" and decision.message:
        return _QUIET_S
    left = decision.requeue_after_s if decision is not None else None
    waits = decision is not None and decision.lifecycle == "Retain"
    return min(resync, left + 0.1 if left is not None else resync, _QUIET_S if waits else resync)
