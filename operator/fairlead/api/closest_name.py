"""Spelling suggestions."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

NAME_MAX: Final = 60


def closest_name(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the name that was probably meant, "" if none is close; ignores case and `_`."""
    known = {one.lower(): one for one in sorted(names, reverse=True)}
    found = get_close_matches(name[:NAME_MAX].lower().replace("_", ""), sorted(known), n=1, cutoff=cutoff)
    return known[found[0]] if found else ""
