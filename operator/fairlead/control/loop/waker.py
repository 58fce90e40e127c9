"""When refused pods are woken: the leader touches one object that only their scheduler cares for (decision 13).

The decision is pure; whoever asks the replicas tells it of the answers.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.metrics import Counter
from fairlead.render.object_names import MANAGER
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
NAME: Final = "fairlead-wake-up"
PAUSE_S: Final = 5.0
_WAKING: Final = "rejected pods cannot be woken"
WOKEN: Final = "fairlead.dev/woken-at"
CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeState:
    """What has to be known from one look to the next."""

    served: str = ""
    """The policy set that was last seen to serve everywhere."""
    pending: bool = False
    """Whether somebody has to be woken."""
    last: float = float("-inf")
    """When somebody was, by a clock that never goes back."""

    def observe(self, answers: Iterable[ReplicaState | str], *, lost: bool = False) -> "WakeState":
        """Each replica has answered, or has not; a replica says of pods once only that they could be placed.

        `lost`: one that did before is not there any more. What it knew of pods that it had refused, nobody else does.
        """
        given = [*answers]
        said = [one for one in given if isinstance(one, ReplicaState)]
        sets = {one.policy_set for one in said}
        everywhere = sets.pop() if len(sets) == 1 and len(said) == len(given) else ""
        new = bool(everywhere) and everywhere != self.served
        return replace(
            self,
            served=everywhere or self.served,
            pending=self.pending or lost or new or any(one.freed for one in said),
        )

    def wait_s(self, now: float) -> float | None:
        """How long to wait before somebody is woken; None: nobody has to be."""
        return max(0.0, self.last + PAUSE_S - now) if self.pending else None

    def record_wake(self, now: float) -> "WakeState":
        """It was done."""
        return replace(self, pending=False, last=now)


async def wake(client: Client, namespace: str, now: datetime) -> None:
    """Touch the object, or make it. Raises ClusterError."""
    annotations = {WOKEN: now.isoformat(timespec="milliseconds")}
    at = ObjectRef(CAPACITIES, namespace, NAME)
    try:
        await client.merge(at, {"metadata": {"annotations": annotations}}, _decode)
    except NotFoundError:
        labels = {"app.kubernetes.io/managed-by": MANAGER}
        metadata = {"name": NAME, "namespace": namespace, "labels": labels, "annotations": annotations}
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": metadata}
        try:
            # Of a class that there is not: no scheduler takes it for room on a node.
            await client.create(ObjectRef(CAPACITIES, namespace), {**made, "storageClassName": NAME}, _decode)
        except ConflictError:
            return


@dataclass(slots=True, eq=False)
class Waker:
    """Who does it, while this replica leads."""

    client: Client
    namespace: str
    today: Callable[[], datetime]
    clock: Callable[[], float]
    missing_permissions: MissingPermissions
    wakeups: Counter
    state: WakeState = field(default_factory=WakeState)
    _answered: frozenset[tuple[str, str]] = frozenset()
    """Names of replicas, each with its process."""

    async def heard(self, answers: Mapping[str, ReplicaState | str]) -> None:
        """The replicas were asked."""
        before, self._answered = (
            self._answered,
            frozenset((name, one.process) for name, one in answers.items() if isinstance(one, ReplicaState)),
        )
        self.state = self.state.observe(answers.values(), lost=bool(before - self._answered))
        if self.state.wait_s(self.clock()) != 0:
            return
        try:
            await wake(self.client, self.namespace, self.today())
        except ClusterError as error:
            self.missing_permissions.record(_WAKING, error)
            self.state = replace(self.state, last=self.clock())
        else:
            self.missing_permissions.clear(_WAKING)
            LOG.debug("pods.woken")
            self.wakeups.add()
            self.state = self.state.record_wake(self.clock())

    @property
    def has_pending(self) -> bool:
        """Whether somebody has to be woken soon."""
        return self.state.pending
