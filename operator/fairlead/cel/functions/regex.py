"""Regular expressions with RE2, the library of the engine: a search takes time linear in the text.

All work is on UTF-8, as in the engine, which steps over empty matches byte by byte. The time per byte depends on the
size of the compiled program, and compiling takes time as well: both have limits here.
"""

from functools import lru_cache
from math import inf
from typing import Any, Final

import re2

from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.meter import STEP, Meter
from fairlead.cel.values.value_types import NONE, Nothing, Some

REPEATED_BYTES_MAX: Final = 1_000_000
PATTERN_MAX: Final = 1_024
"""The longest pattern, in characters."""
_CLASSES_MAX: Final = 32
"""Unicode classes in a pattern: each takes as long to compile as a thousand letters."""
SEARCH: Final = 400
"""Units of a search in any text: the library is called through Python."""
_MEMORY: Final = 1 << 18
_TOO_LARGE: Final = "regular expression too large: "
PATTERNS_MAX: Final = 32
"""Patterns of an expression with its variables: they are compiled one by one, and cached for its lowering."""


class Pattern:
    """Compiled pattern with the operations of CEL."""

    __slots__ = ("_capturing", "_groups", "_search", "units")

    def __init__(self, pattern: str) -> None:
        """Compile the pattern. Raises CelError if it is invalid or too large."""
        if len(pattern) > PATTERN_MAX:
            raise CelError(Kind.PATTERN, f"{_TOO_LARGE}a pattern has at most {PATTERN_MAX} characters")
        if _classes(pattern) > _CLASSES_MAX:
            raise CelError(Kind.PATTERN, f"{_TOO_LARGE}a pattern has at most {_CLASSES_MAX} classes of Unicode")
        try:
            self._capturing = re2.compile(pattern.encode(), _options())
            # Without groups a search is faster.
            self._search = re2.compile(pattern.encode(), _options(never_capture=True)).search
        except re2.error as error:
            reason = _text(error)
            start = _TOO_LARGE if "too large" in reason else "invalid regular expression: "
            raise CelError(Kind.PATTERN, f"{start}{reason}") from None
        self._groups: int = self._capturing.groups
        self.units: int = 1 + self._capturing.programsize * 2 // 3
        """What looking at one byte may cost, in units of the meter: where no automaton does, all states are tried."""

    def matches(self, text: str, *, meter: Meter | None = None) -> bool:
        """Return whether the pattern matches anywhere."""
        self._pay(meter, len(text))
        return self._search(text.encode()) is not None

    def extract(self, text: str, *, meter: Meter | None = None) -> Some | Nothing:
        """Return the first match, or its group if the pattern has one; a group that took no part is empty."""
        self._require_one_group()
        self._pay(meter, len(text))
        match = self._capturing.search(text.encode())
        return NONE if match is None else Some(_decode(match.group(self._groups) or b""))

    def extract_all(self, text: str, *, meter: Meter | None = None) -> list[str]:
        """Return all matches that are not empty, or their groups that are not.

        The rest after a match is searched as a text of its own: `^` matches there.
        """
        self._require_one_group()
        rest, found = text.encode(), []
        self._pay(meter, len(rest))
        while match := self._capturing.search(rest):
            self._pay(meter, len(rest))
            if match.start() == match.end():
                if not rest:
                    break
                rest = rest[1:]
                continue
            if part := match.group(self._groups):
                found.append(_decode(part))
            rest = rest[match.end() :]
        return found

    def replace(self, text: str, replacement: str, *, meter: Meter | None = None) -> str:
        """Replace all matches."""
        rewrite = self._rewrite(replacement)
        rest, position = text.encode(), 0
        done: list[bytes] = []
        last_end = -1
        while position <= len(rest):
            self._pay(meter, len(rest) - position)
            match = self._capturing.search(rest, position)
            if match is None:
                break
            start, end = match.span()
            done.append(rest[position:start])
            if start == last_end and start == end:
                # An empty match right after a match does not count: copy one character.
                step = _character_bytes(rest, start)
                done.append(rest[start : start + step])
                position = start + step
                if not step:
                    break
                continue
            rewrite.pay(meter, match)
            done.append(rewrite(match))
            position = last_end = end
        return _decode(b"".join(done) + rest[position:])

    def replace_some(self, text: str, replacement: str, count: int, *, meter: Meter | None = None) -> str:
        """Replace the first matches; a negative count means all, and zero does not look at the pattern.

        After an empty match the search goes on at the same place: this is how the engine counts.
        """
        if count == 0:
            return text
        if count < 0:
            return self.replace(text, replacement, meter=meter)
        rewrite = self._rewrite(replacement)
        rest = text.encode()
        done: list[bytes] = []
        for index in range(count):
            self._pay(meter, len(rest))
            match = self._capturing.search(rest)
            if match is None:
                break
            rewrite.pay(meter, match)
            new = rewrite(match)
            if match.end() == 0:
                if meter is not None:
                    meter.pay(len(new) * (count - index) // 16)
                done.append(_repeat(new, count - index))
                break
            done += rest[: match.start()], new
            rest = rest[match.end() :]
        return _decode(b"".join(done) + rest)

    def _pay(self, meter: Meter | None, size: int) -> None:
        """Pay for a search in a text of this size."""
        if meter is not None:
            meter.pay(SEARCH + (size + 10) * self.units)

    def _require_one_group(self) -> None:
        if self._groups > 1:
            raise CelError(Kind.PATTERN, "regular expression has more than one capturing group")

    def _rewrite(self, replacement: str) -> "Rewrite":
        r"""Read a replacement: `\0` to `\9` are the match and its groups, `\\` is a backslash; nothing else."""
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


class Rewrite:
    """Replacement of a match."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[bytes | int]) -> None:
        self._parts = parts

    def pay(self, meter: Meter | None, match: Any) -> None:
        """Pay for the replacement of one match."""
        if meter is not None:
            sizes = (
                len(part) if isinstance(part, bytes) else match.end(part) - match.start(part) for part in self._parts
            )
            meter.pay(STEP + sum(sizes) // 4)

    def __call__(self, match: Any) -> bytes:
        """Return the replacement of one match."""
        return b"".join(part if isinstance(part, bytes) else match.group(part) or b"" for part in self._parts)


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern, or return it from the cache. Raises CelError for an invalid one."""
    found = _compiled(text)
    if isinstance(found, Pattern):
        return found
    raise CelError(Kind.PATTERN, found)


@lru_cache(maxsize=2 * PATTERNS_MAX)
def _compiled(text: str) -> Pattern | str:
    try:
        return Pattern(text)
    except CelError as error:
        return error.message


def pattern_search_units(text: str) -> float:
    """Estimate the cost per byte of a search with a literal pattern; 1 for an invalid one, which only raises."""
    try:
        return compile_pattern(text).units
    except CelError:
        return 1


def pattern_units(text: str) -> float:
    """Estimate the cost of compiling a pattern in each evaluation; infinite beyond the limits."""
    try:
        compile_pattern(text)
    except CelError as error:
        return inf if error.message.startswith(_TOO_LARGE) else COMPILE_UNITS
    return compile_units(text)


COMPILE_UNITS: Final = 6_000


def compile_units(text: str) -> int:
    """Estimate the worst cost of compiling a pattern."""
    if len(text) > PATTERN_MAX:
        return COMPILE_UNITS  # the compiler rejects it
    repeats = 200_000 + 300 * len(text) if "{" in text else 0
    return COMPILE_UNITS + 50 * len(text) + 11_000 * min(_classes(text), _CLASSES_MAX) + repeats


def _classes(text: str) -> int:
    return sum(text.count(start) for start in (r"\p", r"\P", "[[:", "(?i"))


def _options(*, never_capture: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = never_capture
    return options


def _repeat(text: bytes, times: int) -> bytes:
    """Repeat a text. Raises Abort where the engine would fill the memory."""
    if len(text) * times > REPEATED_BYTES_MAX:
        raise Abort(Kind.LIMIT, f"regex.replace repeats an empty match {times} times")
    return text * times


def _character_bytes(text: bytes, position: int) -> int:
    end = position + 1
    while end < len(text) and text[end] & 0xC0 == 0x80:
        end += 1
    return end - position if position < len(text) else 0


def _decode(text: bytes) -> str:
    r"""Decode UTF-8, replacing the pieces of a character that `\C` can leave."""
    return text.decode(errors="replace")


def _text(error: Exception) -> str:
    return error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
