"""Where the text of an expression names the policy's variables: needed before anything can be checked."""

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
    """A variable that is named, and where."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=16)
def code(text: str) -> str:
    """The text with nothing in its comments and `_` in place of what stands in quotes, each as long as it was."""
    return _TEXTS.sub(_blank, text)


def _blank(found: re.Match[str]) -> str:
    if found[0].startswith("\\"):  # as within quotes: one that is escaped neither opens nor closes
        return found[0]
    return (" " if found[0].startswith("//") else "_") * len(found[0])


def references(text: str) -> Iterator[Reference]:
    """All of them, from left to right; not those in strings and comments."""
    for found in _REFERENCE.finditer(code(text)):
        yield Reference(found[1], found.start(), found.end())


def replace_references(text: str, by: Callable[[str], str]) -> str:
    """The text with other words in place of the variables."""
    parts, at = [], 0
    for name, start, end in references(text):
        parts += [text[at:start], by(name)]
        at = end
    return "".join([*parts, text[at:]])
