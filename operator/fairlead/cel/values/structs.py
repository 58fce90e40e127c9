"""Objects of the API as lowered code reads them: one struct for each message of `schema`.

An absent field reads as the zero value of its type, and `has()` tells whether it was set, both without a branch in the
common case: strings and numbers default to zero values of a class of their own, recognised by identity; messages to one
empty instance; bools and timestamps to None (they cannot be subclassed, or are `null` on the wire); lists and maps to
empty ones, for which `has()` cannot distinguish empty from absent.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fairlead.cel.values.equality import equal
from fairlead.cel.values.schema import PACKAGE, element, messages
from fairlead.cel.values.value_types import Timestamp
from fairlead.plain_data import without_nulls


class AbsentText(str):
    """Zero value of an absent string."""

    __slots__ = ()


class AbsentInt(int):
    """Zero value of an absent int."""

    __slots__ = ()


NO_TEXT: Final = AbsentText()
NO_INT: Final = AbsentInt()
NO_LIST: Final[tuple[Any, ...]] = ()
NO_MAP: Final[Mapping[str, Any]] = MappingProxyType({})

_SCALARS: Final[Mapping[str, tuple[object, object]]] = {
    "string": (str, NO_TEXT),
    "int": (int, NO_INT),
    "bool": (bool | None, None),
    "timestamp": (Timestamp | None, None),
    "dyn": (int | str | None, None),
}

_ZEROS: Final[Mapping[str, object]] = {"string": "", "int": 0, "bool": False, "timestamp": Timestamp(0)}


@cache
def struct(name: str) -> type[msgspec.Struct]:
    """Return the class of a message."""
    fields: list[tuple[str, Any, Any]] = []
    for field, type_ in messages()[name].items():
        inner = element(type_)
        if type_ in _SCALARS:
            fields.append((field, *_SCALARS[type_]))
        elif inner is None:
            fields.append((field, struct(type_), empty(type_)))
        elif type_.startswith("list"):
            fields.append((field, list[_held(inner)], NO_LIST))  # type: ignore[misc]
        else:
            fields.append((field, dict[str, _held(inner)], NO_MAP))  # type: ignore[misc]
    special = {"cel_type": f"{PACKAGE}.{name}", "__eq__": _equal, "__hash__": object.__hash__, "__bool__": _has_any}
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, gc=False, eq=False, namespace=special)


def _equal(left: Any, right: object) -> bool:
    """Return whether two messages have the same fields with equal values, as in the engine."""
    if left is right:
        return True
    if left.__class__ is not right.__class__:
        return False
    for field, type_ in messages()[left.__class__.__name__].items():
        one, other = getattr(left, field), getattr(right, field)
        there = is_present(one, type_)
        if there is not is_present(other, type_) or (there and not equal(one, other)):
            return False
    return True


def _has_any(value: Any) -> bool:
    """Return whether any field is set: a message without fields is the zero value of its type."""
    return any(
        is_present(getattr(value, field), type_) for field, type_ in messages()[value.__class__.__name__].items()
    )


def zero(type_: str) -> object:
    """Return the value that an absent field of a type reads as."""
    if type_ in _ZEROS:
        return _ZEROS[type_]
    if element(type_) is None:
        return empty(type_)
    return NO_LIST if type_.startswith("list") else {}


@cache
def empty(name: str) -> msgspec.Struct:
    """Return the value that an absent message reads as."""
    return struct(name)()


def _held(type_: str) -> Any:
    return _SCALARS[type_][0] if type_ in _SCALARS else struct(type_)


def from_json(name: str, obj: object) -> msgspec.Struct:
    """Decode an object of the API; unknown fields are ignored, nulls count as absent."""
    return msgspec.convert(without_nulls(obj), struct(name), dec_hook=decode_scalar)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def decode_scalar(type_: type, value: object) -> object:
    """Decode a scalar that msgspec does not decode by itself."""
    if type_ is Timestamp:
        if not isinstance(value, str):  # msgspec adds the field to the message of a TypeError
            raise TypeError(f"Expected a time, got `{type(value).__name__}`")
        return Timestamp((msgspec.convert(value, datetime) - _EPOCH) // timedelta(microseconds=1) * 1000)
    raise NotImplementedError(f"{type_.__name__} from {type(value).__name__}")


def is_present(value: object, type_: str) -> bool:
    """Return the result of `has()` for a field of a type."""
    match type_:
        case "string":
            return value is not NO_TEXT
        case "int":
            return value is not NO_INT
        case "bool" | "timestamp" | "dyn":
            return value is not None
    if element(type_) is not None:
        return bool(value)
    return value is not empty(type_)
