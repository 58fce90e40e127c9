"""Costs of work on texts and lists by their lengths, in units of the meter."""

from typing import Final

from fairlead.cel.values.meter import PAID

WALKED: Final = 16
"""Characters read per unit."""
MADE: Final = 4
"""Characters produced per unit: each may take four bytes."""
_PIECE: Final = 12
"""Units of a separate text in a list."""
DURATION_UNIT: Final = 30
"""Units per character of a duration; a text above the limit of conversions is rejected unread."""
PARSED_UNIT: Final = 32
"""Units per character of an address or a version; longer texts are rejected unread."""
# For short parts and short texts Python's search may compare every character with every other.
_SHORT_PART: Final = 100
_SHORT_TEXT: Final = 2_500
_TEXT: Final = 30_000


def search_units(text: int, part: int, *, backwards: bool = False) -> int:
    """Return the cost of a search for a part of one length in a text of another."""
    if part <= 1 or part > text:
        return PAID + text // WALKED
    if backwards or text < _SHORT_TEXT or (part < _SHORT_PART and text < _TEXT):
        return PAID + text * min(part, text - part + 1) // 8
    return PAID + (text + part) // MADE


def searches_units(text: int, part: int) -> int:
    """Return the cost of a search for all occurrences, or from a position on, where the rest may be a short text."""
    once = search_units(text, part)
    if part <= 1 or part > text:
        return once
    tail = min(text, _SHORT_TEXT if part >= _SHORT_PART else _TEXT) - 1
    return once + tail * min(part, max(tail - part + 1, 0)) // 8


def pieces_units(count: int, text: int) -> int:
    """Return the cost of a list of pieces of a text."""
    return _PIECE * count + text // MADE


def sort_units(count: int, text: int, *, exact: bool) -> int:
    """Return the cost of sorting texts of `text` characters at most; `exact` if it takes the engine's own steps."""
    return count * count.bit_length() * ((60 if exact else 8) + text // 32)
