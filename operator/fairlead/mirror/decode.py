"""Typed decoding of listed and watched objects: the JSON of one object in, only the fields in use out.

Placed pods are many, so only these fields of them are decoded: what rules may read, what requests are computed from,
and the annotations that some policy names. Parts that many pods share stay bytes, which are the key to find them again.
Nodes, namespaces and unplaced pods are decoded as rules read them.

Go writes `null` for an empty list, which most types here do not accept. That is rare: bytes that do not decode are
tried once more without such fields.
"""

# ruff: noqa: N815 - fields are called as in the API, here and in those of `structs`

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import astuple

from fairlead.cel.values.schema import NAMESPACE, NODE, POD
from fairlead.cel.values.structs import NO_INT, NO_LIST, NO_MAP, NO_TEXT, decode_scalar, empty, struct
from fairlead.cel.values.value_types import Timestamp

if TYPE_CHECKING:
    PodCondition: TypeAlias = Any
    PodSchedulingGroup: TypeAlias = Any
else:
    PodCondition = struct("PodCondition")
    PodSchedulingGroup = struct("PodSchedulingGroup")

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
NOTHING: Final = msgspec.Raw()
# Many objects share times, above all the fields of one pod.
_scalar: Final = lru_cache(maxsize=512)(decode_scalar)
# A quote within a string is escaped, so this matches fields only.
_NULL: Final = re.compile(rb',"\w+":null|"\w+":null,?')
_KEY: Final = re.compile(r"[\w./-]+", re.ASCII)


class Decoder(Generic[T]):
    """Decoder of one type of object."""

    __slots__ = ("_json",)

    def __init__(self, type_: type[T]) -> None:
        self._json = msgspec.json.Decoder(type_, dec_hook=_scalar)

    def __call__(self, raw: bytes | msgspec.Raw) -> T:
        """Decode an object. Raises msgspec.DecodeError, which names the field that does not conform to the API."""
        try:
            return self._json.decode(raw)
        except msgspec.ValidationError:
            return self._json.decode(_NULL.sub(b"", bytes(raw)))


class WireContainer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Fields of a container that rules and requests need."""

    name: str = ""
    image: str | None = None
    ports: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING
    restartPolicy: str | None = None


class WireContainerStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Fields of a container status that requests need."""

    name: str = ""
    allocatedResources: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WireMeta(msgspec.Struct, frozen=True, gc=False):
    """Metadata of a placed pod."""

    name: str = NO_TEXT
    namespace: str = NO_TEXT
    uid: str = NO_TEXT
    resourceVersion: str = ""
    annotations: msgspec.Struct | None = None
    creationTimestamp: Timestamp | None = None
    deletionTimestamp: Timestamp | None = None
    labels: msgspec.Raw = NOTHING
    ownerReferences: msgspec.Raw = NOTHING


class WireSpec(msgspec.Struct, frozen=True, gc=False):
    """Spec of a placed pod."""

    nodeName: str = NO_TEXT
    priority: int = NO_INT
    schedulingGroup: PodSchedulingGroup = empty("PodSchedulingGroup")
    containers: list[WireContainer] = []
    initContainers: list[WireContainer] = []
    overhead: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WireStatus(msgspec.Struct, frozen=True, gc=False):
    """Status of a placed pod."""

    phase: str = NO_TEXT
    conditions: list[PodCondition] = []
    containerStatuses: list[WireContainerStatus] = []
    initContainerStatuses: list[WireContainerStatus] = []
    allocatedResources: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WirePod(msgspec.Struct, frozen=True, gc=False):
    """A placed pod as decoded, until it is in the mirror."""

    metadata: WireMeta = WireMeta()
    spec: WireSpec = WireSpec()
    status: WireStatus = WireStatus()


def _node_with(images: tuple[str, Any, Any]) -> type[msgspec.Struct]:
    """Return a node type with this field in place of its images."""
    plain: dict[str, Any] = {"frozen": True, "kw_only": True, "gc": False, "eq": False}
    status = msgspec.defstruct("NodeStatus", [images], bases=(struct("NodeStatus"),), **plain)
    return msgspec.defstruct(NODE, [("status", status, empty("NodeStatus"))], bases=(struct(NODE),), **plain)


node: Final[Decoder[Any]] = Decoder(struct(NODE))
node_without_images: Final[Decoder[Any]] = Decoder(
    _node_with(("images", list, msgspec.field(default=NO_LIST, name="images, left out")))  # no field of the API
)
"""Decoder of nodes without their images, which are most of a node: three times as fast."""
watched_node: Final[Decoder[Any]] = Decoder(_node_with(("images", msgspec.Raw, msgspec.Raw(b"[]"))))
"""Decoder of nodes for the mirror, which seldom needs to decode the images."""


def node_images(raw: msgspec.Raw) -> Iterable[Any]:
    """Decode the images of a watched node. Raises what `Decoder` raises."""
    return _node_images(raw) or ()


_node_images: Final[Decoder[Any]] = Decoder(list[struct("ContainerImage")] | None)  # type: ignore[misc,arg-type]
namespace: Final[Decoder[Any]] = Decoder(struct(NAMESPACE))
pod: Final[Decoder[Any]] = Decoder(struct(POD))
"""Decoder of unplaced pods, with all fields."""


class PlacedDecoder:
    """Decoder of placed pods, with the annotations that policies read."""

    __slots__ = ("_decode", "_keys")

    def __init__(self, annotations: Iterable[str] = ()) -> None:
        self._keys = frozenset(annotations)
        self._decode = _placed(self._keys)

    def __call__(self, raw: bytes | msgspec.Raw) -> WirePod:
        """Decode a placed pod. Raises what `Decoder` raises."""
        return self._decode(raw)

    def want(self, annotations: Iterable[str]) -> bool:
        """Set which annotations are read; return True if one of them is new, so that pods must be listed again."""
        before, self._keys = self._keys, frozenset(annotations)
        if self._keys != before:
            self._decode = _placed(self._keys)
        return not self._keys <= before


def _placed(annotations: Iterable[str]) -> Decoder[WirePod]:
    # A policy may name an invalid key, which no pod has.
    return Decoder(_with_annotations(tuple(sorted(filter(_KEY.fullmatch, annotations)))))


@lru_cache(maxsize=1)
def _with_annotations(keys: tuple[str, ...]) -> type[WirePod]:
    fields = {f"key{at}": key for at, key in enumerate(keys)}
    wanted = msgspec.defstruct("Wanted", [(field, str | None, None) for field in fields], rename=fields, gc=False)
    meta = _with("WireMeta", WireMeta, annotations=(wanted | None, None))
    return _with("WirePod", WirePod, metadata=(meta, meta()))


def _with(name: str, base: type[S], **fields: tuple[Any, Any]) -> type[S]:
    """Return a struct type with other types for some of its fields."""
    changed = [(field, *typed) for field, typed in fields.items()]
    return cast("type[S]", msgspec.defstruct(name, changed, bases=(base,), frozen=True, gc=False))


def annotations_of(pod: WirePod) -> Mapping[str, str]:
    """Return the wanted annotations that a pod has."""
    found = pod.metadata.annotations
    if found is None:
        return NO_MAP
    texts = zip(found.__struct_encode_fields__, astuple(found), strict=True)
    return {key: text for key, text in texts if text is not None} or NO_MAP
