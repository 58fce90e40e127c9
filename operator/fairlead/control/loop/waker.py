"""Wake-ups of rejected pods: the leader updates one object, whose event makes kube-scheduler retry them (decision 13).

The decision is pure; the poller of the replicas calls it with their states.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource, decode_object
from fairlead.metrics import Counter
from fairlead.render.object_names import MANAGER
from fairlead.replica_state import ReplicaState, ReplicaStates

LOG: Final = logging.getLogger(__name__)
NAME: Final = "fairlead-wake-up"
PAUSE_S: Final = 5.0
REQUESTED_S: Final = 1.0
"""Pause before a wake-up that was requested."""
_WAKING: Final = "rejected pods cannot be woken"
WOKEN: Final = "fairlead.dev/woken-at"
CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities")


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeState:
    """State of the wake-ups between two polls."""

    served: str = ""
    """The policy set that every replica served last."""
    pending: bool = False
    """True if pods are to be woken."""
    requested: bool = False
    """True if they are to be woken soon."""
    last: float = float("-inf")
    """Monotonic time of the last wake-up."""

    def observe(self, answers: Iterable[ReplicaState | str], *, lost: bool = False) -> "WakeState":
        """Return the state after a poll; a replica reports only once that pods are schedulable again.

        A set that serves everywhere helps no pod if none is rejected: a wake-up would only begin the pause before the
        next one. The first set may help pods that replicas rejected which are gone.
        `lost`: a replica that answered before is gone, and with it what it knew of pods that it had rejected.
        """
        polled = [*answers]
        states = [one for one in polled if isinstance(one, ReplicaState)]
        sets = {one.policy_set for one in states}
        everywhere = sets.pop() if len(sets) == 1 and len(states) == len(polled) else ""
        new = bool(everywhere) and everywhere != self.served
        may_help = not self.served or any(one.has_rejected_pods for one in states)
        return replace(
            self,
            served=everywhere or self.served,
            pending=self.pending or lost or (new and may_help) or any(one.schedulable_again for one in states),
        )

    def wait_s(self, now: float) -> float | None:
        """Return the time until the next wake-up; None if none is needed."""
        pause_s = REQUESTED_S if self.requested else PAUSE_S
        return max(0.0, self.last + pause_s - now) if self.pending or self.requested else None

    def record_wake(self, now: float) -> "WakeState":
        """Return the state after a wake-up."""
        return replace(self, pending=False, requested=False, last=now)


async def wake(client: Client, namespace: str, now: datetime) -> None:
    """Update the object, or create it. Raises ClusterError."""
    annotations = {WOKEN: now.isoformat(timespec="milliseconds")}
    at = ObjectRef(CAPACITIES, namespace, NAME)
    try:
        await client.merge(at, {"metadata": {"annotations": annotations}}, decode_object)
    except NotFoundError:
        labels = {"app.kubernetes.io/managed-by": MANAGER}
        metadata = {"name": NAME, "namespace": namespace, "labels": labels, "annotations": annotations}
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": metadata}
        try:
            # The storage class does not exist, so no scheduler counts it as capacity.
            await client.create(ObjectRef(CAPACITIES, namespace), {**made, "storageClassName": NAME}, decode_object)
        except ConflictError:
            return


@dataclass(slots=True, eq=False)
class Waker:
    """Waker of rejected pods, while this replica leads."""

    client: Client
    namespace: str
    now: Callable[[], datetime]
    clock: Callable[[], float]
    missing_permissions: MissingPermissions
    wakeups: Counter
    state: WakeState = field(default_factory=WakeState)
    _answered: frozenset[tuple[str, str]] = frozenset()
    """Replicas that answered last, each with its process."""

    def request(self) -> None:
        """Wake pods at the next poll, with a shorter pause than for what polls tell."""
        self.state = replace(self.state, requested=True)

    async def on_poll(self, answers: ReplicaStates) -> None:
        """Take the states of a poll, and wake pods if it is time."""
        before, self._answered = (
            self._answered,
            frozenset((name, one.process) for name, one in answers.items() if isinstance(one, ReplicaState)),
        )
        self.state = self.state.observe(answers.values(), lost=bool(before - self._answered))
        await self.wake_if_due()

    async def wake_if_due(self) -> None:
        """Wake pods if it is time."""
        if self.wait_s != 0:
            return
        # Noted first: what is requested while the object is written may have come too late for this wake-up.
        due, self.state = self.state, self.state.record_wake(self.clock())
        try:
            await wake(self.client, self.namespace, self.now())
        except ClusterError as error:
            self.missing_permissions.record(_WAKING, error)
            self.state = replace(
                self.state,
                pending=due.pending or self.state.pending,
                requested=due.requested or self.state.requested,
                last=self.clock(),
            )
        else:
            self.missing_permissions.clear(_WAKING)
            LOG.debug("pods.woken")
            self.wakeups.add()

    @property
    def wait_s(self) -> float | None:
        """Time until pods are to be woken; None if they are not."""
        return self.state.wait_s(self.clock())
