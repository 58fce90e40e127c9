"""Shares in order, in whole parts, with the sums of so many of the smallest and of their squares."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import accumulate, chain
from operator import add
from typing import Any, Final, NamedTuple

_BLOCK: Final = 64


class SharesBelow(NamedTuple):
    """Shares that are less than some limit."""

    number: int = 0
    total: int = 0
    squares: int = 0
    """Sum of their squares."""


class OrderedShares:
    """Shares in blocks of some dozens, so that a change is one of a block and not of all sums after it."""

    __slots__ = ("_before", "_blocks", "_greatest", "_squares", "_totals")

    def __init__(self) -> None:
        self._blocks: Final[list[list[int]]] = [[]]
        self._greatest: Final = [0]  # of each block, as everything below
        self._totals: Final = [0]
        self._squares: Final = [0]
        self._before: list[SharesBelow] | None = None

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._blocks)

    def add(self, share: int) -> None:
        """Add a share."""
        greatest = self._greatest
        at = bisect_left(greatest, share)
        if at == len(greatest):
            at -= 1
            greatest[at] = share
        block = self._blocks[at]
        insort(block, share)
        self._totals[at] += share
        self._squares[at] += share * share
        self._before = None
        if len(block) > 2 * _BLOCK:
            self._split(at, block)

    def remove(self, share: int) -> None:
        """Remove a share that was added."""
        at = bisect_left(self._greatest, share)
        block = self._blocks[at]
        del block[bisect_left(block, share)]
        self._totals[at] -= share
        self._squares[at] -= share * share
        self._before = None
        if block:
            self._greatest[at] = block[-1]
        elif len(self._blocks) > 1:
            for column in self._columns:
                del column[at]

    def below(self, limit: int) -> SharesBelow:
        """Return how many shares are less than a limit, and their sums."""
        if self._before is None:
            columns = (map(len, self._blocks), self._totals, self._squares)
            self._before = [*map(SharesBelow, *(accumulate(column, initial=0) for column in columns))]
        at = bisect_left(self._greatest, limit)
        if at == len(self._blocks):
            return self._before[at]
        block = self._blocks[at]
        some = block[: bisect_left(block, limit)]
        return SharesBelow(*map(add, self._before[at], (len(some), sum(some), _squares(some))))

    @property
    def _columns(self) -> tuple[list[Any], ...]:
        return self._blocks, self._greatest, self._totals, self._squares

    def _split(self, at: int, block: list[int]) -> None:
        lower, upper = block[:_BLOCK], block[_BLOCK:]
        for column, two in zip(
            self._columns,
            ((lower, upper), (lower[-1], upper[-1]), map(sum, (lower, upper)), map(_squares, (lower, upper))),
            strict=True,
        ):
            column[at : at + 1] = two


def _squares(shares: list[int]) -> int:
    return sum([one * one for one in shares])
