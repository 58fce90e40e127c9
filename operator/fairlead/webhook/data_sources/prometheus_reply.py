"""Replies of Prometheus to instant queries, read for polls. Pure.

Of each series only the label that names the node is decoded. A large reply is decoded in pieces as it comes, so that no
more than a piece of it is in memory, and calls are answered in between.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, Final

import msgspec

from fairlead.cooperative import Steps
from fairlead.policy.views.polls import Reading
from fairlead.webhook.data_sources.poll_error import PollError

NodeOf = Callable[[str], str | None]
"""Returns the name of the node that the value of a label names, or None."""
WHOLE_BYTES: Final = 2 << 20
"""Size up to which a reply is decoded at once: 3 ms."""
PIECE_BYTES: Final = 256 << 10
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
_LISTED_MAX: Final = 8
_WARNINGS_MAX: Final = 3
TEXT_MAX: Final = 300
"""Length of a server's text in messages."""
_SHORT_MAX: Final = 60
_LIKELY: Final = (
    "node",
    "instance",
    "nodename",
    "kubernetes_node",
    "exported_instance",
    "Hostname",
    "hostname",
    "host",
)
_SECOND_NS: Final = 1_000_000_000
_LATEST_S: Final = 1e11  # the year 5138; what is later is no time


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


@dataclass(slots=True, eq=False)
class NodeSamples:
    """Samples of one reply, by node."""

    label: str
    values: dict[str, float] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)
    no_number: set[str] = field(default_factory=set)
    series: int = 0
    unnamed: int = 0
    stranger: str = ""
    """Value of the label of one series that names no node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the first series, if no series names a node."""
    warnings: Collection[str] = ()
    """The first few."""

    def add(self, found: Collection[Any], node_of: NodeOf) -> None:
        """Add series."""
        values, no_number, several = self.values, self.no_number, self.several
        for one in found:
            label = one.metric.label
            node = node_of(label)
            if node is None:
                self.stranger = self.stranger or label[:TEXT_MAX]
                self.unnamed += 1
            elif node in values or node in no_number or node in several:
                values.pop(node, None)
                no_number.discard(node)
                several.add(node)
            elif (number := _number(one.value)) is None:
                no_number.add(node)
            else:
                values[node] = number
        self.series += len(found)

    @property
    def named(self) -> int:
        """Number of series that name a node."""
        return self.series - self.unnamed

    def note(self, node_of: NodeOf) -> str:
        """Return advice for the owner of the query; "" if there is none."""
        said = [f"the server warns: {one_line(one, TEXT_MAX)}" for one in self.warnings]
        if not self.series:
            said.append("the query gives no series")
        elif not self.named:
            said.append(f"of {self.series} series none names a node by label {self.label}; {self._has(node_of)}")
        elif self.named < self.series:
            such = f", such as {one_line(self.stranger)}" if self.stranger else f": they have no label {self.label}"
            said.append(
                f"of {self.series} series {self.named} name a node by label {self.label}; the others name none{such}"
            )
        if self.several:
            said.append(
                f"{_of(self.several, 'has', 'have')} several series: aggregate them in the query, such as"
                f" max by ({self.label}) (...)"
            )
        return "; ".join(said)

    def _has(self, node_of: NodeOf) -> str:
        """Return which labels the series have, with the value of the one that names nodes, or is most likely to."""
        labels = {name: value for name, value in self.labels.items() if name != "__name__"}
        if not labels:
            return f"they have no labels: aggregate them in the query by node, such as max by ({self.label}) (...)"
        names = [name for name, value in labels.items() if node_of(value) is not None]
        likely = (*names, self.label, *_LIKELY, *sorted(labels))
        first = next(name for name in likely if name in labels)
        rest = sorted(labels.keys() - {first})
        text = ", ".join([f"{first} ({one_line(labels[first])})", *rest[: _LISTED_MAX - 1]])
        text += f" and {more} more" if (more := len(rest) - _LISTED_MAX + 1) > 0 else ""
        return f"they have {text}" + (f": set nodeLabel to {first}" if names else "")


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
    return PollError(f"the reply is not one of Prometheus: {error}")


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


def reading(samples: NodeSamples, times: NodeSamples | None, sent: int, node_of: NodeOf) -> Reading:
    """Return the result of a poll. `times` are those of a time query; without one it is `sent`, in nanoseconds."""
    note = samples.note(node_of)
    if times is None:
        return Reading(samples.values, sent, frozenset(samples.several), frozenset(samples.no_number), note)
    at = {node: int(time * _SECOND_NS) for node, time in times.values.items() if 0 < time < _LATEST_S}
    several = frozenset(samples.several | times.several)
    values = {node: value for node, value in samples.values.items() if node in at}
    untimed = {node for node in samples.values if node not in at and node not in several}
    said = [note] if note else []
    if of_times := times.note(node_of):
        said.append(f"timeQuery: {of_times}")
    if untimed:
        said.append(f"{_of(untimed, 'has', 'have')} no time from timeQuery, so that the value does not count")
    known = {node: at[node] for node in values}
    return Reading(values, known, several, frozenset(samples.no_number), "; ".join(said))


def _number(value: tuple[float, str] | None) -> float | None:
    """Return a finite number; None for anything else."""
    if value is None:
        return None
    try:
        number = float(value[1])
    except ValueError:
        return None
    return number if isfinite(number) else None


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


def _of(nodes: Collection[str], has: str, have: str) -> str:
    """Return how many nodes have something, with one of them."""
    one = min(nodes)
    return f"node {one} {has}" if len(nodes) == 1 else f"{len(nodes)} nodes, such as {one}, {have}"


def one_line(text: str, most: int = _SHORT_MAX) -> str:
    """Return text of others for a message: one line, never long."""
    shown = " ".join(text[: most + 1].split())
    shown = "".join(one if one.isprintable() else "?" for one in shown)
    return shown if len(text) <= most else f"{shown[:most]}..."
