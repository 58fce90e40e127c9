"""References to the policy's variables in the text of an expression, found before it can be checked."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_REFERENCE: Final = re.compile(r"(?<![\w.])variables\s*\.\s*([A-Za-z_]\w*)")
_QUOTED: Final = "|".join(
    rf"(?:\b[rR][bB]?|\b[bB][rR])(?:{quote}(?s:.*?){quote})" for quote in ('"{3}', "'{3}", '"', "'")
)
_TEXTS: Final = re.compile(
    rf"""//[^\n]*|{_QUOTED}|"{{3}}(?:\\.|[^\\])*?"{{3}}|'{{3}}(?:\\.|[^\\])*?'{{3}}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\\.""",
    re.DOTALL,
)


class Reference(NamedTuple):
    """Reference to a variable, with its position."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=16)
def code(text: str) -> str:
    """Return the text with comments blanked and quoted text replaced by `_`, at the same length."""
    return _TEXTS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    if match[0].startswith("\\"):  # an escaped quote neither opens nor closes a string
        return match[0]
    return (" " if match[0].startswith("//") else "_") * len(match[0])


def references(text: str) -> Iterator[Reference]:
    """Yield all references from left to right, without those in strings and comments."""
    for found in _REFERENCE.finditer(code(text)):
        yield Reference(found[1], found.start(), found.end())


def replace_references(text: str, by: Callable[[str], str]) -> str:
    """Return the text with the references replaced."""
    parts, at = [], 0
    for name, start, end in references(text):
        parts += [text[at:start], by(name)]
        at = end
    return "".join([*parts, text[at:]])
