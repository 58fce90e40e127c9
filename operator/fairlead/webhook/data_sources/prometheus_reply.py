"""Replies of Prometheus to instant queries, read for polls. Pure.

Of each series only the label that names the node is decoded. A large reply is decoded in pieces as it comes, so that no
more than a piece of it is in memory, and calls are answered in between.
"""

import json
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.cooperative import Steps
from fairlead.policy.nodes.polls import PollError, decode_fault
from fairlead.webhook.data_sources.samples import TEXT_MAX, NodeOf, NodeSamples, one_line

WHOLE_BYTES: Final = 2 << 20
"""Size up to which a reply is decoded at once: 3 ms."""
PIECE_BYTES: Final = 64 << 10
UNCUT_BYTES: Final = 2 << 20
"""How much of a large reply may come without a place to cut it."""
SERIES_PER_NODE: Final = 20
SERIES_MORE: Final = 10_000
_SERIES: Final = 500  # between two pauses
_BEGIN: Final = re.compile(rb'"result"\s*+:\s*+\[')
_NEXT: Final = re.compile(rb'\}\s*+,\s*+(?=\{\s*+"metric"\s*+:\s*+\{)')
"""Places where a reply is cut. A quote within a text is escaped, so that they are never part of one."""
_PLACE_BYTES: Final = 256
_BEGINNINGS_MAX: Final = 4  # of other lists that are called result, too
_UNCUT: Final = (
    f"the reply is larger than {WHOLE_BYTES >> 20} MiB and is not written as Prometheus writes it, so that it cannot be"
    " read in pieces: aggregate in the query, so that each node has one series"
)
_METRIC: Final = re.compile(rb'"metric"\s*+:')
_LABELS_MAX: Final = 16 << 10
_WARNINGS_MAX: Final = 3


class _Data(msgspec.Struct, frozen=True):
    """Result of a query."""

    resultType: str = ""  # noqa: N815 - called as in the API
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Reply(msgspec.Struct, frozen=True):
    """Reply without its series."""

    status: str = ""
    data: _Data | None = None
    errorType: str = ""  # noqa: N815 - called as in the API
    error: str = ""
    warnings: list[str] | None = None


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_reply: Final = msgspec.json.Decoder(_Reply).decode


@lru_cache(maxsize=128)
def _series_decoder(label: str) -> msgspec.json.Decoder[list[Any] | None]:
    """Return the decoder of series with one label; a series without it has ""."""
    metric = msgspec.defstruct("Metric", [("label", str, "")], rename={"label": label}, frozen=True, gc=False)
    value = tuple[float, str] | None  # a histogram has none
    series = msgspec.defstruct("Series", [("metric", metric), ("value", value, None)], frozen=True, gc=False)
    return msgspec.json.Decoder(list[series] | None)  # type: ignore[valid-type]


def series_max(nodes: int) -> int:
    """Return how many series a reply may have: more than one of a node count as no value anyway."""
    return SERIES_PER_NODE * nodes + SERIES_MORE


class ReplyReader:
    """Reader of a reply that comes in chunks."""

    def __init__(self, label: str, node_of: NodeOf, most: int | None = None) -> None:
        """`most` is the number of series at which a reply is refused."""
        self._node_of, self._most = node_of, most
        self._made, self._decode = NodeSamples(label), _series_decoder(label).decode
        self._held = bytearray()
        """What has come and is not decoded."""
        self._head: bytes | None = None
        """A large reply up to its first series."""
        self._first = b""
        """The first series of a large reply."""
        self._searched = 0

    def add(self, chunk: bytes) -> bool:
        """Take a chunk; return whether there is a piece to decode by now. Raises PollError."""
        held = self._held
        held += chunk
        if self._head is None and len(held) > WHOLE_BYTES:
            self._begin()
        return self._head is not None and len(held) > PIECE_BYTES

    def decode(self) -> Steps[None]:
        """Decode the pieces that have come, pausing in between. Raises PollError."""
        held = self._held
        while self._head is not None and len(held) > PIECE_BYTES:
            found = _NEXT.search(held, max(self._searched, PIECE_BYTES))
            if (len(held) if found is None else found.start()) > UNCUT_BYTES:
                raise PollError(_UNCUT)
            if found is None:
                self._searched = max(0, len(held) - _PLACE_BYTES)  # a place may have come in part
                return
            end, following = found.start() + 1, found.end()
            self._first = self._first or bytes(held[:_LABELS_MAX])
            piece = b"[%b]" % bytes(held[:end])
            del held[:following]
            self._searched = 0
            try:
                series = self._decode(piece) or []
            except _UNREADABLE as error:
                raise _unreadable(error) from None
            yield from self._add(series)

    def end(self) -> Steps[NodeSamples]:
        """Decode the rest, and return all samples. Raises PollError."""
        rest, made = bytes(self._held), self._made
        body = rest if self._head is None else self._head + rest
        try:
            reply = _vector(_reply(body))
            series = self._decode(reply.data.result if reply.data else b"null") or []
        except _UNREADABLE as error:
            raise _unreadable(error) from None
        made.warnings = [one[: TEXT_MAX + 1] for one in (reply.warnings or ())[:_WARNINGS_MAX]]
        yield from self._add(series)
        if made.series and not made.named:
            made.labels = _first_labels(self._first or body)
        return made

    def _begin(self) -> None:
        """Find the first series of a large reply."""
        held = self._held
        for count, found in enumerate(_BEGIN.finditer(bytes(held))):
            if count == _BEGINNINGS_MAX:
                break
            try:
                reply = _reply(held[: found.end()] + b"]}}")
            except _UNREADABLE:
                continue
            if reply.data is not None and bytes(reply.data.result) == b"[]":
                self._head = bytes(held[: found.end()])
                del held[: found.end()]
                return
        if len(held) > UNCUT_BYTES:
            raise PollError(_UNCUT)

    def _add(self, series: list[Any]) -> Steps[None]:
        for start in range(0, len(series), _SERIES):
            self._made.add(series[start : start + _SERIES], self._node_of)
            if self._most is not None and self._made.series > self._most:
                raise PollError(
                    f"the reply has more than {self._most} series: aggregate in the query, so that each node has one"
                )
            yield


def node_samples(body: bytes, label: str, node_of: NodeOf) -> Steps[NodeSamples]:
    """Return the samples in a whole reply, pausing between its pieces. Raises PollError."""
    reader = ReplyReader(label, node_of)
    reader.add(body)
    yield from reader.decode()
    return (yield from reader.end())


def _unreadable(error: Exception) -> PollError:
    return PollError(f"the reply is not one of Prometheus: {decode_fault(error)}")


def _vector(reply: _Reply) -> _Reply:
    """Return a reply if it holds an instant vector. Raises PollError."""
    if reply.status == "error":
        raise PollError(_said(reply))
    if reply.status != "success" or reply.data is None:
        raise PollError("the reply is not one of Prometheus: it has no status and data")
    if reply.data.resultType != "vector":
        raise PollError(
            f"the query gives a {one_line(reply.data.resultType) or 'result without a type'}, not a vector:"
            " write one that gives one value for each node at one moment"
        )
    return reply


def refusal_text(body: bytes) -> str:
    """Return the error in a reply, with its type; "" if it holds none."""
    try:
        reply = _reply(body)
    except _UNREADABLE:
        return ""
    return _said(reply) if reply.status == "error" else ""


def _said(reply: _Reply) -> str:
    parts = (one_line(reply.errorType), one_line(reply.error, TEXT_MAX))
    return ": ".join(filter(None, parts)) or "the server answers with an error that it does not name"


def _first_labels(body: bytes) -> dict[str, str]:
    """Return all labels of the first series; none if it is not written as expected."""
    if (metric := _METRIC.search(body)) is None:
        return {}
    try:
        text = body[metric.end() : metric.end() + _LABELS_MAX].decode(errors="replace").lstrip()
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
