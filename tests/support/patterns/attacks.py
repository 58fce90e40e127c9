"""Texts that are hard for a pattern, made of the pattern itself.

A pattern takes more than linear time where one text leads from a loop back into it, from it into a second loop, and
from that back into the second: each repetition of the text may then be the one at which the loops change. Looking for
a pattern from each place on is a loop, too, and the first. (Weber and Seidl, On the degree of ambiguity of finite
automata.) Such a text is repeated here, behind what leads to the loop, and before what makes the pattern fail.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from re import _constants as op  # type: ignore[attr-defined]
from typing import Any

from support.patterns.steps import _SINGLE, Matcher, TooManyStepsError, Tree, accepts, is_word

_OTHERS = "é\u0663\u2028\u2603\x85"
_TIMES = 16
_SLACK = 4
_FEW = 20
_COPIES_MAX = 8
_BEFORE = ""  # what stands before the first character
_START = -1
_WITNESSES_MAX = 4

Condition = Callable[[str, str], bool]
"""Whether a place is right, by the character before it and the one behind it."""


class _Automaton:
    """The ways through a pattern. A state is the node of the pattern that took the last character."""

    def __init__(self, tree: Tree, how: str) -> None:
        self._flags = tree.flags
        self.each = how == "each"
        self.taken: list[tuple[Any, int]] = []  # the node of each state, and its flags
        self._ways: list[list[tuple[Condition | None, int]]] = []  # from a place in between to places
        self._out: list[list[int]] = []  # from a place to states
        self._into: list[int] = []  # the place behind a state
        self._first = self._place()
        self._sequence(tree.items, self._first)
        self.alphabet = self._representatives()
        self._steps: dict[tuple[int, str, str], tuple[int, ...]] = {}

    def _place(self) -> int:
        self._ways.append([])
        self._out.append([])
        return len(self._ways) - 1

    def _sequence(self, items: Any, at: int) -> int:
        for node in items:
            at = self._node(node, at)
        return at

    def _skip(self, at: int, to: int, when: Condition | None = None) -> int:
        self._ways[at].append((when, to))
        return to

    def _node(self, node: Any, at: int) -> int:
        kind, given = node
        if kind in _SINGLE:
            behind = self._place()
            self.taken.append((node, self._flags))
            self._into.append(behind)
            self._out[at].append(len(self.taken) - 1)
            return behind
        if kind is op.BRANCH:
            behind = self._place()
            for branch in given:
                begin = self._skip(at, self._place())
                self._skip(self._sequence(branch, begin), behind)
            return behind
        if kind is op.SUBPATTERN:
            _, more, fewer, items = given
            outer, self._flags = self._flags, (self._flags | more) & ~fewer
            behind = self._sequence(items, at)
            self._flags = outer
            return behind
        if kind is op.ATOMIC_GROUP:
            return self._sequence(given, at)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeat(given, at)
        if kind in (op.ASSERT, op.ASSERT_NOT):
            return self._assertion(given, at, wanted=kind is op.ASSERT)
        if kind is op.AT:
            return self._skip(at, self._place(), self._edge(given))
        return self._skip(at, self._place())

    def _repeat(self, given: Any, at: int) -> int:
        low, high, items = given
        for _ in range(min(low, _COPIES_MAX)):
            at = self._sequence(items, at)
        behind = self._place()
        self._skip(at, behind)
        if high > _COPIES_MAX:
            loop = self._skip(at, self._place())
            end = self._sequence(items, loop)
            self._skip(end, loop)
            self._skip(end, behind)
            return behind
        for _ in range(high - low):
            at = self._sequence(items, at)
            self._skip(at, behind)
        return behind

    def _assertion(self, given: Any, at: int, *, wanted: bool) -> int:
        direction, items, _ = given
        flags = self._flags
        if len(items) == 1 and items[0][0] in _SINGLE:
            node = items[0]

            def when(before: str, behind: str) -> bool:
                here = behind if direction > 0 else before
                return (bool(here) and accepts(node, here, flags)) is wanted

            return self._skip(at, self._place(), when)
        if direction < 0 and wanted:
            return self._sequence(items, at)  # so that it stands in the text
        return self._skip(at, self._place())

    def _edge(self, where: Any) -> Condition:
        flags = self._flags
        if where in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            several = where is op.AT_BEGINNING and flags & re.MULTILINE
            return lambda before, _: not before or bool(several and before == "\n")
        if where is op.AT_END:
            return lambda _, behind: behind == "\n"
        if where is op.AT_END_STRING:
            return lambda _, behind: not behind
        wanted = where is op.AT_BOUNDARY
        return lambda before, behind: (is_word(before, flags) is not is_word(behind, flags)) is wanted

    def _representatives(self) -> list[str]:
        """One character of all that no node tells apart."""
        known: dict[tuple[bool, ...], str] = {}
        literals = "".join(sorted({chr(code) for node, _ in self.taken for code in _codes(node)}))
        order = "axX1 _.-/" + "".join(map(chr, range(9, 127))) + literals + _OTHERS
        nodes = list(dict.fromkeys((str(node), flags) for node, flags in self.taken))
        by_text = {(str(node), flags): node for node, flags in self.taken}
        for character in order:
            signature = tuple(accepts(by_text[one], character, one[1]) for one in nodes)
            known.setdefault((*signature, is_word(character, self._flags), character == "\n"), character)
        return list(known.values())

    def step(self, state: int, before: str, character: str) -> tuple[int, ...]:
        """Return the states to which a character leads."""
        key = state, before, character
        if key not in self._steps:
            found = list[int]()
            begin = self._first if state == _START else self._into[state]
            if state == _START and self.each:
                found.append(_START)
            seen, left = {begin}, [begin]
            while left:
                at = left.pop()
                found += [one for one in self._out[at] if accepts(self.taken[one][0], character, self.taken[one][1])]
                for when, to in self._ways[at]:
                    if to not in seen and (when is None or when(before, character)):
                        seen.add(to)
                        left.append(to)
            if state != _START or self.each or not before:
                self._steps[key] = tuple(dict.fromkeys(found))
            else:
                self._steps[key] = ()
        return self._steps[key]

    def graph(self) -> dict[int, set[int]]:
        """Which states may follow which, whatever stands there."""
        made: dict[int, set[int]] = {}
        for state in range(_START, len(self.taken)):
            befores = self.alphabet if state != _START or self.each else []
            made[state] = {
                one
                for before in ([_BEFORE, *befores] if state == _START else befores)
                for character in self.alphabet
                for one in self.step(state, before, character)
            }
        return made


def _codes(node: Any) -> Iterator[int]:
    kind, given = node
    if kind in (op.LITERAL, op.NOT_LITERAL):
        yield given
    elif kind is op.IN:
        for one, inner in given:
            if one is op.LITERAL:
                yield inner
            elif one is op.RANGE:
                yield from inner


def attacks(tree: Tree, how: str) -> Iterator[tuple[str, str, str]]:
    """Return the text before, the repeated one, and the one behind it."""
    automaton = _Automaton(tree, how)
    graph = automaton.graph()
    below = {state: _reached(graph, state) for state in graph}
    loops = [state for state in graph if state in below[state]]
    seen = set[tuple[str, str]]()
    for one in loops:
        for other in loops:
            if other != one and other not in below[one]:
                continue
            for before, pump in _witnesses(automaton, below, one, other):
                lead = _lead(automaton, one, before)
                if lead is not None and (lead, pump) not in seen:
                    seen.add((lead, pump))
                    for behind in ["", *automaton.alphabet]:
                        yield lead, pump, behind


def _reached(graph: dict[int, set[int]], state: int) -> set[int]:
    found, left = set[int](), [state]
    while left:
        for one in graph[left.pop()] - found:
            found.add(one)
            left.append(one)
    return found


def _witnesses(automaton: _Automaton, below: dict[int, set[int]], one: int, other: int) -> Iterator[tuple[str, str]]:
    """Texts that lead from a loop into itself, from it into the other, and from that into itself.

    Of a loop alone, all that lead once around it: it may be ambiguous within.
    """
    start, end = (one, one, other), (one, other, other)
    befores = automaton.alphabet
    if one == _START:
        befores = [_BEFORE, *befores]
    else:
        befores = [first for first in befores if accepts(automaton.taken[one][0], first, automaton.taken[one][1])]
    left = deque([((*start, first), first, "") for first in befores])
    seen = {(*start, first) for first in befores}
    count = 0
    while left:
        (a, b, c, before), first, text = left.popleft()
        for character in automaton.alphabet:
            found = False
            for x in automaton.step(a, before, character):
                if one not in below[x]:
                    continue
                for y in automaton.step(b, before, character):
                    if y != other and other not in below[y]:
                        continue
                    for z in automaton.step(c, before, character):
                        if other not in below[z]:
                            continue
                        found = found or (x, y, z) == end
                        follower = x, y, z, character
                        if follower not in seen:
                            seen.add(follower)
                            left.append((follower, first, text + character))
            if found:
                yield first, text + character
                count += 1
                if count == _WITNESSES_MAX:
                    return


def _lead(automaton: _Automaton, state: int, last: str) -> str | None:
    """The shortest text that leads to a state and ends so."""
    if state == _START:
        return last
    left = deque([(_START, _BEFORE, "")])
    seen = {(_START, _BEFORE)}
    while left:
        at, before, text = left.popleft()
        if at == state and before == last:
            return text
        for character in automaton.alphabet:
            for follower in automaton.step(at, before, character):
                if (follower, character) not in seen:
                    seen.add((follower, character))
                    left.append((follower, character, text + character))
    return None


def worse_than_linear(pattern: re.Pattern[Any], how: str = "each") -> str:
    """A text on which the steps grow faster than it does, as an expression; empty if none is found."""
    tree = Tree(pattern)
    matcher = Matcher(tree, limit=200_000)
    for before, pump, behind in attacks(tree, how):
        texts = [before + pump * (times * _TIMES) + behind for times in (1, 2, 3)]
        try:
            three = matcher.count(texts[2], how)
            if three <= _FEW * len(texts[2]):  # to go on from each place to the end takes more
                continue
            one, two = (matcher.count(text, how) for text in texts[:2])
        except TooManyStepsError:
            return f"{before!r} + {pump!r} * n + {behind!r}: no end"
        if (three - two) - (two - one) > _SLACK * _TIMES:
            return f"{before!r} + {pump!r} * n + {behind!r}: {one}, {two}, {three}"
    return ""
