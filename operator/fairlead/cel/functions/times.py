"""Arithmetic on timestamps and durations, and the getters in UTC.

Between durations the engine computes with 64 bits of nanoseconds: operands beyond that are clamped first, while a
duration itself may be up to ten thousand years.
"""

from datetime import date
from typing import Final

from fairlead.cel.functions.time_text import DAY_S, EPOCH_ORDINAL, SECOND, TIMESTAMP_MAX, TIMESTAMP_MIN
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, Duration, Timestamp

_MILLISECOND: Final = 1_000_000
_MINUTE: Final = 60 * SECOND
_HOUR: Final = 3_600 * SECOND
_DAY: Final = DAY_S * SECOND
_THURSDAY: Final = 4  # of the epoch, Sunday being 0


def add_timestamp_duration(moment: int, duration: int) -> Timestamp:
    """Add."""
    result = moment + duration
    if not TIMESTAMP_MIN <= result <= TIMESTAMP_MAX:
        raise CelError(Kind.OVERFLOW, "timestamp overflow")
    return Timestamp(result)


def add_duration_timestamp(duration: int, moment: int) -> Timestamp:
    """Add."""
    return add_timestamp_duration(moment, duration)


def add_duration_duration(left: int, right: int) -> Duration:
    """Add within 64 bits."""
    return _checked(_cut(left) + _cut(right))


def subtract_duration_duration(left: int, right: int) -> Duration:
    """Subtract within 64 bits."""
    return _checked(_cut(left) - _cut(right))


def subtract_timestamp_duration(moment: int, duration: int) -> Timestamp:
    """Subtract a duration, clamped to 64 bits; the least such duration has no negative."""
    return add_timestamp_duration(moment, _checked(-_cut(duration)))


def subtract_timestamp_timestamp(left: int, right: int) -> Duration:
    """Subtract; whole seconds have to fit into 64 bits of nanoseconds before the fractions are added."""
    seconds = (left // SECOND - right // SECOND) * SECOND
    _checked(seconds)
    return _checked(left - right)


def timestamp_to_year(moment: int) -> int:
    """Return the year."""
    return _date(moment).year


def timestamp_to_month(moment: int) -> int:
    """Return the month, from 0."""
    return _date(moment).month - 1


def timestamp_to_day_of_month_1_based(moment: int) -> int:
    """Return the day of the month, from 1."""
    return _date(moment).day


def timestamp_to_day_of_month(moment: int) -> int:
    """Return the day of the month, from 0."""
    return _date(moment).day - 1


def timestamp_to_day_of_year(moment: int) -> int:
    """Return the day of the year, from 0."""
    day = _date(moment)
    return day.toordinal() - date(day.year, 1, 1).toordinal()


def timestamp_to_day_of_week(moment: int) -> int:
    """Return the day of the week, Sunday being 0."""
    return (moment // _DAY + _THURSDAY) % 7


def timestamp_to_hours(moment: int) -> int:
    """Return the hour of the day."""
    return moment // _HOUR % 24


def timestamp_to_minutes(moment: int) -> int:
    """Return the minute of the hour."""
    return moment // _MINUTE % 60


def timestamp_to_seconds(moment: int) -> int:
    """Return the second of the minute."""
    return moment // SECOND % 60


def timestamp_to_milliseconds(moment: int) -> int:
    """Return the millisecond of the second."""
    return moment // _MILLISECOND % 1_000


def duration_to_hours(duration: int) -> int:
    """Return the whole duration in hours, rounded towards zero."""
    return _towards_zero(duration, _HOUR)


def duration_to_minutes(duration: int) -> int:
    """Return the whole duration in minutes, rounded towards zero."""
    return _towards_zero(duration, _MINUTE)


def duration_to_seconds(duration: int) -> int:
    """Return the whole duration in seconds, rounded towards zero."""
    return _towards_zero(duration, SECOND)


def duration_to_milliseconds(duration: int) -> int:
    """Return the milliseconds of the last second, with the sign of the duration."""
    milliseconds = abs(duration) // _MILLISECOND % 1_000
    return -milliseconds if duration < 0 else milliseconds


def _date(moment: int) -> date:
    return date.fromordinal(moment // _DAY + EPOCH_ORDINAL)


def _towards_zero(duration: int, unit: int) -> int:
    return -(-duration // unit) if duration < 0 else duration // unit


def _cut(duration: int) -> int:
    return min(max(duration, INT_MIN), INT_MAX)


def _checked(nanoseconds: int) -> Duration:
    if not INT_MIN <= nanoseconds <= INT_MAX:
        raise CelError(Kind.OVERFLOW, "integer overflow")
    return Duration(nanoseconds)
