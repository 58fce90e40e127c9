"""Poller of the replicas: often while something is in progress, seldom otherwise."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.loop.waker import Waker
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ClusterError
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
_BUSY_S: Final = 1.0
_QUIET_S: Final = 10.0
_LEAST_S: Final = 0.1
"""Pause before a poll in any case: events that come together cause one."""


@dataclass(slots=True, eq=False, kw_only=True)
class ReplicaPoller:
    """Poller of one operator's replicas: what they answer wakes rejected pods, and is shown in statuses."""

    policy_index: PolicyIndex
    queue: SchedulerQueue
    replicas: ReplicaClient
    waker: Waker
    unreviewed: UnreviewedGenerations
    missing_permissions: MissingPermissions
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _reported_missing: int = 0
    """Number of changes of the missing permissions that statuses include."""

    def request(self) -> None:
        """Poll soon."""
        self._requested.set()

    def wake_pods(self) -> None:
        """Wake rejected pods with the next poll, which is soon: something has happened that no poll tells."""
        self.waker.request()
        self.request()

    async def poll(self) -> None:
        """Poll once; workers begin after the first time, because a leader knows too little to write statuses before."""
        self._requested.clear()
        await self.waker.wake_if_due()  # a replica may take a second not to answer
        before, aside = self.replicas.states, self.replicas.aside
        after, is_unreviewed_new = before, False
        try:
            after = await self.replicas.poll()
            await self.waker.on_poll(after)
            is_unreviewed_new = self.unreviewed.on_poll(after)
        except ClusterError as error:
            LOG.warning("replicas.list_failed", extra={"error": str(error)})
        if self.replicas.aside - aside:
            self.request()  # it is asked by the next poll
        missing = self.missing_permissions
        is_new = is_unreviewed_new or before != after or missing.messages or missing.changes != self._reported_missing
        if self.queue.replicas_polled.is_set():
            self._reported_missing = missing.changes  # what the writes change is for the next round
            self.queue.enqueue_statuses(only_pending=not is_new)
        self.queue.replicas_polled.set()

    async def wait(self) -> None:
        """Wait until the next poll is due, or requested."""
        try:
            async with asyncio.timeout(self._pause_s()):
                await self._requested.wait()
                await asyncio.sleep(_LEAST_S)
        except TimeoutError:
            pass

    def _pause_s(self) -> float:
        wait_s = self.waker.wait_s
        if wait_s is not None:  # if they are to be woken now, the poll that should have done it has failed
            return max(_LEAST_S, min(wait_s or _BUSY_S, _BUSY_S))
        return _BUSY_S if self._is_busy() else _QUIET_S

    def _is_busy(self) -> bool:
        answers = [one for one in self.replicas.states.values() if isinstance(one, ReplicaState)]
        return (
            any(one.has_rejected_pods for one in answers)  # it tells of them once, when one could be placed
            or self.missing_permissions.changes != self._reported_missing
            or len(answers) < len(self.replicas.states)
            or any(
                _known_to_replicas(one, name) != str(policy["metadata"]["generation"])
                for name, policy in self.policy_index.policies.items()
                for one in answers
            )
        )


def _known_to_replicas(state: ReplicaState, name: str) -> str:
    one = state.policies.get(name)
    return one.generation if one is not None else ""
