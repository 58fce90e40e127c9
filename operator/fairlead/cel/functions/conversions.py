"""Conversions between the scalar types, with exactly the results and errors of the engine.

Only ASCII white space is trimmed from text before it is read as a number.
"""

import re
from math import copysign, inf, isfinite, nan
from typing import Final, TypeVar

from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, UINT_MAX, UInt

T = TypeVar("T")

ASCII_SPACE: Final = " \t\n\v\f\r"
TEXT_MAX: Final = 1024
"""The longest text that is converted. The engine converts longer ones, but no time, number or quantity is longer."""

_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)(?:[pP][+-]?[0-9]++)?"
)
_SPECIAL: Final = re.compile(r"([+-]?)(?:(inf(?:inity)?)|nan(?:\([a-z0-9_]*\))?)", re.IGNORECASE | re.ASCII)
_DIGITS_OF_64_BITS: Final = 20
_TRUE: Final = frozenset({"1", "t", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "false", "FALSE", "False"})
_SCIENTIFIC_FROM: Final = 1e6  # below, and from 1e-4 on, doubles are written without an exponent


def identity(value: T) -> T:
    """Return the value: it already has the type."""
    return value


def double_to_int64(value: float) -> int:
    """Truncate the fraction; both ends of the int64 range are rejected, as in the engine."""
    if -(2.0**63) < value < 2.0**63:
        return int(value)
    raise CelError(Kind.CONVERSION, "double out of int64 range")


def uint64_to_int64(value: int) -> int:
    """Convert; raises above the int64 range."""
    if value > INT_MAX:
        raise CelError(Kind.CONVERSION, "uint64 out of int64 range")
    return int(value)


def refuse_long(text: str) -> None:
    """Raise for a text that is too long to be converted, whatever it contains."""
    if len(text) > TEXT_MAX:
        raise CelError(Kind.CONVERSION, f"cannot convert a string of more than {TEXT_MAX:,} characters")


def string_to_int64(text: str) -> int:
    """Read a decimal number with an optional sign."""
    number = _read_integer(text)
    if number is None or not INT_MIN <= number <= INT_MAX:
        raise CelError(Kind.CONVERSION, "cannot convert string to int")
    return number


def double_to_uint64(value: float) -> UInt:
    """Truncate the fraction; raises below zero."""
    if 0 <= value < 2.0**64:
        return UInt(value)
    raise CelError(Kind.CONVERSION, "double out of uint64 range")


def int64_to_uint64(value: int) -> UInt:
    """Convert; raises below zero."""
    if value < 0:
        raise CelError(Kind.CONVERSION, "int64 out of uint64 range")
    return UInt(value)


def string_to_uint64(text: str) -> UInt:
    """Read a decimal number; a minus sign is rejected even before zero."""
    number = _read_integer(text)
    if number is None or number > UINT_MAX or "-" in text:
        raise CelError(Kind.CONVERSION, "cannot convert string to uint")
    return UInt(number)


def string_to_double(text: str) -> float:
    """Read a decimal or hexadecimal number, an infinity or a NaN; a number that is too large becomes an infinity."""
    refuse_long(text)
    text = text.strip(ASCII_SPACE)
    if _DECIMAL.fullmatch(text):
        return float(text)
    if special := _SPECIAL.fullmatch(text):
        return copysign(inf if special[2] else nan, -1.0 if special[1] == "-" else 1.0)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return -inf if text.startswith("-") else inf
    raise CelError(Kind.CONVERSION, "cannot convert string to double")


def string_to_bool(text: str) -> bool:
    """Read one of the ten accepted words; case matters."""
    refuse_long(text)
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise CelError(Kind.CONVERSION, "Type conversion error from 'string' to 'bool'")


def bool_to_string(value: bool) -> str:  # noqa: FBT001 - the operand
    """Write `true` or `false`."""
    return "true" if value else "false"


def int64_to_string(value: int) -> str:
    """Write an int or a uint."""
    return int.__repr__(value)


def double_to_string(value: float) -> str:
    """Write the shortest digits that read back the same, with an exponent from a million on and below 1e-4.

    A NaN shows its sign: those that arithmetic makes are negative on x86.
    """
    text = repr(value)
    if not isfinite(value):
        return "-nan" if value != value and copysign(1.0, value) < 0 else text
    if "e" in text:
        return text
    if abs(value) < _SCIENTIFIC_FROM:
        return text.removesuffix(".0")
    whole, _, fraction = text.removesuffix(".0").partition(".")
    sign = "-" if value < 0 else ""
    digits = (whole + fraction).removeprefix("-")
    exponent = len(whole) - len(sign) - 1
    rest = digits[1:].rstrip("0")
    return f"{sign}{digits[0]}{'.' if rest else ''}{rest}e+{exponent:02}"


def bytes_to_string(value: bytes) -> str:
    """Decode UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError(Kind.CONVERSION, "malformed UTF-8 bytes") from None


def string_to_bytes(text: str) -> bytes:
    """Encode as UTF-8."""
    return text.encode()


def _read_integer(text: str) -> int | None:
    refuse_long(text)
    text = text.strip(ASCII_SPACE)
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdecimal()):
        return None
    if len(digits) > _DIGITS_OF_64_BITS:
        digits = digits.lstrip("0") or "0"
        if len(digits) > _DIGITS_OF_64_BITS:
            return None
    number = int(digits)
    return -number if text.startswith("-") else number
