"""A pod on a node: the message that expressions read, with what strategies ask of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.cel.values.schema import PLACED_POD
from fairlead.cel.values.structs import decode_scalar, struct
from fairlead.plain_data import without_nulls
from fairlead.strategies.facts import Controller

if TYPE_CHECKING:

    class _Message(msgspec.Struct, frozen=True):
        metadata: Any
        spec: Any
        status: Any
else:
    _Message = struct(PLACED_POD)


class PlacedPod(_Message, frozen=True, kw_only=True, gc=False, eq=False):  # type: ignore[call-arg,unused-ignore]
    """A pod that is bound to a node."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata.name)

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.metadata.namespace) or "default"

    @property
    def uid(self) -> str:
        """Its UID."""
        return str(self.metadata.uid)

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        labels: Mapping[str, str] = self.metadata.labels
        return labels

    @property
    def controller(self) -> Controller | None:
        """The owner that controls it."""
        for owner in self.metadata.ownerReferences:
            if owner.controller is True:
                return Controller(owner.kind, owner.name)
        return None

    @property
    def phase(self) -> str:
        """Its phase."""
        return str(self.status.phase)

    @property
    def ready(self) -> bool:
        """Whether its condition Ready is True."""
        condition = self._ready()
        return condition is not None and condition.status == "True"

    @property
    def ready_since(self) -> int | None:
        """The transition time of its condition Ready."""
        condition = self._ready()
        return None if condition is None else condition.lastTransitionTime

    @property
    def deleting(self) -> bool:
        """Whether it has a deletion time."""
        return self.metadata.deletionTimestamp is not None

    def _ready(self) -> Any:
        return next((condition for condition in self.status.conditions if condition.type == "Ready"), None)


def placed_pod(obj: object) -> PlacedPod:
    """A pod on a node, from an object as the API gives it."""
    return msgspec.convert(without_nulls(obj), PlacedPod, dec_hook=decode_scalar)
