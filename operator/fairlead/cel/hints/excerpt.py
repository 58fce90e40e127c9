"""What stands around a place of an expression that the engine refuses: no tree has been made of it yet.

Texts are taken as they are written, so that a cure can be copied.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Final

from fairlead.cel.syntax.source_refs import code

_LONGEST: Final = 70
_TOKEN: Final = re.compile(r"&&|\|\||[<>=!]=|[<>]|(?<![\w.])in\b|\[\?|\.\?|[-+*/%?:,()\[\]{}!]")
_BINDING: Final = {
    **dict.fromkeys((",", "?", ":"), 0),
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/%", 5),
}
_OPENING, _CLOSING = ("(", "[", "{", "[?"), (")", "]", "}")


@dataclass(frozen=True)
class Excerpt:
    """A place in the source of an expression."""

    source: str
    at: int

    @property
    def rest(self) -> str:
        """The line from there."""
        return self.source[self.at :].partition("\n")[0]

    @property
    def before(self) -> str:
        """The line up to there."""
        return self.source[: self.at].rpartition("\n")[2]

    @cached_property
    def code(self) -> str:
        """The source without what stands in quotes and comments."""
        return code(self.source)

    @cached_property
    def left(self) -> str:
        """What an operator at the place has on its left."""
        return self.source[self._left() : self.at].strip()

    @cached_property
    def right(self) -> str:
        """What an operator at the place has on its right."""
        found = _TOKEN.match(self.code, self.at)
        return self._until(found.end(), _BINDING.get(found[0], 3)) if found else ""

    @property
    def operand(self) -> str:
        """What begins at the place, up to the next comparison."""
        return self._until(self.at, 3)

    @cached_property
    def branches(self) -> tuple[str, str]:
        """What a `?` at the place chooses from."""
        depth = inner = 0
        for one in _TOKEN.finditer(self.code, self.at + 1):
            depth += (one[0] in _OPENING) - (one[0] in _CLOSING)
            if depth == 0 and one[0] == ":" and inner == 0:
                return self.source[self.at + 1 : one.start()].strip(), self._until(one.end(), 0, stop="),]}")
            inner += depth == 0 and (one[0] == "?") - (one[0] == ":")
        return "", ""

    @property
    def target_span(self) -> tuple[int, int]:
        """Where what a `.` or `[` at the place belongs to begins and ends."""
        at = end = len(self.code[: self.at].rstrip())
        while at > 0:
            if self.code[at - 1] in _CLOSING:
                at = self._opening(at - 1)
            elif re.match(r"[\w.]", self.code[at - 1]) or self.code[max(0, at - 2) : at] == ".?":
                at -= 1
            else:
                break
        return at, end

    @property
    def target(self) -> str:
        """What a `.` or `[` at the place belongs to."""
        start, end = self.target_span
        return self.source[start:end]

    @cached_property
    def arguments(self) -> list[str]:
        """What stands in the brackets that open at the place, parted at commas."""
        parts, depth, start = list[str](), 0, self.at + 1
        for one in _TOKEN.finditer(self.code, start):
            depth += (one[0] in _OPENING) - (one[0] in _CLOSING)
            if depth < 0 or (depth == 0 and one[0] == ","):
                parts.append(self.source[start : one.start()].strip())
                start = one.end()
            if depth < 0:
                return [part for part in parts if part]
        return []

    @property
    def end(self) -> int:
        """Where the brackets close that open at the place."""
        depth = 0
        for one in _TOKEN.finditer(self.code, self.at):
            depth += (one[0] in _OPENING) - (one[0] in _CLOSING)
            if depth == 0:
                return one.start()
        return len(self.code)

    def unclosed(self) -> int | None:
        """Where the last bracket opens that nothing closes."""
        opened = list[int]()
        for one in _TOKEN.finditer(self.code):
            if one[0] in _OPENING:
                opened.append(one.start())
            elif one[0] in _CLOSING and opened:
                opened.pop()
        return opened[-1] if opened else None

    def loosest(self) -> int:
        """How tightly it binds what stands outside of all brackets."""
        depth, found = 0, 9
        for one in _TOKEN.finditer(self.code):
            depth += (one[0] in _OPENING) - (one[0] in _CLOSING)
            if depth == 0 and self._is_binary(one):
                found = min(found, _BINDING[one[0]])
        return found

    def _left(self) -> int:
        here = _TOKEN.match(self.code, self.at)
        own = _BINDING.get(here[0], 3) if here else 3
        depth = 0
        tokens = list(takewhile(lambda one: one.start() < self.at, _TOKEN.finditer(self.code)))
        for one in reversed(tokens):
            depth += (one[0] in _CLOSING) - (one[0] in _OPENING)
            if depth < 0 or (depth == 0 and self._is_binary(one) and _BINDING[one[0]] < own):
                return one.end()
        return 0

    def _until(self, start: int, binding: int, stop: str = "") -> str:
        depth = 0
        for one in _TOKEN.finditer(self.code, start):
            depth += (one[0] in _OPENING) - (one[0] in _CLOSING)
            ends = one[0] in stop if stop else self._is_binary(one) and _BINDING[one[0]] <= binding
            if depth < 0 or (depth == 0 and ends):
                return self.source[start : one.start()].strip()
        return self.source[start:].strip()

    def _is_binary(self, token: re.Match[str]) -> bool:
        """Whether it is an operator between two things, and no sign."""
        if token[0] != "-":
            return token[0] in _BINDING
        at = token.start()
        while at > 0 and self.code[at - 1].isspace():
            at -= 1
        before = self.code[at - 1 : at]
        return before.isalnum() or (before != "" and before in "_)]}")

    def _opening(self, closing: int) -> int:
        depth = 0
        for at in range(closing, -1, -1):
            depth += (self.code[at] in ")]}") - (self.code[at] in "([{")
            if depth == 0:
                return at
        return 0


def parenthesised(text: str) -> str:
    """A text that a `.` can follow."""
    return text if Excerpt(text, len(text)).target_span == (0, len(text)) else f"({text})"


def side(text: str, *, of: str) -> str:
    """A text that can stand on a side of an operator."""
    return f"({text})" if Excerpt(text, 0).loosest() <= _BINDING[of] else text


def has_comment(text: str) -> bool:
    """Whether a part of it is not read."""
    return any(code(text)[found.start()] == " " for found in re.finditer("//", text))


def short(text: str) -> str:
    """A text as a cure can show it."""
    return text if 0 < len(text) <= _LONGEST and "\n" not in text and not has_comment(text) else "..."
