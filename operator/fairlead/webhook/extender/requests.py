"""Decoding of requests: only what the verbs need; node lists that no policy reads stay bytes.

kube-scheduler writes the keys of its messages in PascalCase and in a fixed order. Other clients may write them in any
case and order, as Go reads them; keys inside pods and nodes have the case of the Kubernetes API.
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
"""Exceptions of decoding, each the sender's fault; NotImplementedError is a scalar of an unsupported type."""
BEFORE_NAMES: Final = b',"Nodes":null,"NodeNames":['
_NODES: Final = b',"Nodes":'
_BEFORE_ITEMS: Final = b'{"metadata":{},"items":['
_AFTER_NODES: Final = b',"NodeNames":null}'
_AFTER_ITEMS: Final = b"]}"
_NULL: Final = Raw(b"null")


def unreadable(error: Exception) -> str:
    """Return why decoding failed, without any value of the input: only msgspec's messages are known to contain none."""
    return str(error) if isinstance(error, msgspec.MsgspecError) else "a value in it cannot be read"


class MalformedError(Exception):
    """Body that is not a valid request; the message is for its sender."""


class FilterArgs(Struct, frozen=True, gc=False):
    """Arguments of filter and prioritize: nodes or names as their bytes; names if both were sent; None for null."""

    pod: Any
    nodes: bytes | memoryview | None = None
    names: bytes | None = None
    items: Sequence[Bytes] | None = None
    """Bytes of each node."""

    @property
    def has_full_nodes(self) -> bool:
        """Return whether the request brings full nodes."""
        return self.nodes is not None


class BindArgs(Struct, frozen=True, gc=False):
    """Arguments of bind."""

    name: str = msgspec.field(name="PodName")
    namespace: str = msgspec.field(name="PodNamespace")
    uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class MetaPod(Struct, frozen=True, gc=False):
    """A victim: only its UID."""

    UID: str


class Victims(Struct, frozen=True, gc=False):
    """Victims on a node, as kube-scheduler writes them."""

    Pods: list[MetaPod]
    NumPDBViolations: _Int64


class PreemptArgs(Struct, frozen=True, gc=False):
    """Arguments of preempt: the victims that the scheduler would evict from each node."""

    pod: Any
    victims: Mapping[str, Victims]
    has_full_nodes: bool = False
    """Whether the request brings the victims as full pods."""


NodeSplitter = Callable[[bytes, int, int], Sequence[bytes] | None]
"""Returns the values of a comma-separated list between two positions of a body; None unless all are cached."""


def decode_filter_args(body: bytes, split: NodeSplitter = lambda *_: None) -> FilterArgs:
    """Decode a request of filter or prioritize. Raises MalformedError.

    Names are not decoded here: if no policy needs them, skipping over them would take most of the time, so the body is
    cut before they begin. The cut is right: the part before it decodes as an object once it is closed there, and the
    bracket at the end of the body is the first one after it. Nodes are found in the same way and decoded once.
    """
    cut = body.find(BEFORE_NAMES) if body.endswith(b"]}") else -1
    if cut > 0 and body.find(b"]", cut) == len(body) - 2:
        try:
            return FilterArgs(_WITH_POD.decode(body[:cut] + b"}").Pod, names=body[cut + len(BEFORE_NAMES) - 1 : -1])
        except UNREADABLE:
            pass  # the slower decoders below report what is wrong
    elif body.endswith(_AFTER_NODES) and (cut := body.find(_NODES)) > 0:
        try:
            return _with_nodes(body, cut, split)
        except UNREADABLE:
            pass
    try:
        seen = _ARGS.decode(body)
    except UNREADABLE:
        keys = _in_any_case(body)
        return _args(_pod(keys), keys.get("nodes", _NULL), keys.get("nodenames", _NULL))
    return _args(seen.Pod, seen.Nodes, seen.NodeNames)


def decode_names(raw: bytes) -> list[str]:
    """Decode a list of node names. Raises MalformedError."""
    return _read(_NAMES.decode, raw)


def decode_preempt_args(body: bytes) -> PreemptArgs:
    """Decode a request of preempt. Raises MalformedError."""
    try:
        seen = _PREEMPT_ARGS.decode(body)
        asked, meta, full = seen.Pod, _bytes(seen.NodeNameToMetaVictims), _bytes(seen.NodeNameToVictims)
    except UNREADABLE:
        keys = _in_any_case(body)
        asked = _pod(keys)
        meta = _bytes(keys.get("nodenametometavictims", _NULL))
        full = _bytes(keys.get("nodenametovictims", _NULL))
    if meta is not None:
        return PreemptArgs(asked, _meta_victims(meta))
    return PreemptArgs(asked, {} if full is None else _victims(full, _uid_of_pod), has_full_nodes=full is not None)


def decode_pod(raw: Bytes) -> Any:
    """Decode a pod, also from tools that write null for absent fields. Raises MalformedError."""
    try:
        return _POD.decode(raw)
    except UNREADABLE:
        return _read(lambda written: from_json(POD, msgspec.json.decode(written)), raw)


def decode_bind_args(body: bytes) -> BindArgs:
    """Decode a request of bind. Raises MalformedError."""
    try:
        return _BIND_ARGS.decode(body)
    except UNREADABLE:
        keys = _in_any_case(body)
        canonical = {
            key: keys[key.lower()] for key in ("PodName", "PodNamespace", "PodUID", "Node") if key.lower() in keys
        }
        return _read(_BIND_ARGS.decode, msgspec.json.encode(canonical))


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
    """Decode a body with nodes: the part before the cut, closed, is an object; the part after it is one value."""
    pod = _WITH_POD.decode(body[:cut] + b"}").Pod
    begin, end = cut + len(_NODES), len(body) - len(_AFTER_NODES)
    nodes, known = memoryview(body)[begin:end], None
    if body.startswith(_BEFORE_ITEMS, begin) and body.endswith(_AFTER_ITEMS, begin, end):
        known = split(body, begin + len(_BEFORE_ITEMS), end - len(_AFTER_ITEMS))
    return FilterArgs(pod, nodes, items=_NODE_LIST.decode(nodes).items or [] if known is None else known)


def _args(value: Any, nodes: Raw, written: Raw) -> FilterArgs:
    """Return the arguments of a body in another form, or with nodes: nothing is skipped, time matters less here."""
    of_names, of_nodes = _bytes(written), _bytes(nodes)
    if of_names is not None:
        decode_names(of_names)
        return FilterArgs(value, names=of_names)
    return FilterArgs(
        value, of_nodes, items=None if of_nodes is None else _read(_NODE_LIST.decode, of_nodes).items or []
    )


def _bytes(raw: Raw) -> bytes | None:
    found = bytes(raw)
    return None if found == b"null" else found


def _in_any_case(raw: Bytes) -> dict[str, Raw]:
    """Return an object with its keys in lower case; of keys that differ in case only, the last counts, as in Go."""
    return _lower(_read(_OBJECT.decode, raw))


def _lower(keys: Mapping[str, Raw]) -> dict[str, Raw]:
    return {key.lower(): value for key, value in keys.items()}


def _pod(keys: Mapping[str, Raw]) -> Any:
    raw = keys.get("pod", _NULL)
    if _bytes(raw) is None:
        raise MalformedError("the request has no Pod")
    return decode_pod(raw)


def _meta_victims(raw: bytes) -> dict[str, Victims]:
    try:
        return _META.decode(raw)
    except UNREADABLE:
        return _victims(raw, _uid_of_meta)


def _victims(raw: bytes, uid_of: Callable[[Raw], str]) -> dict[str, Victims]:
    """Decode victims with keys in any case, or as full pods."""
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
