"""Kubernetes quantities: `250m`, `1.5Gi`, `2e3`.

Text is parsed as by `resource.ParseQuantity` of apimachinery, oddities included: no digits at all are zero, but not
before `Pi`. The value is an integer of nano units, rounded away from zero, and with a binary suffix capped at 64 bits.
Operations depend only on this value: whether a quantity is an integer does not depend on how it was written, and its
float is the nearest.
"""

import re
from decimal import Decimal
from math import floor
from typing import ClassVar, Final

from fairlead.cel.functions.conversions import refuse_long
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN

NANO: Final = 10**9
EXPONENT_MAX: Final = 400
"""Beyond this, Kubernetes uses numbers of any length; here it is an error. No float is that large either."""
DIGITS_MAX: Final = 1_000

_TEXT: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]?)|([KMGTPE])i|[eE]([+-]?[0-9]+))")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_DIGITS_NEEDED_FROM: Final = 50  # of binary exponents
_INT32: Final = 1 << 32
_EXACT: Final = 1 << 52
"""Number of steps from which on every float is a multiple of the step."""
_HALF: Final = Decimal("0.5")
_NEAR: Final = 1e-12
"""Part of a quotient by which it may be off in binary."""


class Quantity:
    """Quantity in billionths."""

    __slots__ = ("nano",)

    cel_type: ClassVar[str] = "kubernetes.Quantity"

    def __init__(self, nano: int) -> None:
        self.nano = nano

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __repr__(self) -> str:
        return f"quantity({canonical(self)!r})"


def parse(text: str) -> Quantity | None:
    """Read a quantity, or None if the text is not one. Raises CelError for one that is too long, or too large."""
    refuse_long(text)
    match = _TEXT.fullmatch(text) if text and text.isascii() else None
    if match is None:
        return None
    whole, fraction = match[2].lstrip("0"), match[3] or ""
    has_digits = bool(match[2] or fraction)
    if len(whole) + len(fraction) > DIGITS_MAX:
        raise CelError(Kind.OVERFLOW, "quantity out of range: too many digits")
    unscaled = int(whole + fraction or 0)
    if match[5]:
        binary = _BINARY[match[5]]
        if not has_digits and binary >= _DIGITS_NEEDED_FROM:
            return None
        nano = min(_round_up((unscaled << binary) * NANO, 10 ** len(fraction)), INT_MAX * NANO)
    else:
        exponent = _DECIMAL[match[4]] if match[4] is not None else _read_exponent(match[6])
        if exponent is None or (not has_digits and exponent < _DECIMAL["n"]):
            return None
        nano = _scale(unscaled, exponent - len(fraction) + 9)
    return Quantity(-nano if match[1] == "-" else nano)


def quantity(text: str) -> Quantity:
    """Read a quantity."""
    if (parsed := parse(text)) is None:
        raise CelError(Kind.CONVERSION, "cannot convert string to quantity")
    return parsed


def is_quantity(text: str) -> bool:
    """Return whether a text is a quantity."""
    refuse_long(text)
    try:
        return parse(text) is not None
    except CelError:
        return False


def difference(first: float, second: float) -> float:
    """Subtract and round to nine digits, as amounts have: 1.0 - 0.9 is 0.1, so `>= 0.1` is true."""
    left = first - second
    return left if left.is_integer() else round(left, 9)


def round_to_step(value: float, step: float) -> float:
    """Return the nearest multiple of a step, half up; of the decimal that one would write for the value."""
    if abs(value) >= step * _EXACT:
        return float(f"{value:.15g}")
    quotient = value / step
    whole = floor(quotient)
    part = quotient - whole
    if abs(part - 0.5) <= _NEAR * max(1.0, abs(quotient)):
        # 35.15 is a little less in binary, and to tenths it is 35.2 nevertheless.
        is_up = Decimal(f"{value:.15g}") / Decimal(repr(step)) - whole >= _HALF
    else:
        is_up = part > 0.5
    return float(f"{(whole + is_up) * step:.15g}")


def to_float(text: str) -> float | None:
    """Read a quantity as a number, for data in annotations and labels; None if the text is none."""
    try:
        return None if (parsed := parse(text)) is None else as_approximate_float(parsed)
    except CelError:
        return None


def canonical(value: Quantity) -> str:
    """Write the exact decimal number, the same for equal quantities; zero is empty, as the zero of a message is."""
    whole, fraction = divmod(abs(value.nano), NANO)
    text = f"{whole}.{fraction:09}".rstrip("0").removesuffix(".") if value.nano else ""
    return f"-{text}" if value.nano < 0 else text


def sign(value: Quantity) -> int:
    """Return -1, 0 or 1."""
    return (value.nano > 0) - (value.nano < 0)


def is_integer(value: Quantity) -> bool:
    """Return whether the quantity is whole and fits into an int."""
    return value.nano % NANO == 0 and INT_MIN <= value.nano // NANO <= INT_MAX


def as_integer(value: Quantity) -> int:
    """Convert to an int."""
    if not is_integer(value):
        raise CelError(Kind.CONVERSION, "cannot convert value to integer")
    return value.nano // NANO


def as_approximate_float(value: Quantity) -> float:
    """Convert to the nearest double."""
    try:
        return value.nano / NANO
    except OverflowError:
        return float("-inf") if value.nano < 0 else float("inf")


def add(left: Quantity, right: Quantity) -> Quantity:
    """Return the sum of two quantities."""
    return Quantity(left.nano + right.nano)


def add_integer(left: Quantity, right: int) -> Quantity:
    """Return the sum of a quantity and an int."""
    return Quantity(left.nano + right * NANO)


def sub(left: Quantity, right: Quantity) -> Quantity:
    """Return the difference of two quantities."""
    return Quantity(left.nano - right.nano)


def subtract_integer(left: Quantity, right: int) -> Quantity:
    """Return a quantity less an int."""
    return Quantity(left.nano - right * NANO)


def is_greater_than(left: Quantity, right: Quantity) -> bool:
    """Return whether one is greater than the other."""
    return left.nano > right.nano


def is_less_than(left: Quantity, right: Quantity) -> bool:
    """Return whether one is less than the other."""
    return left.nano < right.nano


def compare_to(left: Quantity, right: Quantity) -> int:
    """Return -1, 0 or 1."""
    return (left.nano > right.nano) - (left.nano < right.nano)


def from_canonical(text: str) -> Quantity:
    """Read what `canonical` has written."""
    whole, _, fraction = text.partition(".")
    magnitude = int(whole.removeprefix("-") or 0) * NANO + int(fraction.ljust(9, "0"))
    return Quantity(-magnitude if text.startswith("-") else magnitude)


def _read_exponent(text: str) -> int | None:
    """Read an exponent as Kubernetes does: 64 bits, of which it keeps the lower 32."""
    digits = text.lstrip("+-0")
    if len(digits) > len(str(INT_MAX)):
        return None
    exponent = -int(digits or 0) if text.startswith("-") else int(digits or 0)
    if not INT_MIN <= exponent <= INT_MAX:
        return None
    return (exponent + _INT32 // 2) % _INT32 - _INT32 // 2


def _scale(unscaled: int, exponent: int) -> int:
    if not unscaled:
        return 0
    if exponent < 0:
        # A remainder below the last place is rounded up.
        return _round_up(unscaled, 10 ** min(-exponent, 2 * DIGITS_MAX))
    if exponent > EXPONENT_MAX:
        raise CelError(Kind.OVERFLOW, "quantity out of range: exponent too large")
    return unscaled * int(10**exponent)


def _round_up(number: int, divisor: int) -> int:
    return -(-number // divisor)
