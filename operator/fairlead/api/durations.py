"""Durations as policies write them: whole hours, minutes and seconds, such as 90s, 5m or 1h30m.

A subset of what Go and CEL read, so that a rule of the CRD can compare them with `duration()`.
"""

import re

PATTERN = r"([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?"
MAX_LENGTH = 21
_SECONDS = (3600, 60, 1)
_PARTS = re.compile(PATTERN)


def parse_duration(text: str) -> int:
    """The seconds of a duration; raises ValueError when it is none."""
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        raise ValueError(f"{text[:40]!r} is not a duration such as 90s, 5m or 1h30m")
    return sum(int(part[:-1]) * each for part, each in zip(parts.groups(), _SECONDS, strict=True) if part)
