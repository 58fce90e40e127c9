"""Entry of a placed pod in the mirror: less than a kilobyte, most of it shared with other pods."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from fairlead.cel.values.structs import NO_LIST, NO_MAP, struct
from fairlead.mirror import decode
from fairlead.mirror.decode import NOTHING, Decoder, WireContainer, WireContainerStatus, WirePod
from fairlead.mirror.interning import Pool, intern_conditions, intern_text, interned
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import RESIZE_PENDING, Amounts, Exact, as_amounts, requests_of_pod
from fairlead.policy.views.placed_pod import PlacedPod
from fairlead.policy.views.pod_usage import Usage

Key = tuple[str, str]
"""Namespace and name."""


def key_of(text: str) -> Key:
    """Return the key of a pod from its namespace and name with a slash between them, as ledgers name it."""
    namespace, _, name = text.partition("/")
    return namespace, name


def text_of(key: Key) -> str:
    """Return the namespace and name of a pod with a slash between them, as ledgers name it."""
    return f"{key[0]}/{key[1]}"


_SHAPES: Final = 8192
_SMALL: Final = 1024
"""Pods of one owner are listed one after the other; where each has its own labels, more would be kept for nothing."""


class PodRequests(msgspec.Struct, frozen=True, gc=False):
    """Requests of a placed pod, exact and as rules see them."""

    exact: Exact
    amounts: Amounts
    usage: Usage


class PodEntry(msgspec.Struct, frozen=True, gc=False):
    """A placed pod and its requests."""

    pod: Any  # a PlacedPod
    request: PodRequests

    @property
    def key(self) -> Key:
        """Namespace and name of the pod."""
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def node(self) -> str:
        """Name of the node that the pod is on."""
        name: str = self.pod.spec.nodeName
        return name

    def is_as(self, other: "PodEntry") -> bool:
        """Return whether rules and requests see no difference."""
        one: Any = self.pod
        its: Any = other.pod
        return (
            _same(self.request, other.request)
            and all(map(_same, astuple(one.metadata), astuple(its.metadata)))
            and all(map(_same, astuple(one.spec), astuple(its.spec)))
            and _same(one.status.phase, its.status.phase)
            and len(one.status.conditions) == len(its.status.conditions)
            and all(map(_same_fields, one.status.conditions, its.status.conditions))
        )


class _ShapeSpec(msgspec.Struct, gc=False, omit_defaults=True, rename="camel"):
    containers: list[WireContainer]
    init_containers: list[WireContainer]
    overhead: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class _ShapeStatus(msgspec.Struct, gc=False, omit_defaults=True, rename="camel"):
    container_statuses: list[WireContainerStatus]
    init_container_statuses: list[WireContainerStatus]
    allocated_resources: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING
    conditions: list[dict[str, str]] = []


class _Shape(msgspec.Struct, gc=False):
    """Fields that determine a pod's requests and containers: pods of one owner share them."""

    spec: _ShapeSpec
    status: _ShapeStatus


class _Made(msgspec.Struct, gc=False):
    containers: tuple[Any, ...]
    init_containers: tuple[Any, ...]
    request: PodRequests


_write: Final = msgspec.json.Encoder().encode
_placed: Final = Decoder(PlacedPod)
_Meta: Final = struct("PlacedPodMeta")
_Spec: Final = struct("PlacedPodSpec")
_Status: Final = struct("PlacedPodStatus")


def _made(text: bytes) -> _Made:
    spec: Any = _placed(text).spec
    shape = decode.pod(text)
    exact = requests_of_pod(shape)
    amounts = as_amounts(exact)
    request = PodRequests(exact, amounts, usage_of(shape, amounts))
    return _Made(tuple(spec.containers), tuple(spec.initContainers), request)


def _labels(text: bytes) -> Mapping[str, str]:
    return {interned(key): interned(value) for key, value in _read_labels(text).items()}


_read_labels: Final[Decoder[Any]] = Decoder(dict[str, str])
_read_owners: Final[Decoder[Any]] = Decoder(list[struct("OwnerReference")])  # type: ignore[misc,arg-type]
_shapes: Final = Pool(_made, _SHAPES)
_label_maps: Final = Pool(_labels, _SMALL)
_owner_lists: Final = Pool[bytes, Any](lambda text: tuple(_read_owners(text)), _SMALL)


def _same(first: object, second: object) -> bool:
    """Return whether two values are equal; an absent string equals "", but has a class of its own."""
    return first is second or (first == second and first.__class__ is second.__class__)


def _same_fields(first: Any, second: Any) -> bool:
    return all(map(_same, astuple(first), astuple(second)))


def entry_of(wire_pod: WirePod) -> PodEntry:
    """Return the entry of a placed pod."""
    metadata, spec, status = wire_pod.metadata, wire_pod.spec, wire_pod.status
    made = _shapes(_shape(wire_pod))
    pod: Any = PlacedPod(
        metadata=_Meta(
            annotations=decode.annotations_of(wire_pod),
            creationTimestamp=metadata.creationTimestamp,
            deletionTimestamp=metadata.deletionTimestamp,
            labels=_label_maps(bytes(metadata.labels)) if metadata.labels is not NOTHING else NO_MAP,
            name=metadata.name,
            namespace=intern_text(metadata.namespace),
            ownerReferences=(
                _owner_lists(bytes(metadata.ownerReferences)) if metadata.ownerReferences is not NOTHING else NO_LIST
            ),
            uid=metadata.uid,
        ),
        spec=_Spec(
            containers=made.containers,
            initContainers=made.init_containers,
            nodeName=intern_text(spec.nodeName),
            priority=spec.priority,
            schedulingGroup=spec.schedulingGroup,
        ),
        status=_Status(conditions=intern_conditions(status.conditions), phase=intern_text(status.phase)),
    )
    return PodEntry(pod, made.request)


def _shape(pod: WirePod) -> bytes:
    spec, status = pod.spec, pod.status
    shape = _Shape(
        _ShapeSpec(spec.containers, spec.initContainers, spec.overhead, spec.resources),
        _ShapeStatus(
            status.containerStatuses,
            status.initContainerStatuses,
            status.allocatedResources,
            status.resources,
            [_resize(one) for one in status.conditions if one.type == RESIZE_PENDING],
        ),
    )
    return _write(shape)


def _resize(condition: Any) -> dict[str, str]:
    return {"type": RESIZE_PENDING, "reason": str(condition.reason)}
