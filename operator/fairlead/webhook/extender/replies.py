"""From what was decided to the bytes of a reply, as Go reads them: exact keys, whole numbers, `Error` always there."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import msgspec

from fairlead.webhook.extender.requests import Bytes, Victims

encode: Final = msgspec.json.Encoder().encode
_NULL: Final = b"null"


class Reasons(NamedTuple):
    """Why nodes are refused, by their names: those for which it might help to evict others, and those for which not."""

    failed: Mapping[str, str] | None = None
    unresolvable: Mapping[str, str] | None = None


NO_REASONS: Final = Reasons()


class _Host(msgspec.Struct, frozen=True, gc=False):
    Host: str
    Score: int


def encode_filter_result(
    names: bytes | None = None, nodes: bytes | memoryview | None = None, reasons: Reasons = NO_REASONS, error: str = ""
) -> bytes:
    """Of filter; names and nodes are written already."""
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
    """Nodes as they came."""
    return b'{"metadata":{},"items":[' + b",".join(map(bytes, items)) + b"]}"


def encode_priorities(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """Of prioritize, a score for each name.

    Zeros are not sent: a gate, which never prioritizes, makes the scheduler give them by itself.
    """
    return encode([*map(_Host, compress(names, scores), filter(None, scores))])


def encode_preemption(victims: Mapping[str, Victims]) -> bytes:
    """Of preempt: the candidates that are left."""
    return encode({"NodeNameToMetaVictims": victims})


def encode_binding() -> bytes:
    """Of bind: the API server has confirmed it."""
    return encode_error("")


def encode_error(why: str) -> bytes:
    """Of bind; and of the verbs whose reply has no room for an error, with a status that says so."""
    return encode({"Error": why})
