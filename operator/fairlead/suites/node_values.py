"""Measured values that a suite gives its nodes, as `data: {load: 0.4}`, and what polls would have read of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, Final, NamedTuple

from fairlead.api.closest_name import closest_name
from fairlead.api.data import DataEntry
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.parse import show_value
from fairlead.api.values import parse_duration
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.polls import Poll, Reading, poll_of
from fairlead.suites.suite import Object, Suite
from fairlead.time_units import SECOND_NS

FIELD: Final = "data"
_FIELDS: Final = ("value", "age")
_EXAMPLE: Final = "write a number, null, or {value: 0.4, age: 90s}"


class DataValue(NamedTuple):
    """Value of an entry on a node, before its factor."""

    number: float
    age_s: int
    path: FieldPath


def shape_errors(value: object, path: FieldPath) -> Iterator[FieldError]:
    """Yield every error in the form of a node's or a template's `data`."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        yield FieldError(
            path, f"must be a map, not {show_value(value)}", "write the values by the names of their entries"
        )
        return
    for name, one in value.items():
        yield from _value_errors(one, (*path, name))


def entry_errors(suite: Suite, policies: Sequence[CompiledPolicy]) -> Iterator[FieldError]:
    """Yield an error for every value that no policy of a suite measures."""
    entries = [entry for policy in policies for entry in policy.data]
    measured = {entry.name for entry in entries if poll_of(entry) is not None}
    own = {entry.name: entry for entry in entries if poll_of(entry) is None}
    for values, path in _given(suite):
        for name in values:
            if name not in measured:
                yield _not_measured(name, own.get(name), sorted(measured), (*path, name))


def node_values(written: Object, path: FieldPath) -> dict[str, DataValue]:
    """Return the values of a node, of which nothing is left to merge. Raises InvalidObjectError."""
    found = dict[str, DataValue]()
    for name, one in (written.get(FIELD) or {}).items():
        here: FieldPath = (*path, FIELD, name)
        given = one if isinstance(one, Mapping) else {"value": one}
        if given.get("value") is None:
            if given.get("age") is None:
                continue
            message = "has an age and no value"
            raise InvalidObjectError([FieldError(here, message, "write both, as in {value: 0.4, age: 90s}")])
        age = given.get("age")
        found[name] = DataValue(float(given["value"]), 0 if age is None else parse_duration(age), here)
    return found


def readings(
    values: Mapping[str, Mapping[str, DataValue]], policies: Iterable[CompiledPolicy], now: int
) -> dict[Poll, Reading]:
    """Return what each poll has read, from values by node. Raises InvalidObjectError if entries contradict each other.

    Entries that share a poll share its value, as they do in a cluster.
    """
    polls = dict[str, dict[Poll, None]]()
    for entry in chain.from_iterable(policy.data for policy in policies):
        if (poll := poll_of(entry)) is not None:
            polls.setdefault(entry.name, {})[poll] = None
    found = dict[Poll, dict[str, tuple[str, DataValue]]]()
    for node, entries in values.items():
        for name, value in entries.items():
            for poll in polls.get(name, ()):
                other, before = found.setdefault(poll, {}).setdefault(node, (name, value))
                if (before.number, before.age_s) != (value.number, value.age_s):
                    message = f"differs from {other}, which is the same measurement: {poll.name}"
                    raise InvalidObjectError([FieldError(value.path, message, "give both the same value and age")])
    return {
        poll: Reading(
            {node: value.number for node, (_, value) in of_nodes.items()},
            {node: now - value.age_s * SECOND_NS for node, (_, value) in of_nodes.items()},
        )
        for poll, of_nodes in found.items()
    }


def _given(suite: Suite) -> Iterator[tuple[Mapping[str, Any], FieldPath]]:
    """Yield every `data` of a suite with its path."""
    objects: list[tuple[Object, FieldPath]] = [(one, ("templates", name)) for name, one in suite.templates.items()]
    objects += [(one, ("nodes", index)) for index, one in enumerate(suite.nodes)]
    for at, case in enumerate(suite.cases):
        objects += [(one, ("cases", at, "nodes", index)) for index, one in enumerate(case.nodes)]
    for one, path in objects:
        if isinstance(values := one.get(FIELD), Mapping):
            yield values, (*path, FIELD)


def _not_measured(name: str, own: DataEntry | None, measured: Sequence[str], path: FieldPath) -> FieldError:
    if own is not None and own.node_annotation is not None:
        hint = f"write the annotation {own.node_annotation.key} under metadata.annotations"
        return FieldError(path, f"the entry {name} reads an annotation of the node", hint)
    if own is not None and own.node_label is not None:
        hint = f"write the label {own.node_label.key} under metadata.labels"
        return FieldError(path, f"the entry {name} reads a label of the node", hint)
    near = closest_name(name, measured)
    there = f"there are {', '.join(measured)}" if measured else "its policies measure nothing"
    return FieldError(path, f"no policy of this suite measures {name!r}", f"did you mean {near}?" if near else there)


def _value_errors(value: object, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        if value is not None:
            yield from _number_errors(value, path)
        return
    for field, one in value.items():
        here = (*path, field)
        if field not in _FIELDS:
            near = closest_name(field, _FIELDS)
            hint = f"did you mean {near}?" if near else f"its fields are {', '.join(_FIELDS)}"
            yield FieldError(here, "there is no such field", hint)
        elif field == "value" and one is not None:
            yield from _number_errors(one, here)
        elif field == "age" and one is not None and not _is_duration(one):
            yield FieldError(here, f"{show_value(one)} is not a duration", "write one such as 90s, 5m or 1h30m")


def _number_errors(value: object, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        yield FieldError(path, f"must be a number, not {show_value(value)}", _EXAMPLE)


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number that is too large for a float
        return False


def _is_duration(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_duration(value) >= 0
    except ValueError:
        return False
