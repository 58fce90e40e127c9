"""Poller of the replicas: often while something is in progress, seldom otherwise."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead.control.certificates.ca_bundle import WebhookCABundle
from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.loop.informer import FIND_UNUSED, OWN_BINDINGS, PolicyInformer
from fairlead.control.loop.queue import RESYNC_S, SchedulerQueue
from fairlead.control.loop.waker import Waker
from fairlead.control.reconcile.facts_gatherer import FactsGatherer
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ClusterError
from fairlead.pki.authority import AuthorityError
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
_BUSY_S: Final = 1.0
_QUIET_S: Final = 10.0
_WATCHED_S: Final = 30.0
"""By then kopf watches: deletions between the first list and that are never reported, so a resync follows."""
_LISTING: Final = "policies and schedulers cannot be listed"
_CA_BUNDLE: Final = "the CA bundle of the admission webhook cannot be set"


@dataclass(slots=True, eq=False, kw_only=True)
class ReplicaPoller:
    """Poller of one operator's replicas, which acts on their states."""

    policy_index: PolicyIndex
    informer: PolicyInformer
    queue: SchedulerQueue
    replicas: ReplicaClient
    waker: Waker
    unreviewed: UnreviewedGenerations
    events: EventRecorder
    missing_permissions: MissingPermissions
    facts: FactsGatherer
    ca_bundle: WebhookCABundle
    settings: Callable[[], OperatorSettings]
    is_leader: Callable[[], bool]
    requested: asyncio.Event
    """Set when the replicas are to be polled at once."""
    _reported_missing: int = 0
    """Number of changes of the missing permissions that statuses include."""

    async def run(self) -> None:
        """Run until cancelled."""
        time = asyncio.get_running_loop().time
        resynced, settings = time() + _WATCHED_S - RESYNC_S, self.settings()
        while True:
            self.requested.clear()
            if time() - resynced >= (_QUIET_S if self._missed_events() else RESYNC_S) or self._needs_resync():
                try:
                    await self.informer.resync()
                except ClusterError as error:
                    self.missing_permissions.record(_LISTING, error)
                else:
                    resynced = time()
                    self.missing_permissions.clear(_LISTING)
                    await self.queue.drop_finished()
            try:
                await self._poll()
            except ClusterError as error:
                LOG.warning("replicas.list_failed", extra={"error": str(error)})
            self.queue.replicas_polled.set()
            if self.facts.is_rotating or self.settings() is not settings:
                settings = self.settings()
                for name in {*self.queue, *(one.name for one in settings.schedulers)}:
                    self.queue.enqueue(name)
            if self.facts.is_rotating and not any(self.queue):
                await self._rotate()
            wait = _BUSY_S if self._is_busy() else _QUIET_S
            if wait == _QUIET_S:
                await self._sync_ca_bundle()
            try:
                async with asyncio.timeout(wait):
                    await self.requested.wait()
                    await asyncio.sleep(_BUSY_S / 10)  # events that come together cause one poll
            except TimeoutError:
                pass

    async def _poll(self) -> None:
        before, aside = self.replicas.states, self.replicas.aside
        after = await self.replicas.poll()
        if self.replicas.aside - aside:
            self.requested.set()  # it is asked by the next poll
        await self.waker.on_poll(after)
        changed = self.unreviewed.on_poll(after)
        await self.events.retry_refused()
        if not self.queue.replicas_polled.is_set():
            return
        missing = self.missing_permissions
        is_new = changed or before != after or missing.messages or missing.changes != self._reported_missing
        self._reported_missing = missing.changes  # what the writes change is for the next round
        self.queue.enqueue_statuses(only_pending=not is_new)

    async def _rotate(self) -> None:
        if not self.is_leader():
            return
        try:
            await self.facts.rotate()
        except (ClusterError, AuthorityError) as error:
            LOG.warning("authority.rotation_failed", extra={"error": str(error)})

    async def _sync_ca_bundle(self) -> None:
        if not self.is_leader():
            return
        try:
            await self.ca_bundle.sync()
        except ClusterError as error:
            self.missing_permissions.record(_CA_BUNDLE, error)
        else:
            self.missing_permissions.clear(_CA_BUNDLE)

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
        return any(one in self.missing_permissions for one in (FIND_UNUSED, OWN_BINDINGS, _LISTING))

    def _missed_events(self) -> bool:
        """Return whether a replica knows of a policy that no event reported: replicas have their own watch."""
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
