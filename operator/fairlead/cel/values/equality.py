"""Equality and order of values whose types are only known at run time.

Values of different types are unequal, and comparing their order is an error. Numbers of different types compare by
value, but an integer is rounded to a double first, so that 2**53 + 1 equals 2.0**53, as in the engine.
"""

from collections.abc import Sequence
from typing import Final

from fairlead.cel.values.value_types import Duration, Nothing, Some, Timestamp, TypeName, UInt

_PLAIN: Final = frozenset({int, UInt, float, bool, str, bytes, type(None), Timestamp, Duration, TypeName})
_NUMBERS: Final = frozenset({int, UInt, float})

_TYPES: Final = {
    bool: TypeName("bool"),
    int: TypeName("int"),
    UInt: TypeName("uint"),
    float: TypeName("double"),
    str: TypeName("string"),
    bytes: TypeName("bytes"),
    type(None): TypeName("null_type"),
    list: TypeName("list"),
    tuple: TypeName("list"),
    dict: TypeName("map"),
    Timestamp: TypeName("google.protobuf.Timestamp"),
    Duration: TypeName("google.protobuf.Duration"),
    TypeName: TypeName("type"),
    Some: TypeName("optional_type"),
    Nothing: TypeName("optional_type"),
}


def equal(left: object, right: object) -> bool:
    """Return whether two values of any types are equal."""
    kind, other = left.__class__, right.__class__
    if kind is other and kind in _PLAIN:
        return left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
    if kind in _NUMBERS and other in _NUMBERS:
        return _equal_numbers(left, right)
    if isinstance(left, Some) and isinstance(right, Some):
        return equal(left.value, right.value)
    return kind is other and left == right


def contains(values: Sequence[object], value: object) -> bool:
    """Return whether a list has an element that equals a value."""
    return any(equal(element, value) for element in values)


def type_of(value: object) -> TypeName:
    """Return the type of a value; classes of messages have its name as `cel_type`."""
    known = _TYPES.get(value.__class__)
    if known is None:
        known = _TYPES[dict] if isinstance(value, dict) else TypeName(value.__class__.cel_type)  # type: ignore[attr-defined]
    return known


def _equal_numbers(left: object, right: object) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)  # type: ignore[arg-type]
    return left == right
