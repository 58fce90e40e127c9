"""Time zones that a rule may name.

The engine opens whatever file it is given the name of, waits until it has read it, and remembers each name for ever: it
is given none but those of the system's database, and offsets.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from fairlead.cel.syntax.ast import Call, Checked, Const, walk
from fairlead.cel.syntax.diagnostics import Diagnostic, place

_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}")
_OFFSET: Final = re.compile(r"[+-]?(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_CURE: Final = "write one such as 'Europe/Berlin', or an offset such as '+02:00'"


def refused_zones(text: str, checked: Checked) -> Iterator[Diagnostic | None]:
    """Time zones that there are not, and those that are computed; None after each that was looked up."""
    for node in walk(checked.root):
        match node:
            case Call(function=function, args=(_, zone)) if function.startswith("get"):
                if not isinstance(zone, Const) or not isinstance(zone.value, str):
                    at = place(text, checked.positions.get(node.id, 0))
                    yield Diagnostic(*at, "a time zone cannot be computed", _CURE)
                    continue
                if not is_zone(zone.value):
                    at = place(text, checked.positions.get(zone.id, 0))
                    yield Diagnostic(*at, "this always raises: there is no such time zone", _CURE)
                yield None


@lru_cache(maxsize=1_024)
def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name; the empty one is UTC."""
    if not name or _OFFSET.fullmatch(name):
        return True
    if not _NAME.fullmatch(name):
        return False
    try:
        ZoneInfo.no_cache(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
