"""Values of a policy's `data` on a node, and the time at which they become stale."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.api.data import DataEntry, NodeAnnotation
from fairlead.api.values import parse_duration
from fairlead.cel.functions.quantity import round_to_step, to_float
from fairlead.policy.nodes.measured_table import AHEAD_NS, FUTURE, MISSING, NO_NUMBER, STALE
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.faults import RAISED, internal_error
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import ANNOTATIONS, EVERY, LABELS, Path, Reads
from fairlead.time_units import SECOND_NS

LENGTH_MAX: Final = 100
"""Longest text that is read as a number, so that a huge annotation costs nothing."""

_NUMBER: Final = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,4})?", re.ASCII)
_UNIX: Final = re.compile(r"\d{1,11}(\.\d{1,9})?", re.ASCII)
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

HeldValue = tuple[float | Unknown, int | None, int | None]
"""A value or why there is none, when that changes by itself, and the time of the value."""


def reader(entries: Sequence[DataEntry]) -> Callable[[Any, int], tuple[Data, int | None]]:
    """Return a function that reads all entries of a policy from a node, with the time when the next becomes stale."""
    readers = [(entry.name, _entry(entry)) for entry in entries if entry.node_annotation or entry.node_label]

    def read(node: Any, now: int) -> tuple[Data, int | None]:
        values: dict[str, float] = {}
        missing: dict[str, Unknown] = {}
        times: dict[str, int] = {}
        until: int | None = None
        for name, one in readers:
            try:
                found, end, at = one(node, now)
            except RAISED as error:
                found, end, at = internal_error(error, f"data {name}", why="cannot be read"), None, None
            if isinstance(found, Unknown):
                missing[name] = found
            else:
                values[name] = found
                if at is not None:
                    times[name] = min(at, now)
            if end is not None and (until is None or end < until):
                until = end
        return Data(values, missing, times), until

    return read


def with_data(view: NodeView, entries: Sequence[DataEntry], now: int, nodes: Nodes) -> NodeView:
    """Return a node with the data of a policy, for a caller that needs one node only."""
    if not entries:
        return view
    return nodes.with_measured(view.with_data(reader(entries)(view.node, now)[0]), entries, now)


def reads_of(entries: Sequence[DataEntry]) -> Reads:
    """Return the fields of a node that the entries read."""
    paths: set[Path] = set()
    for entry in entries:
        if entry.node_annotation:
            keys = (entry.node_annotation.key, entry.node_annotation.time_key)
            paths |= {(*ANNOTATIONS, key) for key in keys if key is not None}
        if entry.node_label:
            paths.add((*LABELS, entry.node_label.key))
    return Reads(node=frozenset(paths))


def read_entries(entries: Sequence[DataEntry], reads: Reads) -> list[DataEntry]:
    """Return the entries that a rule reads."""
    names = reads.data | {name for name, _ in reads.unmeasured}
    return [*entries] if EVERY in names else [entry for entry in entries if entry.name in names]


def timed_anew(first: Data | None, second: Data) -> frozenset[str]:
    """Return the names of the entries that were measured at another time than before."""
    before = {} if first is None else first.times
    if before == second.times:
        return frozenset()
    return frozenset(name for name in before.keys() | second.times.keys() if before.get(name) != second.times.get(name))


def differing(first: Data | None, second: Data | None) -> frozenset[str]:
    """Return the names of the entries that differ for a rule."""
    before, after = ({} if data is None else {**data.missing, **data} for data in (first, second))
    return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _entry(entry: DataEntry) -> Callable[[Any, int], HeldValue]:
    subject = f"data {entry.name}"
    missing, stale, ahead = Unknown(subject, MISSING), Unknown(subject, STALE), Unknown(subject, FUTURE)
    nothing: HeldValue = (missing if entry.default is None else entry.default, None, None)
    # No default either: what writes the annotation is broken, and a default often makes a node the best one.
    unread: HeldValue = (Unknown(subject, NO_NUMBER), None, None)
    annotation, source = entry.node_annotation, entry.node_annotation or entry.node_label
    max_age = None if entry.max_age is None else parse_duration(entry.max_age) * SECOND_NS
    if source is None:
        return lambda _node, _now: nothing
    key, form, factor, step = source.key, source.format, entry.factor, entry.round

    def read(node: Any, now: int) -> HeldValue:
        held: Mapping[str, str] = node.metadata.annotations if annotation else node.metadata.labels
        text = held.get(key)
        if text is None:
            return nothing
        number = _number(text, form)
        if number is None or not _is_finite(value := number * factor):
            return unread
        value = value if step is None else round_to_step(value, step)
        written = None if annotation is None else _written(annotation, held)
        if written is not None and written < (node.metadata.creationTimestamp or 0):
            return nothing  # of an earlier node of this name
        # A value without a time may be of any age.
        if max_age is not None and (written is None or now - written > max_age):
            return stale, None, None
        if written is None:
            return value, None, None
        if written - now > AHEAD_NS:
            return ahead, written - AHEAD_NS, None
        return value, None if max_age is None else written + max_age + 1, written

    return read


def _number(text: str, form: str) -> float | None:
    if form == "ValueCommaTime":
        text = text.partition(",")[0]
    text = text.strip()
    if len(text) > LENGTH_MAX:
        return None
    if form == "Quantity":
        return to_float(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _is_finite(value: float) -> bool:
    return value - value == 0.0


def _written(source: NodeAnnotation, values: Mapping[str, str]) -> int | None:
    if source.format == "ValueCommaTime":
        return moment(values.get(source.key, "").partition(",")[2].strip())
    return moment(values.get(source.time_key or "", "").strip())


def moment(text: str) -> int | None:
    """Return nanoseconds since the epoch, from RFC 3339 or Unix seconds; None if a text is neither."""
    if len(text) > LENGTH_MAX:
        return None
    if _UNIX.fullmatch(text):
        whole, _, fraction = text.partition(".")
        return int(whole) * SECOND_NS + int(fraction.ljust(9, "0") or 0)
    return dated_moment(text)


def dated_moment(text: str) -> int | None:
    """Return nanoseconds since the epoch, from RFC 3339; None if a text is not that."""
    if len(text) > LENGTH_MAX or not _RFC_3339.fullmatch(text):
        return None
    try:
        parsed = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return (parsed - _EPOCH) // timedelta(microseconds=1) * 1000
