"""Units of time."""

from typing import Final

SECOND_NS: Final = 1_000_000_000
"""Nanoseconds in a second: moments and ages are in nanoseconds unless their name says another unit."""
_UNITS: Final = ((2 * 86_400, 86_400, "d"), (2 * 3_600, 3_600, "h"), (2 * 60, 60, "m"))


def age_text(age_ns: int) -> str:
    """Return an age as people say it: `45s`, `7m`, `3h`, `2d`."""
    age_s = max(age_ns, 0) // SECOND_NS
    for least_s, unit_s, unit in _UNITS:
        if age_s >= least_s:
            return f"{age_s // unit_s}{unit}"
    return f"{age_s}s"


def duration_text(length_s: int) -> str:
    """Return a duration as policies write it, such as 1h5m."""
    hours, rest_s = divmod(length_s, 3600)
    minutes, seconds = divmod(rest_s, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
