"""Housekeeper of the leader: after each poll of the replicas it does what is due, whatever events come.

It lists what no event reported, enqueues all schedulers when the settings change, moves a rotation of the authority on,
and repeats what failed.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fairlead.control.certificates.leader_certificates import LeaderCertificates
from fairlead.control.loop.binding_watch import SUBJECTS, BindingWatch
from fairlead.control.loop.informer import FIND_UNUSED, PolicyInformer
from fairlead.control.loop.queue import RESYNC_S, SchedulerQueue
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.status.events import EventRecorder
from fairlead.kube.errors import ClusterError
from fairlead.pki.authority import AuthorityError
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaStates

LOG: Final = logging.getLogger(__name__)
_QUIET_S: Final = 10.0
_WATCHED_S: Final = 30.0
"""By then kopf watches: deletions between the first list and that are never reported, so a resync follows."""
_LISTING: Final = "policies and schedulers cannot be listed"
_OWN_BINDINGS: Final = "the operator's own bindings would remain if its namespace were deleted"
_CA_BUNDLE: Final = "the CA bundle of the admission webhook cannot be set"


@dataclass(slots=True, eq=False, kw_only=True)
class Housekeeper:
    """Housekeeper of one leader."""

    informer: PolicyInformer
    queue: SchedulerQueue
    owner: NamespaceOwner
    binding_watch: BindingWatch
    certificates: LeaderCertificates
    events: EventRecorder
    missing_permissions: MissingPermissions
    settings: Callable[[], OperatorSettings]
    is_leader: Callable[[], bool]
    _settings: OperatorSettings | None = None
    """Settings for which all schedulers were enqueued."""
    _resync_at: float = 0.0
    _sync_at: float = 0.0
    _time: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)

    async def begin(self) -> None:
        """List all before anything else. Raises ClusterError."""
        await self.resync()
        self._resync_at = self._time() + _WATCHED_S

    async def resync(self) -> None:
        """List policies and schedulers, and mend what all schedulers share. Raises ClusterError if it cannot list."""
        await self.informer.resync()
        await self.missing_permissions.attempt(_OWN_BINDINGS, self.owner.adopt_own)
        await self.binding_watch.sync()

    async def tend(self, states: ReplicaStates) -> None:
        """Do what is due, when the replicas have these states."""
        await self.events.retry_refused()
        if self._is_resync_due(states) and await self.missing_permissions.attempt(_LISTING, self._resync_and_drop):
            self._resync_at = self._time() + RESYNC_S
        if self.certificates.is_rotating or self.settings() is not self._settings:
            self._enqueue_all()
        if not self.is_leader():
            return
        if self.certificates.is_rotating and not any(self.queue):
            await self._rotate(states)
        if self._time() >= self._sync_at:
            await self.missing_permissions.attempt(_CA_BUNDLE, self.certificates.sync_webhook)
            self._sync_at = self._time() + _QUIET_S

    async def _resync_and_drop(self) -> None:
        await self.resync()
        await self.queue.drop_finished()

    def _is_resync_due(self, states: ReplicaStates) -> bool:
        now, failed = self._time(), (FIND_UNUSED, SUBJECTS, _OWN_BINDINGS, _LISTING)
        if now >= self._resync_at or any(one in self.missing_permissions for one in failed):
            return True
        return now >= self._resync_at - RESYNC_S + _QUIET_S and self.informer.has_missed(states)

    def _enqueue_all(self) -> None:
        """Reconcile all schedulers, and those that the settings list: these exist without a policy."""
        self._settings = self.settings()
        for name in {*self.queue, *(one.name for one in self._settings.schedulers)}:
            self.queue.enqueue(name)

    async def _rotate(self, states: ReplicaStates) -> None:
        try:
            await self.certificates.rotate(states)
        except (ClusterError, AuthorityError) as error:
            LOG.warning("authority.rotation_failed", extra={"error": str(error)})
