"""A backtracking matcher that counts its steps: it goes the ways of Python's `re`, without its shortcuts.

One step is one node of a pattern tried at one place of a text. How many there are depends on pattern and text alone.
"""

import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Go = Callable[[int], int]
"""What follows, from a place on: where the match ends, or `FAILED`."""
FAILED = -1
_REPEAT_MAX = 8  # a repeat that is bounded higher counts as one without a bound


class TooManyStepsError(Exception):
    """Match that does not end in time."""


class Tree:
    """A pattern, parsed. Bytes are read as Latin-1."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        source = pattern.pattern
        flags = pattern.flags
        if isinstance(source, bytes):
            source, flags = source.decode("latin-1"), flags & ~re.LOCALE | re.ASCII
        self.items = [_plain(node) for node in _parser.parse(source, flags)]
        self.flags = int(flags)


def _plain(node: tuple[Any, Any]) -> tuple[Any, Any]:
    """The same node, with lists of nodes in it, which are faster than what the parser makes."""
    kind, given = node
    if kind is op.BRANCH:
        return kind, [[_plain(one) for one in branch] for branch in given[1]]
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return kind, (given[0], [_plain(one) for one in given[1]], given[1].getwidth()[0])
    if kind is op.ATOMIC_GROUP:
        return kind, [_plain(one) for one in given]
    if kind is op.SUBPATTERN:
        return kind, (given[0], int(given[1]), int(given[2]), [_plain(one) for one in given[3]])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return kind, (*bounds(given[0], given[1]), [_plain(one) for one in given[2]])
    return node


def bounds(low: int, high: int) -> tuple[int, int]:
    """Return the least and greatest number of repetitions; a large one counts as unlimited."""
    return low if low <= _REPEAT_MAX else sys.maxsize, high if high <= _REPEAT_MAX else sys.maxsize


def accepts(node: tuple[Any, Any], character: str, flags: int) -> bool:
    """Return whether a node for one character takes it."""
    kind, given = node
    if flags & re.IGNORECASE:
        return any(_accepts(kind, given, one, flags) for one in {character, character.lower(), character.upper()})
    return _accepts(kind, given, character, flags)


def _accepts(kind: Any, given: Any, character: str, flags: int) -> bool:
    if kind is op.LITERAL:
        return bool(ord(character[0]) == given)
    if kind is op.NOT_LITERAL:
        return bool(ord(character[0]) != given)
    if kind is op.ANY:
        return bool(flags & re.DOTALL) or character != "\n"
    found = any(_in(one, character, flags) for one in given if one[0] is not op.NEGATE)
    return found is not (given[0][0] is op.NEGATE)


def _in(node: tuple[Any, Any], character: str, flags: int) -> bool:
    kind, given = node
    if kind is op.RANGE:
        return bool(given[0] <= ord(character[0]) <= given[1])
    if kind is op.CATEGORY:
        return category(given, character, flags)
    return _accepts(kind, given, character, flags)


_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def category(given: Any, character: str, flags: int) -> bool:
    """Return whether a character is a digit, a letter, a blank, or none."""
    name = str(given).removeprefix("CATEGORY_")
    letter = _CATEGORIES[name.removeprefix("NOT_")]
    return (re.match(letter, character, flags & re.ASCII) is not None) is not name.startswith("NOT_")


class Matcher:
    """Counts what it takes to look for a pattern in texts."""

    def __init__(self, tree: Tree, limit: int = 1_000_000) -> None:
        self._tree = tree
        self._flags = tree.flags
        self._limit = limit
        self._length = 0
        self._text = ""
        self._groups: dict[int, tuple[int, int]] = {}
        self._cached: dict[tuple[int, str], bool] = {}
        self.steps = 0

    def count(self, text: str, how: str) -> int:
        """The steps to look for it: "each" is all places where it fits, "match" from the beginning, "fullmatch" all."""
        self._text, self._length, self.steps = text, len(text), 0
        with _deep():
            if how != "each":
                ends = (lambda at: at if at == len(text) else FAILED) if how == "fullmatch" else (lambda at: at)
                self._sequence(self._tree.items, 0, 0, ends)
                return self.steps
            at = 0
            while at <= len(text):
                end = self._sequence(self._tree.items, 0, at, lambda at: at)
                at = end if end > at else at + 1
        return self.steps

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._limit:
            raise TooManyStepsError

    def _accepts(self, node: tuple[Any, Any], at: int) -> bool:
        if at >= self._length:
            return False
        key = id(node), self._text[at]
        if key not in self._cached:
            self._cached[key] = accepts(node, self._text[at], self._flags)
        return self._cached[key]

    def _sequence(self, items: list[Any], index: int, at: int, go: Go) -> int:
        while index < len(items) and items[index][0] in _SINGLE:
            self._step()
            if not self._accepts(items[index], at):
                return FAILED
            at += 1
            index += 1
        if index == len(items):
            return go(at)
        return self._node(items[index], at, lambda end: self._sequence(items, index + 1, end, go))

    def _node(self, node: tuple[Any, Any], at: int, go: Go) -> int:
        self._step()
        kind, given = node
        if kind is op.BRANCH:
            for branch in given:
                if (end := self._sequence(branch, 0, at, go)) != FAILED:
                    return end
            return FAILED
        if kind is op.SUBPATTERN:
            return self._group(given, at, go)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeat(kind, given, at, go)
        if kind is op.ATOMIC_GROUP:
            end = self._sequence(given, 0, at, lambda at: at)
            return FAILED if end == FAILED else go(end)
        if kind in (op.ASSERT, op.ASSERT_NOT):
            direction, items, width = given
            begin = at if direction > 0 else at - width
            end = FAILED if begin < 0 else self._sequence(items, 0, begin, lambda at: at)
            return go(at) if (end != FAILED) is (kind is op.ASSERT) else FAILED
        if kind is op.AT:
            return go(at) if self._at(given, at) else FAILED
        if kind is op.GROUPREF:
            begin, end = self._groups.get(given, (0, -1))
            held = self._text[begin:end]
            self.steps += len(held)
            return go(at + len(held)) if end >= 0 and self._text.startswith(held, at) else FAILED
        raise NotImplementedError(str(kind))

    def _group(self, given: Any, at: int, go: Go) -> int:
        number, more, fewer, items = given
        outer, inner = self._flags, (self._flags | more) & ~fewer

        def ends(end: int) -> int:
            before = self._groups.get(number)
            self._groups[number] = at, end
            self._flags = outer
            found = go(end)
            self._flags = inner
            if found == FAILED and before is not None:
                self._groups[number] = before
            return found

        self._flags = inner
        found = self._sequence(items, 0, at, ends)
        self._flags = outer
        return found

    def _repeat(self, kind: Any, given: Any, at: int, go: Go) -> int:
        low, high, items = given
        if len(items) == 1 and items[0][0] in _SINGLE:
            return self._repeat_one(kind, low, high, items[0], at, go)
        if kind is op.POSSESSIVE_REPEAT:
            count = 0
            while count < high:
                end = self._sequence(items, 0, at, lambda at: at)
                if end in (FAILED, at):
                    break
                at, count = end, count + 1
            return go(at) if count >= low else FAILED

        def again(count: int, begin: int) -> int:
            def inner() -> int:
                if count >= high:
                    return FAILED
                return self._sequence(
                    items, 0, begin, lambda end: again(count + 1, end) if end > begin or count < low else FAILED
                )

            self._step()
            if count < low:
                return inner()
            if kind is op.MIN_REPEAT:
                return end if (end := go(begin)) != FAILED else inner()
            return end if (end := inner()) != FAILED else go(begin)

        return again(0, at)

    def _repeat_one(self, kind: Any, low: int, high: int, item: tuple[Any, Any], at: int, go: Go) -> int:
        end = at
        if kind is op.MIN_REPEAT:
            while True:
                if end - at >= low and (found := go(end)) != FAILED:
                    return found
                self._step()
                if end - at >= high or not self._accepts(item, end):
                    return FAILED
                end += 1
        while end - at < high and self._accepts(item, end):
            self._step()
            end += 1
        if kind is op.POSSESSIVE_REPEAT:
            return go(end) if end - at >= low else FAILED
        while end - at >= low:
            self._step()
            if (found := go(end)) != FAILED:
                return found
            end -= 1
        return FAILED

    def _at(self, where: Any, at: int) -> bool:
        text = self._text
        if where in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            several = where is op.AT_BEGINNING and self._flags & re.MULTILINE
            return at == 0 or bool(several and text[at - 1] == "\n")
        if where in (op.AT_END, op.AT_END_STRING):
            if at == len(text):
                return True
            if where is op.AT_END_STRING:
                return False
            return text[at] == "\n" and (bool(self._flags & re.MULTILINE) or at == len(text) - 1)
        is_boundary = is_word(text[at - 1 : at], self._flags) is not is_word(text[at : at + 1], self._flags)
        return is_boundary is (where is op.AT_BOUNDARY)


_SINGLE = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


@cache
def is_word(character: str, flags: int) -> bool:
    """Return whether it is a letter, a digit or `_`; nothing is none."""
    return re.match(r"\w", character, flags & re.ASCII) is not None


@contextmanager
def _deep() -> "Iterator[None]":
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
