"""Work that pauses so that the event loop can serve others, and that is stopped when it takes too long.

A policy takes up to two seconds to compile and to lint; a scheduler's call has to be answered within milliseconds. Such
work is a generator that yields often: between two pauses lie some thousand Python calls, or one call of the CEL engine.
A pause may yield the path of the field that is being worked on.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
FieldPath = tuple[str | int, ...]
PART: Final = 1 / 3
BURST_S: Final = 0.1
Steps = Generator[Any, None, T]
"""A computation that pauses; each pause yields None or the path of a field."""
Clock = Callable[[], float]
"""Returns the seconds of processor time that the caller has used."""
LIMIT_S: Final = 2.0
"""Processor time that one policy may take until it is compiled and checked."""
NODES: Final = 200
"""Small steps, one per node of an expression, between two pauses."""


class TooLongError(Exception):
    """Work that was stopped; `path` is the field that took most of the time."""

    def __init__(self, path: FieldPath) -> None:
        super().__init__(path)
        self.path = path


@dataclass(slots=True)
class Pauses(Generic[T]):
    """The pauses of a computation. Iterate over them; then `result` holds what it returned."""

    steps: Generator[Any, None, T]
    result: T = field(init=False)

    def __iter__(self) -> Iterator[Any]:
        self.result = yield from self.steps


def finish(steps: Steps[T]) -> T:
    """Run a computation to its end without pausing, and return its result."""
    for _ in (pauses := Pauses(steps)):
        pass
    return pauses.result


def seldom(steps: Steps[T], every: int = NODES) -> Steps[T]:
    """Run a computation that pauses at each node of an expression, keeping one pause in `every`."""
    left = every
    for _ in (pauses := Pauses(steps)):
        left -= 1
        if not left:
            left = every
            yield
    return pauses.result


def gather_items(results: Iterable[T | None], every: int = 1) -> Steps[list[T]]:
    """Return the items that are not None, pausing once for every `every` items that are None."""
    left, items = every, list[T]()
    for one in results:
        if one is not None:
            items.append(one)
            continue
        left -= 1
        if not left:
            left = every
            yield
    return items


def drop_references(items: list[Any]) -> Steps[None]:
    """Drop the references one by one: to free a large policy at once takes as long as many calls."""
    while items:
        items.pop()
        yield


def at_path(path: FieldPath, steps: Steps[T]) -> Steps[T]:
    """Run a computation, yielding `path` at each of its pauses."""
    for _ in (pauses := Pauses(steps)):
        yield path
    return pauses.result


def within(steps: Steps[T], clock: Clock, limit_s: float = LIMIT_S) -> Steps[T]:
    """Run a computation and stop it once it has used more than `limit_s`. Raises TooLongError."""
    spent: dict[FieldPath, float] = {}
    total, began = 0.0, clock()
    for path in (pauses := Pauses(steps)):
        where, taken = path or (), clock() - began
        total += taken
        spent[where] = spent.get(where, 0.0) + taken
        if total > limit_s:
            steps.close()
            raise TooLongError(max(spent, key=lambda one: (one != (), spent[one])))
        yield where
        began = clock()
    return pauses.result


@dataclass(slots=True, eq=False)
class Share:
    """A share of the event loop's time: a burst at once, and then no more than `part` of the time."""

    clock: Clock
    part: float = PART
    burst_s: float = BURST_S
    _left: float = BURST_S
    _until: float = 0.0

    def pause(self, began: float) -> float:
        """Return for how many seconds to sleep after a stretch of work that began at `began` and ends now."""
        now = self.clock()
        earned = (now - self._until) * self.part
        self._left = min(self.burst_s, self._left + earned) - (now - began)
        self._until = now
        return max(0.0, -self._left / self.part)


def run_within_share(steps: Steps[T], share: Share) -> Generator[float, None, T]:
    """Run a computation within a share, yielding after each stretch for how many seconds to sleep."""
    began = share.clock()
    for _ in (pauses := Pauses(steps)):
        yield share.pause(began)
        began = share.clock()
    share.pause(began)
    return pauses.result
