"""What can go wrong while an expression is evaluated.

An error of evaluation is a value of the language: `&&`, `||` and the macros built on them absorb it. `Abort` is not:
the engine gives up the whole evaluation, and so does lowered code.
"""

from enum import StrEnum


class Kind(StrEnum):
    """What raised, coarse enough to be the same in both evaluators and fine enough to count."""

    NO_SUCH_KEY = "NoSuchKey"
    INDEX = "IndexOutOfRange"
    OVERFLOW = "Overflow"
    DIVIDE_BY_ZERO = "DivideByZero"
    CONVERSION = "Conversion"  # text or a number that the target type cannot hold
    NO_OVERLOAD = "NoSuchOverload"  # a value of type dyn that an operator does not take
    NO_VALUE = "NoValue"  # value() of an empty optional
    ARGUMENT = "BadArgument"  # outside of what a function takes
    PATTERN = "BadPattern"
    MISSING_DATA = "MissingData"
    INTERNAL = "InternalError"  # nobody foresaw it: a fault of ours
    # Those that nothing absorbs:
    DUPLICATE_KEY = "DuplicateKey"
    LIMIT = "LimitExceeded"
    COST = "CostExceeded"  # of `meter`, or of what the engine is given


class CelError(Exception):
    """An expression raised."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Abort(Exception):  # noqa: N818 - not an error of the language: it ends the evaluation
    """The evaluation ends here, whatever stands around it."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class NotLoweredError(Exception):
    """The engine has to evaluate this expression."""
