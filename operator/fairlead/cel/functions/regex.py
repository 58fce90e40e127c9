"""Regular expressions, by the same library as the engine's: RE2, which no pattern can make slow.

Patterns are constants, compiled once. All work is on UTF-8, as in the engine, whose steps over empty matches are
those of bytes.
"""

from functools import lru_cache
from typing import Any, Final

import re2

from fairlead.cel.errors import Abort, CelError, Kind
from fairlead.cel.values import NONE, Nothing, Some

REPEATED_BYTES_MAX: Final = 1_000_000


_OF_ENGINE: Final = 8 << 20
PROGRAM_BYTES_MAX: Final = 1 << 18
"""Of a compiled pattern: to compile as much takes RE2 some milliseconds."""
CLASSES_MAX: Final = 32
"""Of classes such as `\\pL` in a pattern: each has hundreds of ranges, which RE2 makes before it counts them."""
PATTERNS_MAX: Final = 32
"""Of an expression with its variables: they are compiled one by one, and found here when code is made of it."""


class Pattern:
    """A compiled pattern, and what the language does with one."""

    __slots__ = ("_capturing", "_groups", "_search")

    def __init__(self, pattern: str, bytes_max: int = _OF_ENGINE) -> None:
        """Compile, or raise that the pattern is none."""
        try:
            self._capturing = re2.compile(pattern.encode(), _options(bytes_max))
            # Knowing only that there is a match is quicker without groups.
            self._search = re2.compile(pattern.encode(), _options(bytes_max, never_capture=True)).search
        except re2.error as error:
            raise CelError(Kind.PATTERN, f"invalid regular expression: {_text(error)}") from None
        self._groups: int = self._capturing.groups

    def matches(self, text: str) -> bool:
        """Decide whether it matches anywhere."""
        return self._search(text.encode()) is not None

    def extract(self, text: str) -> Some | Nothing:
        """Get the first match, or its group if the pattern has one; a group that took no part is empty."""
        self._require_one_group()
        match = self._capturing.search(text.encode())
        return NONE if match is None else Some(_decode(match.group(self._groups) or b""))

    def extract_all(self, text: str) -> list[str]:
        """Get all matches that are not empty, or their groups that are not.

        What follows a match is searched as if it were a text of its own: `^` matches there.
        """
        self._require_one_group()
        rest, found = text.encode(), []
        while match := self._capturing.search(rest):
            if match.start() == match.end():
                if not rest:
                    break
                rest = rest[1:]
                continue
            if part := match.group(self._groups):
                found.append(_decode(part))
            rest = rest[match.end() :]
        return found

    def replace(self, text: str, replacement: str) -> str:
        """Replace all matches."""
        rewrite = self._rewrite(replacement)
        rest, done, position = text.encode(), b"", 0
        last_end = -1
        while position <= len(rest):
            match = self._capturing.search(rest, position)
            if match is None:
                break
            start, end = match.span()
            done += rest[position:start]
            if start == last_end and start == end:
                # An empty match right after one does not count; one character goes over.
                step = _character_bytes(rest, start)
                done += rest[start : start + step]
                position = start + step
                if not step:
                    break
                continue
            done += rewrite(match)
            position = last_end = end
        return _decode(done + rest[position:])

    def replace_some(self, text: str, replacement: str, count: int) -> str:
        """Replace the first matches; a negative count means all, and none does not even look at the pattern.

        After an empty match the search goes on at the same place: this is how the engine counts.
        """
        if count == 0:
            return text
        if count < 0:
            return self.replace(text, replacement)
        rewrite = self._rewrite(replacement)
        rest, done = text.encode(), b""
        for index in range(count):
            match = self._capturing.search(rest)
            if match is None:
                break
            new = rewrite(match)
            if match.end() == 0:
                done += _repeat(new, count - index)
                break
            done += rest[: match.start()] + new
            rest = rest[match.end() :]
        return _decode(done + rest)

    def _require_one_group(self) -> None:
        if self._groups > 1:
            raise CelError(Kind.PATTERN, "regular expression has more than one capturing group")

    def _rewrite(self, replacement: str) -> "Rewrite":
        r"""Read a replacement: `\0` to `\9` are the match and its groups, `\\` is a backslash, and no more."""
        parts: list[bytes | int] = []
        literal, *escapes = replacement.split("\\")
        parts.append(literal.encode())
        while escapes:
            following = escapes.pop(0)
            if following[:1].isascii() and following[:1].isdigit():
                parts += [int(following[0]), following[1:].encode()]
            elif not following and escapes:
                parts += [b"\\", escapes.pop(0).encode()]
            else:
                raise CelError(Kind.PATTERN, "invalid replacement string: a backslash needs a digit or a backslash")
        if max((part for part in parts if isinstance(part, int)), default=0) > self._groups:
            raise CelError(Kind.PATTERN, f"invalid replacement string: the pattern has {self._groups} groups")
        return Rewrite(parts)


@lru_cache(2 * PATTERNS_MAX)
def compiled(pattern: str) -> Pattern:
    """A pattern of a policy, which was perhaps compiled a moment ago. Raises CelError, also for a large one."""
    if pattern.count("\\p") + pattern.count("\\P") > CLASSES_MAX:
        said = rf"more than {CLASSES_MAX} classes such as \pL"
        raise CelError(Kind.PATTERN, f"invalid regular expression: {said}")
    return Pattern(pattern, PROGRAM_BYTES_MAX)


class Rewrite:
    """What comes in place of a match."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[bytes | int]) -> None:
        self._parts = parts

    def __call__(self, match: Any) -> bytes:
        """Write it for one match."""
        return b"".join(part if isinstance(part, bytes) else match.group(part) or b"" for part in self._parts)


def _options(bytes_max: int, *, never_capture: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = never_capture
    options.max_mem = bytes_max
    return options


def _repeat(text: bytes, times: int) -> bytes:
    """Repeat; where the engine would fill the memory, give up."""
    if len(text) * times > REPEATED_BYTES_MAX:
        raise Abort(Kind.LIMIT, f"regex.replace repeats an empty match {times} times")
    return text * times


def _character_bytes(text: bytes, position: int) -> int:
    end = position + 1
    while end < len(text) and text[end] & 0xC0 == 0x80:
        end += 1
    return end - position if position < len(text) else 0


def _decode(text: bytes) -> str:
    r"""Decode; `\C` can cut a character into pieces, which no string can hold."""
    return text.decode(errors="replace")


def _text(error: Exception) -> str:
    return error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
