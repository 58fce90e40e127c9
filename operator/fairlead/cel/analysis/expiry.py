"""Functions of times that note how long their results hold: comparisons, sums and fields of times that move with `now`.

A *rate* is how many nanoseconds a value gains in each nanosecond: 1 for `now` and sums with it, -1 for the time left
until a moment, 0 for constants. Each function here returns what the language says, and notes after how many
nanoseconds that may change: never too late, seldom too early.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.cel.functions.overloads import FUNCTIONS
from fairlead.cel.functions.time_text import SECOND, TIMESTAMP_MAX, TIMESTAMP_MIN
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.value_types import INT_MAX, INT_MIN

Note = Callable[[int], None]
ExpiringFunction = Callable[..., Any]
"""A function of the language that takes a `Note` before its operands."""

MILLISECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_==_": operator.eq,
    "_!=_": operator.ne,
}
COMPARISONS: Final = frozenset(_SIGNS)
SUMS: Final[Mapping[str, int]] = {"_+_": 1, "_-_": -1}
"""Operators, with the sign of the right side's rate."""
UNITS: Final[Mapping[str, int]] = {
    "getMilliseconds": MILLISECOND,
    "getSeconds": SECOND,
    "getMinutes": MINUTE,
    "getHours": HOUR,
    "getDate": DAY,
    "getDayOfMonth": DAY,
    "getDayOfWeek": DAY,
    "getDayOfYear": DAY,
    "getMonth": DAY,
    "getFullYear": DAY,
    "int": SECOND,
}
"""Functions of one time, with the multiples of nanoseconds at which their value changes."""


class ExpiryTracker:
    """Collector of the earliest expiry that is noted during an evaluation."""

    __slots__ = ("_after",)

    def __init__(self) -> None:
        self._after = 0

    def note(self, after: int) -> None:
        """Note that something may change after so many nanoseconds, at least one."""
        if not self._after or after < self._after:
            self._after = after

    def until(self, now: int) -> int | None:
        """Return when the result expires, and reset; None if it never does."""
        after, self._after = self._after, 0
        return now + after if after else None


def comparison(function: str, rate: int) -> ExpiringFunction:
    """Return a comparison of two times whose difference has this rate."""
    holds, speed = _SIGNS[function], abs(rate)
    is_equality = function in ("_==_", "_!=_")
    # With a difference that grows, `<` and `>=` change when it reaches zero, `<=` and `>` when it leaves it.
    on_arrival = (function in ("_<_", "_>=_")) == (rate > 0)

    def compared(note: Note, left: int, right: int) -> bool:
        missing = right - left if rate > 0 else left - right  # until the difference is zero
        if missing > 0:
            arrival = -(-missing // speed)
            note(arrival if on_arrival or is_equality else missing // speed + 1)
        elif missing == 0 and (is_equality or not on_arrival):
            note(1)
        return holds(left, right)

    return compared


def arithmetic(overload: str, rate: int) -> ExpiringFunction:
    """Return a sum or difference with this rate; in time it may leave its range, or enter it."""
    function = FUNCTIONS[overload]
    is_moment = overload in ("add_timestamp_duration", "add_duration_timestamp", "subtract_timestamp_duration")
    low, high = (TIMESTAMP_MIN, TIMESTAMP_MAX) if is_moment else (INT_MIN, INT_MAX)

    def moved(note: Note, left: int, right: int) -> int:
        try:
            value: int = function(left, right)
        except CelError:
            note(1)
            raise
        room = (high - value if rate > 0 else value - low) // abs(rate)
        note(max(room - SECOND, 1))  # between moments, whole seconds have to fit
        return value

    return moved


def field(overload: str, unit: int, rate: int) -> ExpiringFunction:
    """Return a function for the hours, or another field, of a time that moves at this rate, 1 or -1."""
    function = FUNCTIONS[overload]

    def read(note: Note, time: int) -> int:
        past = time % unit
        # Fields of durations go towards zero: those of a negative one change just after it has passed the unit.
        note((1 if past == 0 and time < 0 else unit - past) if rate > 0 else max(past, 1))
        value: int = function(time)
        return value

    return read
