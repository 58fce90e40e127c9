"""The math extension.

Greatest and least keep the type of what they choose and choose the first of equals. Between an integer and a double,
the integer is rounded to a double before they are compared, which is how the engine compares everywhere.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from fairlead.cel.values.equality import less_numbers
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MIN, UINT_MAX, UInt

Number = int | float

_INVALID: Final = math.inf - math.inf  # the NaN that the processor makes, whose sign differs between processors
_WHOLE_FROM: Final = 2.0**52
_BITS: Final = 64
_NUMBERS: Final = frozenset({int, UInt, float})


def greatest_mixed(left: Number, right: Number) -> Number:
    """Choose the greater of an integer and a double."""
    return right if float(right) > float(left) else left


def least_mixed(left: Number, right: Number) -> Number:
    """Choose the lesser of an integer and a double."""
    return right if float(right) < float(left) else left


def greatest_of_list(values: Sequence[Number]) -> Number:
    """Choose the greatest."""
    classes = set(map(type, values))
    if len(classes) == 1 and classes <= _NUMBERS:
        return max(values)
    return _choose(values, "math.greatest", lambda best, value: less_numbers(best, value))


def least_of_list(values: Sequence[Number]) -> Number:
    """Choose the least."""
    classes = set(map(type, values))
    if len(classes) == 1 and classes <= _NUMBERS:
        return min(values)
    return _choose(values, "math.least", lambda best, value: less_numbers(value, best))


def math_abs_int(value: int) -> int:
    """Get the magnitude."""
    if value == INT_MIN:
        raise CelError(Kind.OVERFLOW, "integer overflow")
    return abs(value)


def math_sign_int(value: int) -> int:
    """Get -1, 0 or 1."""
    return (value > 0) - (value < 0)


def math_sign_uint(value: int) -> UInt:
    """Get 0 or 1."""
    return UInt(value > 0)


def math_sign_double(value: float) -> float:
    """Get -1.0, 0.0 or 1.0, or the NaN itself."""
    if math.isnan(value):
        return value
    return math.copysign(1.0, value) if value else 0.0


def math_ceil_double(value: float) -> float:
    """Round up."""
    return math.copysign(float(math.ceil(value)), value) if math.isfinite(value) else value


def math_floor_double(value: float) -> float:
    """Round down."""
    return math.copysign(float(math.floor(value)), value) if math.isfinite(value) else value


def math_round_double(value: float) -> float:
    """Round to the nearest, halves away from zero."""
    if not abs(value) < _WHOLE_FROM:
        return value
    whole = float(int(value))
    if abs(value - whole) >= 0.5:
        whole += math.copysign(1.0, value)
    return math.copysign(whole, value)


def math_trunc_double(value: float) -> float:
    """Round towards zero."""
    return math.copysign(float(int(value)), value) if math.isfinite(value) else value


def math_sqrt(value: Number) -> float:
    """Get the square root of any number; a NaN of what is below zero."""
    value = float(value)
    return math.sqrt(value) if not value < 0 else _INVALID


def bit_not_uint(value: int) -> UInt:
    """Flip all bits."""
    return UInt(UINT_MAX ^ value)


def shift_left_int(value: int, by: int) -> int:
    """Shift, losing what leaves the 64 bits."""
    _require_shift(by, "Left")
    return _signed(value << by & UINT_MAX) if by < _BITS else 0


def shift_left_uint(value: int, by: int) -> UInt:
    """Shift, losing what leaves the 64 bits."""
    _require_shift(by, "Left")
    return UInt(value << by & UINT_MAX if by < _BITS else 0)


def shift_right_int(value: int, by: int) -> int:
    """Shift the 64 bits without regard to the sign."""
    _require_shift(by, "Right")
    return _signed((value & UINT_MAX) >> by) if by < _BITS else 0


def shift_right_uint(value: int, by: int) -> UInt:
    """Shift."""
    _require_shift(by, "Right")
    return UInt(value >> by if by < _BITS else 0)


def _choose(values: Sequence[Number], name: str, prefer: Callable[[Number, Number], bool]) -> Number:
    if not values:
        raise CelError(Kind.ARGUMENT, f"{name} argument must not be empty")
    best: Number | None = None
    for value in values:
        if value.__class__ not in _NUMBERS:
            raise CelError(Kind.ARGUMENT, f"{name} arguments must be numeric")
        if best is None or prefer(best, value):
            best = value
    assert best is not None  # noqa: S101 - there is a first
    return best


def _signed(bits: int) -> int:
    return bits - (1 << _BITS) if bits >> (_BITS - 1) else bits


def _require_shift(by: int, direction: str) -> None:
    if by < 0:
        raise CelError(Kind.ARGUMENT, f"math.bitShift{direction}() invalid negative shift: {by}")
