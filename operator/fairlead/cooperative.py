"""Work that pauses, so that others are served meanwhile, and that is given up when it has taken too long.

Between two pauses there is little: some thousand calls of ours, or one of the engine's. A pause may tell which field is
being looked at.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
FieldPath = tuple[str | int, ...]
PART: Final = 1 / 3
BURST_S: Final = 0.1
Steps = Generator[Any, None, T]
"""A computation that pauses, so that others are served meanwhile; at a pause it gives None, or the path of a field."""
Clock = Callable[[], float]
"""Seconds of a processor that whoever asks has taken."""
LIMIT_S: Final = 2.0
"""What one policy may take of a processor, until it is compiled and looked at."""
NODES: Final = 200
"""So many small steps, one for each node of an expression, make a stretch."""


class TooLongError(Exception):
    """Work that was given up; most of the time went into a field."""

    def __init__(self, path: FieldPath) -> None:
        super().__init__(path)
        self.path = path


def finish(steps: Steps[T]) -> T:
    """Run a computation that pauses to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def seldom(steps: Steps[T], every: int = NODES) -> Steps[T]:
    """The same with few of its pauses: for what makes one at each node of an expression."""
    left = every
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        left -= 1
        if not left:
            left = every
            yield


def gathered(found: Iterable[T | None], every: int = 1) -> Steps[list[T]]:
    """All that is found, pausing at each None, or at some of them."""
    left, kept = every, list[T]()
    for one in found:
        if one is not None:
            kept.append(one)
            continue
        left -= 1
        if not left:
            left = every
            yield
    return kept


def released(kept: list[Any]) -> Steps[None]:
    """Let go of what nobody else holds, piece by piece: to free a large policy takes as long as many calls."""
    while kept:
        kept.pop()
        yield


def about(path: FieldPath, steps: Steps[T]) -> Steps[T]:
    """The same, telling at each pause which field it is about."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        yield path


def within(steps: Steps[T], clock: Clock, limit_s: float = LIMIT_S) -> Steps[T]:
    """The same, given up over a limit. Raises TooLongError."""
    spent: dict[FieldPath, float] = {}
    whole = 0.0
    while True:
        began = clock()
        try:
            path = next(steps) or ()
        except StopIteration as done:
            result: T = done.value
            return result
        taken = clock() - began
        whole += taken
        spent[path] = spent.get(path, 0.0) + taken
        if whole > limit_s:
            steps.close()
            raise TooLongError(max(spent, key=lambda one: (one != (), spent[one])))
        yield path


@dataclass(slots=True, eq=False)
class Share:
    """A part of somebody's time for work in pieces: a little at once, and then no more than the part."""

    clock: Clock
    part: float = PART
    burst_s: float = BURST_S
    _left: float = BURST_S
    _until: float = 0.0

    def pause(self, began: float) -> float:
        """How long to leave the time to others after a stretch that began then and ends now, in seconds."""
        now = self.clock()
        earned = (now - self._until) * self.part
        self._left = min(self.burst_s, self._left + earned) - (now - began)
        self._until = now
        return max(0.0, -self._left / self.part)


def paid(steps: Steps[T], share: Share) -> Generator[float, None, T]:
    """Run a computation within a share, telling after each stretch how long to leave the time to others."""
    while True:
        began = share.clock()
        try:
            next(steps)
        except StopIteration as done:
            share.pause(began)
            result: T = done.value
            return result
        yield share.pause(began)
