"""Timestamps and durations as text.

The engine parses in quarters of a nanosecond. Sums and limits are therefore computed in quarters here, and truncated to
nanoseconds at the end, as its output shows.
"""

import re
from datetime import date
from typing import Final

from fairlead.cel.functions.conversions import ASCII_SPACE, refuse_long
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, Duration, Timestamp

SECOND: Final = 1_000_000_000
DAY_S: Final = 86_400
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
TIMESTAMP_MIN: Final = -62_135_596_800 * SECOND
TIMESTAMP_MAX: Final = 253_402_300_800 * SECOND - 1
DURATION_MAX: Final = 315_576_000_001 * SECOND - 1

_QUARTERS: Final = 4
_UNITS: Final = {
    "ns": _QUARTERS,
    "us": 1_000 * _QUARTERS,
    "ms": 1_000_000 * _QUARTERS,
    "s": SECOND * _QUARTERS,
    "m": 60 * SECOND * _QUARTERS,
    "h": 3_600 * SECOND * _QUARTERS,
}
_UNBOUNDED: Final = (1 << 63) * SECOND * _QUARTERS  # from here on a product is infinite for the engine
_FRACTION_DIGITS: Final = 18  # of a duration; those after are read and ignored
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|ms|s|m|h)")
_SUBSECOND_QUARTERS: Final = 250_000  # femtoseconds in a quarter of a nanosecond
_FEMTO_DIGITS: Final = 15
_MOMENT: Final = re.compile(
    r"(-?[0-9]+)-([0-9]{1,2})-([0-9]{1,2})[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?)"
)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_SECOND: Final = 60


def string_to_duration(text: str) -> Duration:
    """Read a sum of numbers with units."""
    refuse_long(text)
    negative = text.startswith("-")
    rest = text[1:] if negative or text.startswith("+") else text
    if rest == "inf":
        raise CelError(Kind.OVERFLOW, "duration out of range")
    quarters = 0 if rest == "0" else _read_terms(rest)
    if quarters > DURATION_MAX * _QUARTERS:
        raise CelError(Kind.OVERFLOW, "duration out of range")
    nanoseconds = quarters // _QUARTERS
    return Duration(-nanoseconds if negative else nanoseconds)


def duration_to_string(value: int) -> str:
    """Write seconds with three, six or nine digits of a fraction, or none."""
    seconds, nanoseconds = divmod(abs(value), SECOND)
    return f"{'-' if value < 0 else ''}{seconds}{_fraction(nanoseconds)}s"


def string_to_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 timestamp, and the other forms that the engine accepts.

    White space around it, one-digit fields, years of any length, offsets without a colon or with seconds, and a second
    60, which is the next second without its fraction. A NUL ends the text.
    """
    refuse_long(text)
    text = text.partition("\0")[0].strip(ASCII_SPACE)
    if text in {"infinite-future", "infinite-past"}:
        raise CelError(Kind.OVERFLOW, "timestamp overflow")
    if not (match := _MOMENT.fullmatch(text)) or (seconds := _read_seconds(match)) is None:
        raise CelError(Kind.CONVERSION, "String to Timestamp conversion failed")
    quarters = 0
    if match[7] and int(match[6]) != _LEAP_SECOND:
        quarters = int(match[7][:_FEMTO_DIGITS].ljust(_FEMTO_DIGITS, "0")) // _SUBSECOND_QUARTERS
    if not TIMESTAMP_MIN * _QUARTERS <= seconds * SECOND * _QUARTERS + quarters <= TIMESTAMP_MAX * _QUARTERS:
        raise CelError(Kind.OVERFLOW, "timestamp overflow")
    return Timestamp(seconds * SECOND + quarters // _QUARTERS)


def timestamp_to_string(value: int) -> str:
    """Write RFC 3339 in UTC with three, six or nine digits of a fraction, or none."""
    seconds, nanoseconds = divmod(value, SECOND)
    days, second_of_day = divmod(seconds, DAY_S)
    minutes, second = divmod(second_of_day, 60)
    hour, minute = divmod(minutes, 60)
    day = date.fromordinal(days + EPOCH_ORDINAL).isoformat()
    return f"{day}T{hour:02}:{minute:02}:{second:02}{_fraction(nanoseconds)}Z"


def int64_to_timestamp(seconds: int) -> Timestamp:
    """Convert seconds since the epoch."""
    nanoseconds = seconds * SECOND
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise CelError(Kind.OVERFLOW, "timestamp overflow")
    return Timestamp(nanoseconds)


def timestamp_to_int64(value: int) -> int:
    """Convert to whole seconds since the epoch, rounding down."""
    return value // SECOND


def _read_terms(text: str) -> int:
    """Add up the terms, in quarters of a nanosecond."""
    total = position = 0
    while match := _TERM.match(text, position):
        whole, fraction, unit = match[1].lstrip("0"), (match[2] or "")[:_FRACTION_DIGITS], _UNITS[match[3]]
        if not (match[1] or match[2]) or len(whole) > len(str(INT_MAX)) or int(whole or 0) > INT_MAX:
            break
        scaled = int(fraction or 0) * unit
        if (quarters := int(whole or 0) * unit) >= _UNBOUNDED or scaled >= _UNBOUNDED:
            total = _UNBOUNDED
        total += quarters + scaled // 10 ** len(fraction)
        position = match.end()
    if position == 0 or position != len(text):
        raise CelError(Kind.CONVERSION, "String to Duration conversion failed")
    return total


def _read_seconds(match: re.Match[str]) -> int | None:
    """Return the seconds since the epoch, or None if a field is out of range."""
    is_negative, digits = match[1].startswith("-"), match[1].lstrip("-0")
    if len(digits) > len(str(INT_MAX)):
        return None
    year = -int(digits or 0) if is_negative else int(digits or 0)
    month, day = int(match[2]), int(match[3])
    hour, minute, second = int(match[4]), int(match[5]), int(match[6])
    if (is_negative and year == 0) or not INT_MIN <= year <= INT_MAX:
        return None
    if not (1 <= month <= 12 and 1 <= day <= _days_of(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    offset_h, offset_m, offset_s = int(match[9] or 0), int(match[10] or 0), int(match[11] or 0)
    if offset_h >= 24 or offset_m >= 60 or offset_s >= 60:
        return None
    offset = (offset_h * 60 + offset_m) * 60 + offset_s
    seconds = _days_since_epoch(year, month, day) * DAY_S + (hour * 60 + minute) * 60 + second
    seconds += offset if match[8] == "-" else -offset
    return seconds if INT_MIN <= seconds <= INT_MAX else None


def _days_of(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap and month == 2 else _MONTH_DAYS[month - 1]


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Count days in the Gregorian calendar; years of any size, whose cycle is 400 years of 146,097 days."""
    cycles, year_of_cycle = divmod(year - 1, 400)
    return cycles * 146_097 + date(year_of_cycle + 1, month, 1).toordinal() + day - 1 - EPOCH_ORDINAL


def _fraction(nanoseconds: int) -> str:
    if not nanoseconds:
        return ""
    if nanoseconds % 1_000_000 == 0:
        return f".{nanoseconds // 1_000_000:03}"
    if nanoseconds % 1_000 == 0:
        return f".{nanoseconds // 1_000:06}"
    return f".{nanoseconds:09}"
