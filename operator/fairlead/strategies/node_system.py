"""System of nodes: sums over many nodes, by which a score weighs what a pod on one of them does to all together.

Shares are summed in whole parts, and sums of whole numbers are exact, in whatever order they came about. So sums that
follow the nodes for months drift nowhere: they equal, to the last bit, those that are computed from nothing.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from fairlead.strategies.facts import Amounts

PARTS: Final = 1 << 60
"""Parts of 1 in which shares and amounts are summed."""
_AMOUNT_MAX: Final = 1e30


class SystemNode(NamedTuple):
    """Node of a system, with a number for each resource of the system."""

    requested: tuple[float, ...]
    allocatable: tuple[float, ...]
    shares: tuple[float, ...]
    """Shares of what is allocatable that are requested, from 0 to 1..."""
    parts: tuple[int, ...]
    """...in whole parts."""


class SystemFigures(NamedTuple):
    """Figures of the nodes of a system, with a number for each resource; zeros if it has no node."""

    mean: tuple[float, ...]
    """Mean share that is requested."""
    covariance: tuple[tuple[float, ...], ...]
    """Population covariance of these shares."""
    capacity: tuple[float, ...]
    """Mean amount that is allocatable."""


class RankedShares(NamedTuple):
    """Shares of the nodes of a system, in parts and in order."""

    ordered: Sequence[int]
    sums: Sequence[int]
    """Sum of so many of the smallest..."""
    squares: Sequence[int]
    """...and of their squares."""


class SystemSums:
    """Sums over the nodes of a system."""

    __slots__ = ("_allocatable", "_figures", "_ordered", "_products", "_ranked", "_totals")

    def __init__(self, resources: int) -> None:
        """`resources` is their number, at least 1."""
        self._ordered: Final = list[int]()
        self._totals: Final = [0] * resources
        self._products: Final = [[0] * (place + 1) for place in range(resources)]
        self._allocatable: Final = [0] * resources
        self._figures: SystemFigures | None = None
        self._ranked: RankedShares | None = None

    @property
    def number(self) -> int:
        """Return the number of nodes."""
        return len(self._ordered)

    @property
    def prime_total(self) -> int:
        """Return the sum of the shares of the first resource, in parts."""
        return self._totals[0]

    @property
    def figures(self) -> SystemFigures:
        """Return means and covariance, computed once after each change."""
        if self._figures is None:
            self._figures = self._computed()
        return self._figures

    def add(self, node: SystemNode) -> None:
        """Add a node."""
        insort(self._ordered, node.parts[0])
        self._count(node, 1)

    def remove(self, node: SystemNode) -> None:
        """Remove a node that was added."""
        del self._ordered[bisect_left(self._ordered, node.parts[0])]
        self._count(node, -1)

    @property
    def ranked(self) -> RankedShares:
        """Return the shares of the first resource in order, with their sums, computed once after each change."""
        if self._ranked is None:
            squares = accumulate([one * one for one in self._ordered], initial=0)
            self._ranked = RankedShares(self._ordered, [*accumulate(self._ordered, initial=0)], [*squares])
        return self._ranked

    def _count(self, node: SystemNode, sign: int) -> None:
        parts = node.parts
        for place, part in enumerate(parts):
            signed, row = sign * part, self._products[place]
            self._totals[place] += signed
            self._allocatable[place] += sign * in_parts(min(node.allocatable[place], _AMOUNT_MAX))
            for other in range(place + 1):
                row[other] += signed * parts[other]
        self._figures = self._ranked = None

    def _computed(self) -> SystemFigures:
        number, totals, products = self.number, self._totals, self._products
        places = range(len(totals))
        if not number:
            zeros = (0.0,) * len(totals)
            return SystemFigures(zeros, (zeros,) * len(totals), zeros)
        # Each quotient of whole numbers is rounded once, so that nothing cancels out where the shares are alike.
        whole, of_products = number * PARTS, number * number * PARTS * PARTS
        lower = [
            [(number * products[row][column] - totals[row] * totals[column]) / of_products for column in range(row + 1)]
            for row in places
        ]
        return SystemFigures(
            tuple(total / whole for total in totals),
            tuple(tuple(lower[max(row, column)][min(row, column)] for column in places) for row in places),
            tuple(total / whole for total in self._allocatable),
        )


class NodeSystem(NamedTuple):
    """System as a score reads it in one call."""

    sums: SystemSums
    inside: Sequence[bool]
    """Whether it belongs to the system, for each node of the call. The columns have those that do, in this order."""
    requested: Sequence[Sequence[float]]
    """Amounts that are requested: a column for each resource..."""
    allocatable: Sequence[Sequence[float]]
    shares: Sequence[Sequence[float]]
    """...and shares of what is allocatable that are requested, from 0 to 1."""
    prime_parts: Sequence[int]
    """Shares of the first resource in parts."""


def system_node(resources: Sequence[str], requested: Amounts, allocatable: Amounts) -> SystemNode | None:
    """Return a node of a system by its amounts; None if it does not have all of the resources."""
    has = tuple([allocatable.get(name, 0.0) for name in resources])
    if min(has) * PARTS < 1.0:  # none of one of them, or less than can be counted
        return None
    used = tuple([requested.get(name, 0.0) for name in resources])
    shares = tuple([min(max(one / other, 0.0), 1.0) for one, other in zip(used, has, strict=True)])
    return SystemNode(used, has, shares, tuple(map(in_parts, shares)))


def in_parts(number: float) -> int:
    """Return a number in whole parts; it is below 1e30."""
    return int(number * PARTS)
