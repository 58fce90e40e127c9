"""Diagnostics of an expression: the place, the fault and a hint."""

from dataclasses import dataclass, field
from unicodedata import combining, east_asian_width


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """Fault at a place in the text of an expression; lines and columns count from 1, in code points."""

    line: int
    column: int
    message: str
    hint: str = ""
    rewritten: str = field(default="", compare=False)
    """The expression with the hint followed; "" if the hint only advises."""

    def __str__(self) -> str:
        text = f"{self.line}:{self.column}: {self.message}"
        return f"{text}; {self.hint}" if self.hint else text

    def pointing(self, source: str) -> str:
        """Return the line of the source with a caret under the place."""
        lines = source.splitlines() or [""]
        line = lines[min(self.line, len(lines)) - 1]
        start = max(0, self.column - 1 - _BEFORE) if len(line) > _WIDTH else 0
        shown = line[start : start + _WIDTH]
        before = shown[: self.column - 1 - start]
        indent = "".join(character if character == "\t" else " " * _cells(character) for character in before)
        return f"{shown}\n{indent}^"


_WIDTH = 120
_BEFORE = 60


def _cells(character: str) -> int:
    """Return the width of a character on a terminal."""
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def place(source: str, offset: int) -> tuple[int, int]:
    """Return the line and column of an offset in code points."""
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
