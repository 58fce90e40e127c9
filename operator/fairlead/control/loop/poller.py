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

    gathered: PolicyIndex
    schedulers: SchedulerQueue
    statuses: StatusWriter
    replicas: ReplicaClient
    waker: Waker
    announcer: EventRecorder
    lacking: MissingPermissions
    settings: Callable[[], OperatorSettings]
    rotates: Callable[[], bool]
    """Whether the authority is to be replaced, or is being: nothing tells of it when others have done their part."""
    rotate: Callable[[], Awaitable[None]]
    """Takes the next step of that, as each pass over a scheduler does; called while there is none."""
    believed: Callable[[], Awaitable[None]]
    """Sees to it that the API server believes us; called while nothing else happens."""
    leads: Callable[[], bool]
    look: Callable[[], Awaitable[None]]
    """Sees all that there is."""
    _lacked: int = 0
    """Of its changes, how many the statuses tell of."""
    _soon: asyncio.Event = field(default_factory=asyncio.Event)

    def soon(self) -> None:
        """Ask again at once."""
        self._soon.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        time = asyncio.get_running_loop().time
        looked, settings = time() + _WATCHED_S - RESYNC_S, self.settings()
        while True:
            self._soon.clear()
            if time() - looked >= (_QUIET_S if self._is_behind() else RESYNC_S) or self._lacks_a_look():
                try:
                    await self.look()
                except ClusterError as error:
                    self.lacking.failed(_LISTING, error)
                else:
                    looked = time()
                    self.lacking.went(_LISTING)
                    await self.schedulers.tidy()
            try:
                await self._ask()
            except ClusterError as error:
                LOG.warning("the replicas cannot be listed", extra={"why": str(error)})
            self.schedulers.begun.set()
            if self.rotates() or self.settings() is not settings:
                settings = self.settings()
                for name in {*self.schedulers, *(one.name for one in settings.schedulers)}:
                    self.schedulers.due(name)
            if self.rotates() and not any(self.schedulers):
                await self._rotate()
            wait = _BUSY_S if self._is_busy() else _QUIET_S
            if wait == _QUIET_S:
                await self._be_believed()
            try:
                async with asyncio.timeout(wait):
                    await self._soon.wait()
                    await asyncio.sleep(_BUSY_S / 10)  # what comes together is asked about once
            except TimeoutError:
                pass

    async def _ask(self) -> None:
        before = self.replicas.answers
        after = await self.replicas.ask()
        await self.waker.heard(after)
        await self.announcer.again()
        if not self.schedulers.begun.is_set():
            return
        new = before != after or self.lacking.said or self.lacking.changes != self._lacked
        self._lacked = self.lacking.changes  # before anything is written: what that finds is for the next round
        for scheduler in {scheduler_of(one) for one in self.gathered.policies.values()}:
            if new or self.statuses.owes(scheduler):
                await self.statuses.say(scheduler, self.schedulers.passed(scheduler))

    async def _rotate(self) -> None:
        if not self.leads():
            return
        try:
            await self.rotate()
        except (ClusterError, AuthorityError) as error:
            LOG.warning("the authority cannot be rotated", extra={"why": str(error)})

    async def _be_believed(self) -> None:
        if not self.leads():
            return
        try:
            await self.believed()
        except ClusterError as error:
            self.lacking.failed(_BELIEVED, error)
        else:
            self.lacking.went(_BELIEVED)

    def _is_busy(self) -> bool:
        answers = [one for one in self.replicas.answers.values() if isinstance(one, ReplicaState)]
        return (
            self.waker.owes
            or self.lacking.changes != self._lacked
            or len(answers) < len(self.replicas.answers)
            or any(
                _known_to_replicas(one, name) != str(policy["metadata"]["generation"])
                for name, policy in self.gathered.policies.items()
                for one in answers
            )
        )

    def _lacks_a_look(self) -> bool:
        return any(one in self.lacking for one in (LOOKING, STAYING, _LISTING))

    def _is_behind(self) -> bool:
        """Whether a replica has seen a policy of which nobody has told us: it watches for itself."""
        return any(
            (policy := self.gathered.policies.get(name)) is None
            or seen.uid != policy["metadata"]["uid"]
            or seen.generation != str(policy["metadata"]["generation"])
            for one in self.replicas.answers.values()
            if isinstance(one, ReplicaState)
            for name, seen in one.policies.items()
        )


def _known_to_replicas(state: ReplicaState, name: str) -> str:
    one = state.policies.get(name)
    return one.generation if one is not None else ""
