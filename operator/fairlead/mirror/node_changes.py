"""Difference of two states of a node: the paths of what changed."""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter, is_
from typing import Any, Final, NamedTuple

from fairlead.cel.values.schema import NODE, element, messages
from fairlead.cel.values.structs import NO_INT, NO_TEXT, empty
from fairlead.strategies.reads import CONDITIONS, Path


def node_changes(before: Any, after: Any) -> frozenset[Path]:
    """Return the paths that differ between two states of a node: map keys, conditions by type, else fields."""
    found: set[Path] = set()
    _compare(NODE, before, after, (), found)
    return frozenset(found)


_MAP, _MESSAGE, _PLAIN = range(3)
_ABSENT: Final[Mapping[str, object]] = {"string": NO_TEXT, "int": NO_INT}


class _Field(NamedTuple):
    name: str
    type_: str
    kind: int
    absent: object
    """Value that stands for an absent one, if it may equal a present one; else None."""


class _Fields(NamedTuple):
    """Fields of a message, and a function that gets the values of all at once."""

    fields: tuple[_Field, ...]
    values: Callable[[Any], tuple[Any, ...]]


@cache
def _fields_of(message: str) -> _Fields:
    fields = tuple(_Field(name, type_, _kind(type_), _ABSENT.get(type_)) for name, type_ in messages()[message].items())
    names = [field.name for field in fields]
    if len(names) > 1:
        return _Fields(fields, attrgetter(*names))
    return _Fields(fields, lambda value: tuple(getattr(value, name) for name in names))


def _kind(type_: str) -> int:
    if type_.startswith("map"):
        return _MAP
    return _PLAIN if element(type_) is not None or type_ not in messages() else _MESSAGE


def _compare(message: str, before: Any, after: Any, path: Path, paths: set[Path]) -> None:
    fields, values = _fields_of(message)
    for (field, type_, kind, absent), one, other in zip(fields, values(before), values(after), strict=True):
        if one is other:
            continue
        if kind is _MAP:
            if one != other:
                paths.update((*path, field, key) for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        elif kind is _MESSAGE:
            if one is empty(type_) or other is empty(type_):
                paths.add((*path, field))
            else:
                _compare(type_, one, other, (*path, field), paths)
        elif path == _STATUS and field == CONDITIONS[-1]:
            _compare_conditions(one, other, paths)
        elif one != other or one is absent or other is absent:
            paths.add((*path, field))


_STATUS: Final = CONDITIONS[:-1]
_CONDITION: Final = "NodeCondition"
_HEARTBEAT: Final = "lastHeartbeatTime"
HEARTBEAT: Final[Path] = (*CONDITIONS, _HEARTBEAT)
"""Path of all heartbeats of a node."""


def _compare_conditions(before: Any, after: Any, paths: set[Path]) -> None:
    if len(before) == len(after) and all(map(_differ_at_most_in_heartbeat, before, after)):
        if any(one.lastHeartbeatTime != other.lastHeartbeatTime for one, other in zip(before, after, strict=True)):
            paths.add(HEARTBEAT)
        return
    one, other = ({condition.type: condition for condition in conditions} for conditions in (before, after))
    inner: set[Path] = set()
    for kind in one.keys() | other.keys():
        here = (*CONDITIONS, kind)
        if kind in one and kind in other:
            _compare(_CONDITION, one[kind], other[kind], here, inner)
        else:
            inner.add(here)
    # Heartbeats matter only to rules that read the conditions as a list: they do not change a condition.
    paths.update(HEARTBEAT if path[-1] == _HEARTBEAT else path for path in inner)
    if [*one] != [*other] or len(before) != len(one) or len(after) != len(other):
        paths.add(CONDITIONS)


def _differ_at_most_in_heartbeat(before: Any, after: Any) -> bool:
    """Return whether two conditions are certainly equal but for the heartbeat: interned, the rest is identical."""
    return all(map(is_, _settled(before), _settled(after)))


_settled: Final = attrgetter(*(field for field in messages()[_CONDITION] if field != _HEARTBEAT))
