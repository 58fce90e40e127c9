"""Asks the replicas again and again: often while something is on its way, seldom otherwise. What follows is done."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from fairlead.control.decide.desired import PolicyIndex, scheduler_of
from fairlead.control.loop.queue import RESYNC_S, SchedulerQueue
from fairlead.control.loop.waker import Waker
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.errors import ClusterError
from fairlead.pki.authority import AuthorityError
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
_BUSY_S: Final = 1.0
_QUIET_S: Final = 10.0
_WATCHED_S: Final = 30.0
"""By then kopf watches: what was deleted between our first look and that, nobody tells."""
LOOKING: Final = "schedulers that have no policies cannot be found"
STAYING: Final = "the operator's own bindings would stay if its namespace were deleted"
_LISTING: Final = "what there is cannot be listed"
_BELIEVED: Final = "the API server cannot be told whom to believe"


@dataclass(slots=True, eq=False, kw_only=True)
class ReplicaPoller:
    """While this replica leads."""

    policy_index: PolicyIndex
    queue: SchedulerQueue
    statuses: StatusWriter
    replicas: ReplicaClient
    waker: Waker
    events: EventRecorder
    missing_permissions: MissingPermissions
    settings: Callable[[], OperatorSettings]
    is_rotating: Callable[[], bool]
    """Whether the authority is to be replaced, or is being: nothing tells of it when others have done their part."""
    rotate: Callable[[], Awaitable[None]]
    """Takes the next step of that, as each pass over a scheduler does; called while there is none."""
    ca_bundle: Callable[[], Awaitable[None]]
    """Sees to it that the API server believes us; called while nothing else happens."""
    is_leader: Callable[[], bool]
    resync: Callable[[], Awaitable[None]]
    """Sees all that there is."""
    _reported_missing: int = 0
    """Of its changes, how many the statuses tell of."""
    _requested: asyncio.Event = field(default_factory=asyncio.Event)

    def poll_now(self) -> None:
        """Ask again at once."""
        self._requested.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        time = asyncio.get_running_loop().time
        looked, settings = time() + _WATCHED_S - RESYNC_S, self.settings()
        while True:
            self._requested.clear()
            if time() - looked >= (_QUIET_S if self._missed_events() else RESYNC_S) or self._needs_resync():
                try:
                    await self.resync()
                except ClusterError as error:
                    self.missing_permissions.record(_LISTING, error)
                else:
                    looked = time()
                    self.missing_permissions.clear(_LISTING)
                    await self.queue.drop_finished()
            try:
                await self._ask()
            except ClusterError as error:
                LOG.warning("the replicas cannot be listed", extra={"why": str(error)})
            self.queue.replicas_polled.set()
            if self.is_rotating() or self.settings() is not settings:
                settings = self.settings()
                for name in {*self.queue, *(one.name for one in settings.schedulers)}:
                    self.queue.enqueue(name)
            if self.is_rotating() and not any(self.queue):
                await self._rotate()
            wait = _BUSY_S if self._is_busy() else _QUIET_S
            if wait == _QUIET_S:
                await self._sync_ca_bundle()
            try:
                async with asyncio.timeout(wait):
                    await self._requested.wait()
                    await asyncio.sleep(_BUSY_S / 10)  # what comes together is asked about once
            except TimeoutError:
                pass

    async def _ask(self) -> None:
        before = self.replicas.states
        after = await self.replicas.poll()
        await self.waker.heard(after)
        await self.events.retry_refused()
        if not self.queue.replicas_polled.is_set():
            return
        new = (
            before != after
            or self.missing_permissions.messages
            or self.missing_permissions.changes != self._reported_missing
        )
        self._reported_missing = (
            self.missing_permissions.changes
        )  # before anything is written: what that finds is for the next round
        for scheduler in {scheduler_of(one) for one in self.policy_index.policies.values()}:
            if new or self.statuses.has_pending(scheduler):
                await self.statuses.write(scheduler, self.queue.result(scheduler))

    async def _rotate(self) -> None:
        if not self.is_leader():
            return
        try:
            await self.rotate()
        except (ClusterError, AuthorityError) as error:
            LOG.warning("the authority cannot be rotated", extra={"why": str(error)})

    async def _sync_ca_bundle(self) -> None:
        if not self.is_leader():
            return
        try:
            await self.ca_bundle()
        except ClusterError as error:
            self.missing_permissions.record(_BELIEVED, error)
        else:
            self.missing_permissions.clear(_BELIEVED)

    def _is_busy(self) -> bool:
        answers = [one for one in self.replicas.states.values() if isinstance(one, ReplicaState)]
        return (
            self.waker.has_pending
            or self.missing_permissions.changes != self._reported_missing
            or len(answers) < len(self.replicas.states)
            or any(
                _known_to_replicas(one, name) != str(policy["metadata"]["generation"])
                for name, policy in self.policy_index.policies.items()
                for one in answers
            )
        )

    def _needs_resync(self) -> bool:
        return any(one in self.missing_permissions for one in (LOOKING, STAYING, _LISTING))

    def _missed_events(self) -> bool:
        """Whether a replica has seen a policy of which nobody has told us: it watches for itself."""
        return any(
            (policy := self.policy_index.policies.get(name)) is None
            or seen.uid != policy["metadata"]["uid"]
            or seen.generation != str(policy["metadata"]["generation"])
            for one in self.replicas.states.values()
            if isinstance(one, ReplicaState)
            for name, seen in one.policies.items()
        )


def _known_to_replicas(state: ReplicaState, name: str) -> str:
    one = state.policies.get(name)
    return one.generation if one is not None else ""
