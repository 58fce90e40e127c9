"""Typed decode of what is listed and watched: the bytes of one object in, only the fields that are of use out.

Pods on nodes are many, so that of each only this is decoded: what rules may read of them, what amounts are computed
from, and the annotations that some policy names. Parts that many pods share stay bytes, by which they are found again.
Nodes, namespaces and pods that wait are decoded as rules read them.

Go writes `null` for a list that it has left empty, and in most places the types here know none. That is rare: bytes
that do not decode are tried once more without such fields.
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
# Many objects have times in common, those of one pod above all.
_scalar: Final = lru_cache(maxsize=16_384)(decode_scalar)
# A quote within a text is written \", so that this is found at fields only.
_NULL: Final = re.compile(rb',"\w+":null|"\w+":null,?')
_KEY: Final = re.compile(r"[\w./-]+", re.ASCII)


class Decoder(Generic[T]):
    """Decodes objects of one type."""

    __slots__ = ("_json",)

    def __init__(self, type_: type[T]) -> None:
        self._json = msgspec.json.Decoder(type_, dec_hook=_scalar)

    def __call__(self, raw: bytes | msgspec.Raw) -> T:
        """The object. Raises msgspec.DecodeError, which names the field that is not as the API has it."""
        try:
            return self._json.decode(raw)
        except msgspec.ValidationError:
            return self._json.decode(_NULL.sub(b"", bytes(raw)))


class WireContainer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What rules read of a container, and what amounts need."""

    name: str = ""
    image: str | None = None
    ports: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING
    restartPolicy: str | None = None


class WireContainerStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the kubelet says of a container's resources."""

    name: str = ""
    allocatedResources: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WireMeta(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a pod on a node."""

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
    """The spec of a pod on a node."""

    nodeName: str = NO_TEXT
    priority: int = NO_INT
    schedulingGroup: PodSchedulingGroup = empty("PodSchedulingGroup")
    containers: list[WireContainer] = []
    initContainers: list[WireContainer] = []
    overhead: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WireStatus(msgspec.Struct, frozen=True, gc=False):
    """The status of a pod on a node."""

    phase: str = NO_TEXT
    conditions: list[PodCondition] = []
    containerStatuses: list[WireContainerStatus] = []
    initContainerStatuses: list[WireContainerStatus] = []
    allocatedResources: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class WirePod(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node, for as long as it takes to put it into the mirror."""

    metadata: WireMeta = WireMeta()
    spec: WireSpec = WireSpec()
    status: WireStatus = WireStatus()


def _without_images() -> type[msgspec.Struct]:
    """A node whose images are never there, as no field of the API is called like that."""
    plain: dict[str, Any] = {"frozen": True, "kw_only": True, "gc": False, "eq": False}
    nowhere = msgspec.field(default=NO_LIST, name="images, left out")
    status = msgspec.defstruct("NodeStatus", [("images", list, nowhere)], bases=(struct("NodeStatus"),), **plain)
    return msgspec.defstruct(NODE, [("status", status, empty("NodeStatus"))], bases=(struct(NODE),), **plain)


node: Final[Decoder[Any]] = Decoder(struct(NODE))
node_without_images: Final[Decoder[Any]] = Decoder(_without_images())
"""The same without the images, which are most of a node: three times faster."""
namespace: Final[Decoder[Any]] = Decoder(struct(NAMESPACE))
pod: Final[Decoder[Any]] = Decoder(struct(POD))
"""Whole pods: those that wait for a scheduler."""


class PlacedDecoder:
    """Decodes pods on nodes, and of their annotations those that policies read."""

    __slots__ = ("_decode", "_keys")

    def __init__(self, annotations: Iterable[str] = ()) -> None:
        self._keys = frozenset(annotations)
        self._decode = _placed(self._keys)

    def __call__(self, raw: bytes | msgspec.Raw) -> WirePod:
        """The pod; raises as `Decoder` does."""
        return self._decode(raw)

    def want(self, annotations: Iterable[str]) -> bool:
        """Which annotations are read from now on; whether pods must be listed again, because one of them is new."""
        before, self._keys = self._keys, frozenset(annotations)
        if self._keys != before:
            self._decode = _placed(self._keys)
        return not self._keys <= before


def _placed(annotations: Iterable[str]) -> Decoder[WirePod]:
    # A policy may ask for what is no key: no pod has it.
    return Decoder(_with_annotations(tuple(sorted(filter(_KEY.fullmatch, annotations)))))


@lru_cache(maxsize=1)
def _with_annotations(keys: tuple[str, ...]) -> type[WirePod]:
    fields = {f"key{at}": key for at, key in enumerate(keys)}
    wanted = msgspec.defstruct("Wanted", [(field, str | None, None) for field in fields], rename=fields, gc=False)
    meta = _with("WireMeta", WireMeta, annotations=(wanted | None, None))
    return _with("WirePod", WirePod, metadata=(meta, meta()))


def _with(name: str, base: type[S], **fields: tuple[Any, Any]) -> type[S]:
    """A struct with other types for some of its fields."""
    changed = [(field, *typed) for field, typed in fields.items()]
    return cast("type[S]", msgspec.defstruct(name, changed, bases=(base,), frozen=True, gc=False))


def annotations_of(one: WirePod) -> Mapping[str, str]:
    """Those of the wanted annotations that the pod has."""
    found = one.metadata.annotations
    if found is None:
        return NO_MAP
    texts = zip(found.__struct_encode_fields__, astuple(found), strict=True)
    return {key: text for key, text in texts if text is not None} or NO_MAP
