"""Functions of the math extension, and the arithmetic within 64 bits that the lowering does not inline.

Greatest and least keep the type of their choice and choose the first of equals. An integer is rounded to a double
before it is compared with one, as everywhere in the engine.
"""

import math
from collections.abc import Sequence
from typing import Final

from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, UInt

Number = int | float

_INVALID: Final = math.inf - math.inf  # the NaN that the processor makes, whose sign differs between processors
_WHOLE_FROM: Final = 2.0**52


def greatest_of_list(values: Sequence[Number]) -> Number:
    """Return the greatest element."""
    return max(_not_empty(values, "math.greatest"))


def least_of_list(values: Sequence[Number]) -> Number:
    """Return the least element."""
    return min(_not_empty(values, "math.least"))


def math_abs_int(value: int) -> int:
    """Return the absolute value."""
    if value == INT_MIN:
        raise CelError(Kind.OVERFLOW, "integer overflow")
    return abs(value)


def math_sign_int(value: int) -> int:
    """Return -1, 0 or 1."""
    return (value > 0) - (value < 0)


def math_sign_uint(value: int) -> UInt:
    """Return 0 or 1."""
    return UInt(value > 0)


def math_sign_double(value: float) -> float:
    """Return -1.0, 0.0 or 1.0, or the NaN itself."""
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
    """Round to the nearest integer, halves away from zero."""
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
    """Return the square root of a number; NaN below zero."""
    value = float(value)
    return math.sqrt(value) if not value < 0 else _INVALID


def _not_empty(values: Sequence[Number], name: str) -> Sequence[Number]:
    if not values:
        raise CelError(Kind.ARGUMENT, f"{name} argument must not be empty")
    return values


def overflow() -> object:
    """Raise for a result that does not fit into 64 bits."""
    raise CelError(Kind.OVERFLOW, "integer overflow")


def divide_int(left: int, right: int) -> int:
    """Divide, rounding towards zero; raises for a divisor of zero."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "divide by zero")
    if right == -1:
        return negate_int(left)
    return left // right if (left < 0) == (right < 0) else -(-left // right)


def modulo_int(left: int, right: int) -> int:
    """Return the remainder, with the sign of the left operand; raises for a divisor of zero."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "modulus by zero")
    if right == -1 and left == INT_MIN:
        overflow()
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate_int(value: int) -> int:
    """Negate; raises on overflow."""
    return _int(-value)


def divide_uint(left: int, right: int) -> UInt:
    """Divide uints; raises for a divisor of zero."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "divide by zero")
    return UInt(left // right)


def modulo_uint(left: int, right: int) -> UInt:
    """Return the remainder of uints; raises for a divisor of zero."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "modulus by zero")
    return UInt(left % right)


def divide_double(left: float, right: float) -> float:
    """Divide as IEEE 754 does; the NaN of 0/0 has the sign that the processor gives it."""
    try:
        return left / right
    except ZeroDivisionError:
        if left != left:
            return left
        if left == 0.0:
            return -float("nan")
        positive = (left > 0) == (str(right)[0] != "-")
        return float("inf") if positive else float("-inf")


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        overflow()
    return value
