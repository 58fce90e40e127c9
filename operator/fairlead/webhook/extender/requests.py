"""From the bytes of a request to what the verbs need of it; what nobody has a say in stays bytes.

kube-scheduler writes the keys of its messages in PascalCase and in a fixed order. Others may write them in any case and
order, as Go reads them; what is inside of pods and nodes has the case of the Kubernetes API.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairlead.cel.values.schema import POD
from fairlead.cel.values.structs import decode_scalar, from_json, struct

if TYPE_CHECKING:
    _Pod = Any
else:
    _Pod = struct(POD)

T = TypeVar("T")
_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Bytes = bytes | Raw
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, NotImplementedError)
"""What decoding raises, all of it the sender's fault; the last is a scalar of a type that nobody converts."""
_BEFORE_NAMES: Final = b',"Nodes":null,"NodeNames":['
_NODES: Final = b',"Nodes":'
_BEFORE_ITEMS: Final = b'{"metadata":{},"items":['
_AFTER_NODES: Final = b',"NodeNames":null}'
_AFTER_ITEMS: Final = b"]}"
_NULL: Final = Raw(b"null")


def unreadable(error: Exception) -> str:
    """What is wrong with what cannot be decoded, without a value of it: only the decoder is known to tell none."""
    return str(error) if isinstance(error, msgspec.MsgspecError) else "a value in it cannot be read"


class MalformedError(Exception):
    """A body that is no request; the message is for whoever sent it."""


class FilterArgs(Struct, frozen=True, gc=False):
    """Of filter and prioritize: nodes or names as the bytes that came, names where both did; None for null."""

    pod: Any
    nodes: bytes | memoryview | None = None
    names: bytes | None = None
    items: Sequence[Bytes] | None = None
    """Each of the nodes."""

    @property
    def has_full_nodes(self) -> bool:
        """Whether it brings its own nodes."""
        return self.nodes is not None


class BindArgs(Struct, frozen=True, gc=False):
    """Of bind."""

    name: str = msgspec.field(name="PodName")
    namespace: str = msgspec.field(name="PodNamespace")
    uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class MetaPod(Struct, frozen=True, gc=False):
    """A victim: no more than its UID."""

    UID: str


class Victims(Struct, frozen=True, gc=False):
    """Whom to evict from a node, as it is written."""

    Pods: list[MetaPod]
    NumPDBViolations: _Int64


class PreemptArgs(Struct, frozen=True, gc=False):
    """Of preempt: whom the scheduler would evict from each node."""

    pod: Any
    victims: Mapping[str, Victims]
    has_full_nodes: bool = False
    """Whether it brings the victims as whole pods."""


NodeSplitter = Callable[[bytes, int, int], Sequence[bytes] | None]
"""Whole values with commas between them, from one place of a body to another, if somebody knows them all."""


def decode_filter_args(body: bytes, split: NodeSplitter = lambda *_: None) -> FilterArgs:
    """The request of filter and prioritize.

    Names are not looked at. Where nobody asks for them, reading past them would take most of the time, so that the body
    is cut before they begin. That is the right place: what comes before is an object when it is closed there, and
    the bracket that ends the body is the first one after it. Nodes are found in the same way, and read once.
    """
    cut = body.find(_BEFORE_NAMES) if body.endswith(b"]}") else -1
    if cut > 0 and body.find(b"]", cut) == len(body) - 2:
        try:
            return FilterArgs(_WITH_POD.decode(body[:cut] + b"}").Pod, names=body[cut + len(_BEFORE_NAMES) - 1 : -1])
        except UNREADABLE:
            pass  # whatever it is, the other ways will say
    elif body.endswith(_AFTER_NODES) and (cut := body.find(_NODES)) > 0:
        try:
            return _with_nodes(body, cut, split)
        except UNREADABLE:
            pass
    try:
        seen = _ARGS.decode(body)
    except UNREADABLE:
        given = _in_any_case(body)
        return _args(_pod(given), given.get("nodes", _NULL), given.get("nodenames", _NULL))
    return _args(seen.Pod, seen.Nodes, seen.NodeNames)


def decode_names(raw: bytes) -> list[str]:
    """The names of nodes."""
    return _read(_NAMES.decode, raw)


def decode_preempt_args(body: bytes) -> PreemptArgs:
    """The request of preempt."""
    try:
        seen = _PREEMPT_ARGS.decode(body)
        asked, meta, full = seen.Pod, _bytes(seen.NodeNameToMetaVictims), _bytes(seen.NodeNameToVictims)
    except UNREADABLE:
        given = _in_any_case(body)
        asked = _pod(given)
        meta = _bytes(given.get("nodenametometavictims", _NULL))
        full = _bytes(given.get("nodenametovictims", _NULL))
    if meta is not None:
        return PreemptArgs(asked, _meta_victims(meta))
    return PreemptArgs(asked, {} if full is None else _victims(full, _uid_of_pod), has_full_nodes=full is not None)


def decode_pod(raw: Bytes) -> Any:
    """A pod, also from tools that write null where the API server writes nothing."""
    try:
        return _POD.decode(raw)
    except UNREADABLE:
        return _read(lambda written: from_json(POD, msgspec.json.decode(written)), raw)


def decode_bind_args(body: bytes) -> BindArgs:
    """The request of bind."""
    try:
        return _BIND_ARGS.decode(body)
    except UNREADABLE:
        given = _in_any_case(body)
        told = {
            key: given[key.lower()] for key in ("PodName", "PodNamespace", "PodUID", "Node") if key.lower() in given
        }
        return _read(_BIND_ARGS.decode, msgspec.json.encode(told))


class _WithPod(Struct, gc=False):
    Pod: _Pod


class _Args(_WithPod, gc=False):
    Nodes: Raw
    NodeNames: Raw


class _PreemptArgs(_WithPod, gc=False):
    NodeNameToVictims: Raw
    NodeNameToMetaVictims: Raw


class _NodeList(Struct, gc=False):
    items: list[Raw] | None = None


class _WithUid(Struct, gc=False):
    uid: str


class _Victim(Struct, gc=False):
    metadata: _WithUid


_POD: Final = msgspec.json.Decoder(_Pod, dec_hook=decode_scalar)
_WITH_POD: Final = msgspec.json.Decoder(_WithPod, dec_hook=decode_scalar)
_ARGS: Final = msgspec.json.Decoder(_Args, dec_hook=decode_scalar)
_PREEMPT_ARGS: Final = msgspec.json.Decoder(_PreemptArgs, dec_hook=decode_scalar)
_BIND_ARGS: Final = msgspec.json.Decoder(BindArgs)
_NAMES: Final = msgspec.json.Decoder(list[str])
_NODE_LIST: Final = msgspec.json.Decoder(_NodeList)
_META: Final = msgspec.json.Decoder(dict[str, Victims])
_VICTIM: Final = msgspec.json.Decoder(_Victim)
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_OBJECTS: Final = msgspec.json.Decoder(dict[str, dict[str, Raw] | None])
_LIST: Final = msgspec.json.Decoder(list[Raw] | None)
_TEXT: Final = msgspec.json.Decoder(str)
_COUNT: Final = msgspec.json.Decoder(_Int64 | None)


def _read(decode: Callable[[Bytes], T], raw: Bytes) -> T:
    try:
        return decode(raw)
    except UNREADABLE as error:
        raise MalformedError(f"the request cannot be read: {unreadable(error)}") from None


def _with_nodes(body: bytes, cut: int, split: NodeSplitter) -> FilterArgs:
    """What comes before is an object when it is closed at the cut; and what comes after it is one value."""
    pod = _WITH_POD.decode(body[:cut] + b"}").Pod
    begin, end = cut + len(_NODES), len(body) - len(_AFTER_NODES)
    nodes, known = memoryview(body)[begin:end], None
    if body.startswith(_BEFORE_ITEMS, begin) and body.endswith(_AFTER_ITEMS, begin, end):
        known = split(body, begin + len(_BEFORE_ITEMS), end - len(_AFTER_ITEMS))
    return FilterArgs(pod, nodes, items=_NODE_LIST.decode(nodes).items or [] if known is None else known)


def _args(asked: Any, nodes: Raw, written: Raw) -> FilterArgs:
    """Of a body that kube-scheduler did not write, or that brings nodes: time is less dear there, and all is read."""
    of_names, of_nodes = _bytes(written), _bytes(nodes)
    if of_names is not None:
        decode_names(of_names)
        return FilterArgs(asked, names=of_names)
    return FilterArgs(
        asked, of_nodes, items=None if of_nodes is None else _read(_NODE_LIST.decode, of_nodes).items or []
    )


def _bytes(raw: Raw) -> bytes | None:
    found = bytes(raw)
    return None if found == b"null" else found


def _in_any_case(raw: Bytes) -> dict[str, Raw]:
    """The keys of an object in lower case; of several that differ in case only, the last, as in Go."""
    return _lower(_read(_OBJECT.decode, raw))


def _lower(keys: Mapping[str, Raw]) -> dict[str, Raw]:
    return {key.lower(): value for key, value in keys.items()}


def _pod(given: Mapping[str, Raw]) -> Any:
    raw = given.get("pod", _NULL)
    if _bytes(raw) is None:
        raise MalformedError("the request has no Pod")
    return decode_pod(raw)


def _meta_victims(raw: bytes) -> dict[str, Victims]:
    try:
        return _META.decode(raw)
    except UNREADABLE:
        return _victims(raw, _uid_of_meta)


def _victims(raw: bytes, uid_of: Callable[[Raw], str]) -> dict[str, Victims]:
    """The same in any case, or of whole pods."""
    found = {}
    for node, written in _read(_OBJECTS.decode, raw).items():
        keys = _lower(written or {})
        pods = _read(_LIST.decode, keys.get("pods", _NULL)) or []
        violations = _read(_COUNT.decode, keys.get("numpdbviolations", _NULL)) or 0
        found[node] = Victims([MetaPod(uid_of(pod)) for pod in pods], violations)
    return found


def _uid_of_meta(raw: Raw) -> str:
    return _read(_TEXT.decode, _in_any_case(raw).get("uid", _NULL))


def _uid_of_pod(raw: Raw) -> str:
    return _read(_VICTIM.decode, raw).metadata.uid
