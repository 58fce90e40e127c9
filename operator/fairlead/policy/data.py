"""The values of a policy's `data` on a node, and until when they hold."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.api.data import DataEntry, NodeAnnotation
from fairlead.api.durations import parse_duration
from fairlead.cel.functions.quantity import to_float
from fairlead.policy.facts import Data
from fairlead.strategies.facts import Unknown

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")
_UNIX: Final = re.compile(r"\d{1,11}(\.\d{1,9})?")
_SECOND: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def values_on(entries: Iterable[DataEntry], node: Any, now: int) -> Data:
    """All entries of a policy, read from a node's labels and annotations."""
    values: dict[str, float] = {}
    missing: dict[str, Unknown] = {}
    for entry in entries:
        found = _value(entry, node, now)
        if isinstance(found, Unknown):
            missing[entry.name] = found
        else:
            values[entry.name] = found
    return Data(values, missing)


def until(entries: Iterable[DataEntry], node: Any, now: int) -> int | None:
    """When the next of the values grows stale."""
    ends = [_end(entry, node) for entry in entries if entry.max_age is not None]
    return min((end for end in ends if end is not None and end > now), default=None)


def _value(entry: DataEntry, node: Any, now: int) -> float | Unknown:
    what = f"data {entry.name}"
    source = entry.node_annotation or entry.node_label
    if source is None:
        return Unknown(what, "is missing")
    held = node.metadata.annotations if entry.node_annotation else node.metadata.labels
    text = held.get(source.key)
    if text is None:
        return entry.default if entry.default is not None else Unknown(what, "is missing")
    if source.format == "ValueCommaTime":
        text = text.partition(",")[0]
    number = _number(text.strip(), source.format)
    if number is None:
        return Unknown(what, "cannot be read")
    if entry.max_age is not None:
        end = _end(entry, node)
        if end is None:
            return Unknown(what, "has no time that can be read")
        if end <= now:
            return Unknown(what, "is stale")
    value = number * entry.factor
    return value if value - value == 0.0 else Unknown(what, "cannot be read")


def _number(text: str, form: str) -> float | None:
    if form == "Quantity":
        return to_float(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _end(entry: DataEntry, node: Any) -> int | None:
    """The moment at which the value is too old: later than its time by more than maxAge."""
    written = _written(entry.node_annotation, node) if entry.node_annotation else None
    if written is None or entry.max_age is None:
        return None
    return written + parse_duration(entry.max_age) * _SECOND + 1


def _written(source: NodeAnnotation, node: Any) -> int | None:
    if source.format == "ValueCommaTime":
        text = node.metadata.annotations.get(source.key, "").partition(",")[2]
    else:
        text = node.metadata.annotations.get(source.time_key or "", "")
    return moment(text.strip())


def moment(text: str) -> int | None:
    """Nanoseconds since the epoch, from RFC 3339 or Unix seconds."""
    if _UNIX.fullmatch(text):
        whole, _, fraction = text.partition(".")
        return int(whole) * _SECOND + int(fraction.ljust(9, "0") or 0)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    return (parsed - _EPOCH) // timedelta(microseconds=1) * 1000
