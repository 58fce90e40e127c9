"""A pod on a node: the message that expressions read, with the properties that strategies read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.cel.values.schema import PLACED_POD
from fairlead.cel.values.structs import decode_scalar, struct
from fairlead.plain_data import without_nulls
from fairlead.strategies.facts import ControllerRef

if TYPE_CHECKING:

    class _Message(msgspec.Struct, frozen=True):
        metadata: Any
        spec: Any
        status: Any
else:
    _Message = struct(PLACED_POD)


class PlacedPod(_Message, frozen=True, kw_only=True, gc=False, eq=False):  # type: ignore[call-arg,unused-ignore]
    """A pod on a node."""

    @property
    def name(self) -> str:
        """Return the name."""
        return str(self.metadata.name)

    @property
    def namespace(self) -> str:
        """Return the namespace, which is `default` if the object has none."""
        return str(self.metadata.namespace) or "default"

    @property
    def uid(self) -> str:
        """Return the UID."""
        return str(self.metadata.uid)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        labels: Mapping[str, str] = self.metadata.labels
        return labels

    @property
    def controller(self) -> ControllerRef | None:
        """Return the owner that controls the pod; None if there is none."""
        return controller_of(self.metadata)

    @property
    def phase(self) -> str:
        """Return the phase."""
        return str(self.status.phase)

    @property
    def ready(self) -> bool:
        """Report whether the condition Ready is True."""
        condition = self._ready()
        return condition is not None and condition.status == "True"

    @property
    def ready_since(self) -> int | None:
        """Return the transition time of the condition Ready."""
        condition = self._ready()
        return None if condition is None else condition.lastTransitionTime

    @property
    def deleting(self) -> bool:
        """Report whether the pod is being deleted."""
        return self.metadata.deletionTimestamp is not None

    @property
    def placed_at(self) -> int | None:
        """Return when the pod was placed: the transition time of PodScheduled, else its creation."""
        return placed_at(self)

    def _ready(self) -> Any:
        return next((condition for condition in self.status.conditions if condition.type == "Ready"), None)


def controller_of(metadata: Any) -> ControllerRef | None:
    """Return the owner that controls a pod; None if there is none."""
    for owner in metadata.ownerReferences:
        if owner.controller is True:
            return ControllerRef(owner.kind, owner.name)
    return None


def placed_at(pod: Any) -> int | None:
    """Return when a pod was placed, also of one with all its fields."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            at: int | None = condition.lastTransitionTime
            return pod.metadata.creationTimestamp if at is None else at
    created: int | None = pod.metadata.creationTimestamp
    return created


def placed_pod(obj: object) -> PlacedPod:
    """Return a placed pod from an object of the API."""
    return msgspec.convert(without_nulls(obj), PlacedPod, dec_hook=decode_scalar)
