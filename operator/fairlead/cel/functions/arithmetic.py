"""Arithmetic within 64 bits that the lowering does not inline."""

from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, UInt


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
