"""Encoding of replies as Go reads them: exact keys, whole numbers, `Error` always present."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import msgspec

from fairlead.webhook.extender.requests import Bytes, Victims

encode: Final = msgspec.json.Encoder().encode
_NULL: Final = b"null"


class Reasons(NamedTuple):
    """Reasons by node name: rejected nodes where evicting pods may help, and those where it cannot."""

    failed: Mapping[str, str] | None = None
    unresolvable: Mapping[str, str] | None = None


NO_REASONS: Final = Reasons()


class _Host(msgspec.Struct, frozen=True, gc=False):
    Host: str
    Score: int


def encode_filter_result(
    names: bytes | None = None, nodes: bytes | memoryview | None = None, reasons: Reasons = NO_REASONS, error: str = ""
) -> bytes:
    """Encode the reply of filter; names and nodes are encoded already."""
    return b"".join(
        (
            b'{"Nodes":',
            _NULL if nodes is None else nodes,
            b',"NodeNames":',
            _NULL if names is None else names,
            b',"FailedNodes":',
            encode(reasons.failed),
            b',"FailedAndUnresolvableNodes":',
            encode(reasons.unresolvable),
            b',"Error":',
            encode(error),
            b"}",
        )
    )


def node_list(items: Iterable[Bytes]) -> bytes:
    """Encode a node list from the bytes of its nodes."""
    return b'{"metadata":{},"items":[' + b",".join(map(bytes, items)) + b"]}"


def encode_priorities(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """Encode the reply of prioritize.

    Zeros are left out: the scheduler adds them itself, because the filter entry has no `prioritizeVerb` and so names
    all nodes.
    """
    return encode([*map(_Host, compress(names, scores), filter(None, scores))])


def encode_preemption(victims: Mapping[str, Victims]) -> bytes:
    """Encode the reply of preempt: the remaining candidates."""
    return encode({"NodeNameToMetaVictims": victims})


def encode_binding() -> bytes:
    """Encode the reply of a bind that the API server has confirmed."""
    return encode_error("")


def binding_error(body: bytes) -> str:
    """Return why a pod was not bound, by the reply of a bind; "" if it was."""
    try:
        return str(msgspec.json.decode(body, type=dict[str, str]).get("Error", ""))
    except msgspec.MsgspecError:
        return "its reply cannot be read"


def encode_error(why: str) -> bytes:
    """Encode an error of bind; also of verbs whose reply has no field for it, sent with a status other than 200."""
    return encode({"Error": why})
