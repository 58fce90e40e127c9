"""Errors of the evaluation of an expression.

A `CelError` is a value of the language: `&&`, `||` and the macros built on them absorb it. An `Abort` is not: it ends
the whole evaluation, on the engine and in lowered code.
"""

from enum import StrEnum


class Kind(StrEnum):
    """Kind of an error: coarse enough to be the same in both evaluators, fine enough to count."""

    NO_SUCH_KEY = "NoSuchKey"
    INDEX = "IndexOutOfRange"
    OVERFLOW = "Overflow"
    DIVIDE_BY_ZERO = "DivideByZero"
    CONVERSION = "Conversion"  # text or a number that the target type cannot hold
    NO_OVERLOAD = "NoSuchOverload"  # an operator is not defined for a value of type dyn
    NO_VALUE = "NoValue"  # value() of an empty optional
    ARGUMENT = "BadArgument"  # outside the range of a function's argument
    PATTERN = "BadPattern"
    MISSING_DATA = "MissingData"
    INTERNAL = "InternalError"  # a bug of Fairlead
    # Nothing absorbs these:
    DUPLICATE_KEY = "DuplicateKey"
    LIMIT = "LimitExceeded"
    COST = "CostExceeded"  # of `meter`, or of the engine's inputs


class CelError(Exception):
    """Error of CEL that an expression raised."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Abort(Exception):  # noqa: N818 - not an error of the language: it ends the evaluation
    """End of the whole evaluation, which nothing absorbs."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class NotLoweredError(Exception):
    """Reason why only the engine can evaluate an expression."""
