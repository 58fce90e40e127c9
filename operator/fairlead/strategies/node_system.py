"""System of nodes: sums over many nodes, by which a score weighs what a pod on one of them does to all together.

Shares are summed in whole parts, and sums of whole numbers are exact, in whatever order they came about. So sums that
follow the nodes for months drift nowhere: they equal, to the last bit, those that are computed from nothing.
"""

from collections.abc import Sequence
from operator import add, sub, truediv
from typing import Final, NamedTuple

from fairlead.strategies.facts import Amounts
from fairlead.strategies.ordered_shares import OrderedShares

PARTS: Final = 1 << 60
"""Parts of 1 in which shares and amounts are summed."""
_PARTS: Final = float(PARTS)
_AMOUNT_MAX: Final = 1e30


class SystemNode(NamedTuple):
    """Node of a system, with a number for each resource of the system."""

    requested: tuple[float, ...]
    allocatable: tuple[float, ...]
    shares: tuple[float, ...]
    """Shares of what is allocatable that are requested, from 0 to 1..."""
    parts: tuple[int, ...]
    """...in whole parts."""
    size: tuple[float, ...]
    """The same for nodes to whose shares a pod adds the same: what is allocatable, and where shares end at 0 or 1 what
    is beyond."""


class SystemFigures(NamedTuple):
    """Figures of the nodes of a system, with a number for each resource; zeros if it has no node."""

    mean: tuple[float, ...]
    """Mean share that is requested."""
    covariance: tuple[tuple[float, ...], ...]
    """Population covariance of these shares."""
    capacity: tuple[float, ...]
    """Mean amount that is allocatable."""


class SystemSums:
    """Sums over the nodes of a system."""

    __slots__ = ("_allocatable", "_capacity", "_figures", "_products", "_totals", "number", "ordered")

    def __init__(self, resources: int) -> None:
        """`resources` is their number, at least 1."""
        self.number = 0
        """Number of nodes."""
        self.ordered: Final = OrderedShares()
        """Shares of the first resource, in parts."""
        self._totals: Final = [0] * resources
        self._products: Final = [[0] * (place + 1) for place in range(resources)]
        self._allocatable: Final = [0] * resources
        self._capacity: tuple[float, ...] | None = None
        self._figures: SystemFigures | None = None

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
        self.number += 1
        self._add_allocatable(node, 1)
        self.ordered.add(node.parts[0])
        self._add_parts((0,) * len(node.parts), node.parts)

    def remove(self, node: SystemNode) -> None:
        """Remove a node that was added."""
        self.number -= 1
        self._add_allocatable(node, -1)
        self.ordered.remove(node.parts[0])
        self._add_parts(node.parts, (0,) * len(node.parts))

    def replace(self, before: SystemNode, after: SystemNode) -> None:
        """Replace a node that was added."""
        if before.allocatable != after.allocatable:
            self._add_allocatable(before, -1)
            self._add_allocatable(after, 1)
        if before.parts[0] != after.parts[0]:
            self.ordered.remove(before.parts[0])
            self.ordered.add(after.parts[0])
        self._add_parts(before.parts, after.parts)

    def _add_allocatable(self, node: SystemNode, sign: int) -> None:
        for place, amount in enumerate(node.allocatable):
            self._allocatable[place] += sign * in_parts(min(amount, _AMOUNT_MAX))
        self._capacity = None

    def _add_parts(self, before: Sequence[int], after: Sequence[int]) -> None:
        totals = self._totals
        for place, (row, old, new) in enumerate(zip(self._products, before, after, strict=True)):
            totals[place] += new - old
            for other in range(place + 1):
                row[other] += new * after[other] - old * before[other]
        self._figures = None

    def _computed(self) -> SystemFigures:
        number, totals, products = self.number, self._totals, self._products
        if not number:
            zeros = (0.0,) * len(totals)
            return SystemFigures(zeros, (zeros,) * len(totals), zeros)
        # Each quotient of whole numbers is rounded once, so that nothing cancels out where the shares are alike.
        whole = number * PARTS
        of_products = whole * whole
        rows: list[list[float]] = []
        for row, total in zip(products, totals, strict=True):
            lower = [
                (number * product - total * other) / of_products for product, other in zip(row, totals, strict=False)
            ]
            for above, one in zip(rows, lower, strict=False):
                above.append(one)
            rows.append(lower)
        if self._capacity is None:
            self._capacity = tuple([total / whole for total in self._allocatable])
        mean = tuple([total / whole for total in totals])
        return SystemFigures(mean, tuple(map(tuple, rows)), self._capacity)


class NodeSystem(NamedTuple):
    """System as a score reads it in one call."""

    sums: SystemSums
    inside: Sequence[bool]
    """Membership of each node of the call: true if it belongs to the system."""
    members: Sequence[SystemNode]
    """Nodes of the call that do, in this order. The columns below have a list for each resource."""

    @property
    def requested(self) -> list[list[float]]:
        """Return the amounts that are requested."""
        return self._columns([one.requested for one in self.members])

    @property
    def allocatable(self) -> list[list[float]]:
        """Return the amounts that are allocatable."""
        return self._columns([one.allocatable for one in self.members])

    @property
    def shares(self) -> list[list[float]]:
        """Return the shares of what is allocatable that are requested, from 0 to 1."""
        return self._columns([one.shares for one in self.members])

    def _columns(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        return [[row[place] for row in rows] for place in range(len(self.sums.figures.mean))]


def system_node(resources: Sequence[str], requested: Amounts, allocatable: Amounts) -> SystemNode | None:
    """Return a node of a system by its amounts; None if it does not have all of the resources."""
    has = tuple([allocatable.get(name, 0.0) for name in resources])
    if min(has) * PARTS < 1.0:  # none of one of them, or less than can be counted
        return None
    used = tuple([requested.get(name, 0.0) for name in resources])
    size, shares = has, tuple(map(truediv, used, has))
    if min(shares) < 0.0 or max(shares) > 1.0:
        exact, shares = shares, tuple([min(max(one, 0.0), 1.0) for one in shares])
        size = (*has, *map(sub, exact, shares))
    return SystemNode(used, has, shares, tuple([int(one * _PARTS) for one in shares]), size)


def added_to(size: Sequence[float], request: Sequence[float]) -> list[float]:
    """Return what a pod adds to the shares of a node of a size, also if that makes them more than 1."""
    beyond = size[len(request) :]
    more = [*map(truediv, request, size)]
    return [*map(add, more, beyond)] if beyond else more


def in_parts(number: float) -> int:
    """Return a number in whole parts; it is below 1e30."""
    return int(number * _PARTS)
