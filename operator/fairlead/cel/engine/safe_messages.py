"""Messages of evaluation errors that contain no value of a fact.

Users who may write policies need not have the right to read pods, and a message with a value in it would show them
one. Messages that are known to contain none are shown as they are; others are replaced by the text of their kind.
"""

import re
from collections.abc import Mapping
from typing import Final

from fairlead.cel.engine.protobuf import TOO_MUCH_TO_READ
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.meter import COSTS_TOO_MUCH, TOO_LONG

OF_KIND: Final[Mapping[Kind, str]] = {
    Kind.NO_SUCH_KEY: "no such key",
    Kind.INDEX: "an index is outside of its list",
    Kind.OVERFLOW: "a number, a time or a quantity is out of range",
    Kind.DIVIDE_BY_ZERO: "divide by zero",
    Kind.CONVERSION: "a value cannot be converted",
    Kind.NO_OVERLOAD: "no such overload for values of these types",
    Kind.NO_VALUE: "an optional has no value, or a field is absent",
    Kind.ARGUMENT: "a function does not take this argument",
    Kind.PATTERN: "not a regular expression, or not a replacement for it",
    Kind.MISSING_DATA: "data is missing",
    Kind.DUPLICATE_KEY: "a key stands twice in a map",
    Kind.LIMIT: "the expression costs too much",
    Kind.COST: COSTS_TOO_MUCH,
    Kind.INTERNAL: "an internal fault",
}

_KNOWN: Final = frozenset(
    {
        TOO_LONG,
        *TOO_MUCH_TO_READ,
        "cannot convert a string of more than 1,024 characters",
        "cannot convert string to CIDR",
        "cannot convert string to IP address",
        "cannot convert string to double",
        "cannot convert string to int",
        "cannot convert string to uint",
        "cannot convert string to version",
        "cannot convert value to integer",
        "double out of int64 range",
        "double out of uint64 range",
        "duration out of range",
        "flatten(): level must be non-negative",
        "int64 out of uint64 range",
        "integer overflow",
        "invalid base64 data",
        "malformed UTF-8 bytes",
        "modulus by zero",
        "more than 9999 loop steps",
        "optional.none() dereference",
        "optional.none() has no value",
        "quantity out of range: exponent too large",
        "quantity out of range: too many digits",
        "regular expression has more than one capturing group",
        "sort(): list elements must have the same type",
        "String to Duration conversion failed",
        "String to Timestamp conversion failed",
        "the score is -inf",
        "the score is inf",
        "the score is nan",
        "timestamp overflow",
        "Type conversion error from 'string' to 'bool'",
        "uint64 out of int64 range",
    }
)
_STATUS: Final = re.compile(r"[A-Z_]{1,30}: ")
_ABSENT: Final = re.compile(r"[A-Za-z_]\w{0,100} is absent", re.ASCII)
"""Names a field, which the expression names too."""
_OVERLOAD: Final = re.compile(r"No matching overloads found : [^\s(]{1,60}\([\w.,<>() ]{0,200}\)", re.ASCII)
"""Shows the types of values."""


def stable(error: CelError | Abort) -> str:
    """Return a message that is the same whatever facts the expression met."""
    message = error.message
    if (status := _STATUS.match(message)) is not None:  # of the engine
        message = message[status.end() :]
    if message in _KNOWN or _ABSENT.fullmatch(message) or _OVERLOAD.fullmatch(message):
        return message
    return OF_KIND[error.kind]
