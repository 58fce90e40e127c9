"""Objectives of a system for `pigeon`: what each would be if the pod were placed on one node or another.

Less is better. A pod adds the same to the shares of all nodes of one size, so most of an objective is computed once for
each size; what is left to do for a node is little. What a pod without requests changes is exactly nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, sqrt
from operator import le, mul, sub
from typing import Final, NamedTuple, TypeAlias, TypeVar

from fairlead.learned.demands import Moments
from fairlead.strategies.node_system import PARTS, SystemNode, SystemSums, added_to, in_parts

FULL: Final = 1.0 + 1e-9
"""Share of a resource up to which a pod fits."""
NO_FIT: Final = inf
"""Value of a node on which the pod does not fit."""
_USUAL: Final = 2
_T = TypeVar("_T")
NodeSize: TypeAlias = tuple[float, ...]


class BySize(dict[NodeSize, _T]):
    """Figures by the size of nodes, computed when the first node of a size comes."""

    def __init__(
        self, of_size: Callable[[SystemSums, Sequence[float]], _T], sums: SystemSums, request: Sequence[float]
    ) -> None:
        """`of_size` takes the sums of a system, and what the pod adds to the shares of a node of the size."""
        super().__init__()
        self._of_size, self._sums, self._request = of_size, sums, request

    def __missing__(self, size: NodeSize) -> _T:
        found = self[size] = self._of_size(self._sums, added_to(size, self._request))
        return found


class Deviations(NamedTuple):
    """Figures of nodes of one size, for a value that is a standard deviation divided by a number."""

    limits: tuple[float, ...]
    """Shares up to which the pod fits."""
    variance: float
    """Variance if the node's shares were the mean ones..."""
    slopes: tuple[float, ...]
    """...and what is added to it for what each share is above its mean."""
    divisor: float

    @classmethod
    def balance(cls, sums: SystemSums, added: Sequence[float]) -> "Deviations":
        """Return those of the deviation of the shares of the first resource."""
        number, variance, more = sums.number, sums.figures.covariance[0][0], added[0]
        slopes = (2.0 * more / number, *(0.0 for _ in added[1:]))
        return cls(_limits(added), variance + (1.0 - 1.0 / number) * more * more / number, slopes, 1.0)

    @classmethod
    def variety(cls, sums: SystemSums, added: Sequence[float]) -> "Deviations":
        """Return those of the gamma of the system.

        With e what the pod adds to a share x, and u the mean share with the pod, the covariance grows by
        ((x - mean) eᵀ + e (x - mean)ᵀ + (1 - 1/n) e eᵀ) / n, of which gamma needs only uᵀ·uᵀ.
        """
        number, (mean, covariance, _) = sums.number, sums.figures
        means = [of + more / number for of, more in zip(mean, added, strict=True)]
        square, moved = sum(map(mul, means, means)), sum(map(mul, means, added))
        if not square > 0.0:
            return cls(_limits(added), 0.0, (0.0,) * len(added), 1.0)
        variance = sum([one * sum(map(mul, row, means)) for one, row in zip(means, covariance, strict=True)])
        slopes = tuple([2.0 * moved * one / number for one in means])
        return cls(_limits(added), variance + (1.0 - 1.0 / number) * moved * moved / number, slopes, square)


def deviations(
    nodes: Sequence[SystemNode], sizes: Mapping[NodeSize, Deviations], mean: Sequence[float], goal: float
) -> list[float]:
    """Return how far the value with the pod on each node is from a goal."""
    if len(mean) == _USUAL:  # in a third of the time
        mean0, mean1 = mean
        return [
            abs((sqrt(variance) if variance > 0.0 else 0.0) / divisor - goal)
            if share0 <= limit0 and share1 <= limit1
            else NO_FIT
            for _, _, (share0, share1), _, size in nodes
            for (limit0, limit1), of_mean, (slope0, slope1), divisor in (sizes[size],)
            for variance in (of_mean + slope0 * (share0 - mean0) + slope1 * (share1 - mean1),)
        ]
    return [
        abs(sqrt(max(of_mean + sum(map(mul, slopes, map(sub, shares, mean))), 0.0)) / divisor - goal)
        if all(map(le, shares, limits))
        else NO_FIT
        for _, _, shares, _, size in nodes
        for limits, of_mean, slopes, divisor in (sizes[size],)
    ]


class Scattering(NamedTuple):
    """Figures of nodes of one size, for how far the nodes are from being full or empty.

    With T for n times the mean, a share x below the mean adds ((T - nx) / T)², and one above it ((nx - T) / (n - T))².
    The sums of these squares follow from those of the shares up to the mean. Shares are in whole parts, and the sums
    whole numbers, so that next to nothing is left of nodes that are next to full.
    """

    limits: tuple[float, ...]
    """Shares up to which the pod fits."""
    low: int
    """Share up to which a node is below the mean, with the pod and without it..."""
    high: int
    """...and above which it is above the mean."""
    below: "_Squares"
    """Squares with the pod on a node below the mean..."""
    above: "_Squares"
    """...on one above it..."""
    across: Callable[[int], float]
    """...and the value with the pod on one that it moves from one side to the other."""

    @classmethod
    def of(cls, sums: SystemSums, added: Sequence[float]) -> "Scattering":
        """Return those of the first resource."""
        number, ordered, limits = sums.number, sums.ordered, _limits(added)
        more = in_parts(added[0]) if min(limits) >= 0.0 else 0
        total, moved = sums.prime_total + more, number * more
        if not 0 < total < number * PARTS:  # all are empty, or all are full
            same = _Squares(1, 0, 1.0, 0.0)
            return cls(limits, 0, 0, same, same, lambda _: 0.0)
        found = [
            total * (part.number * total - 2 * number * part.total) + number * number * part.squares
            for part in (ordered.below(-(-total // number)), ordered.below(2 * PARTS))
        ]
        below, above = found[0], found[1] - found[0]
        of_below, of_above = float(total) ** 2 * number, float(number * PARTS - total) ** 2 * number
        # The pod changes the square of a share x by (T - nx - moved)² - (T - nx)².
        change, slope = moved * moved - 2 * moved * total, 2 * moved * number

        def across(share: int) -> float:
            before_it = total - number * share
            with_it = before_it - moved
            lost, won = before_it * before_it, with_it * with_it
            parts = (below - lost, above + won) if before_it > 0 else (below + won, above - lost)
            return 1.0 - sqrt(parts[0] / of_below + parts[1] / of_above)

        low, high = sorted(((total - 1) // number, (total - moved - 1) // number))
        return cls(
            limits,
            low,
            high,
            _Squares(below + change, slope, of_below, above / of_above),
            _Squares(above + change, slope, of_above, below / of_below),
            across,
        )


class _Squares(NamedTuple):
    """Squares on that side of the mean on which a node is, with the pod on it: a constant, and a slope by its share."""

    constant: int
    slope: int
    divisor: float
    others: float
    """Part of the value that those on the other side make."""


def scatterings(nodes: Iterable[SystemNode], sizes: Mapping[NodeSize, Scattering]) -> list[float]:
    """Return how far the nodes are from being full or empty with the pod on each node, by the first resource."""
    return [
        NO_FIT
        if not all(map(le, shares, limits))
        else across(share)
        if low < share <= high
        else 1.0 - sqrt((constant + slope * share) / divisor + others)
        for _, _, shares, (share, *_), size in nodes
        for limits, low, high, below, above, across in (sizes[size],)
        for constant, slope, divisor, others in (below if share <= low else above,)
    ]


def _limits(added: Sequence[float]) -> tuple[float, ...]:
    return tuple([FULL - more for more in added])


def variety_of_demands(demands: Moments, capacity: Sequence[float]) -> float:
    """Return the gamma of requests, each in shares of the mean capacity."""
    mean = [one / whole for one, whole in zip(demands.mean, capacity, strict=True)]
    covariance = [
        [
            demands.second[row][column] / (capacity[row] * capacity[column]) - mean[row] * mean[column]
            for column in range(len(mean))
        ]
        for row in range(len(mean))
    ]
    for place in range(len(mean)):
        covariance[place][place] = max(covariance[place][place], 0.0)
    return variety(mean, covariance)


def variety(mean: Sequence[float], covariance: Sequence[Sequence[float]]) -> float:
    """Return gamma = √(μᵀΣμ) / μᵀμ; 0 if the mean is 0."""
    square = sum(one * one for one in mean)
    form = sum(
        covariance[row][column] * mean[row] * mean[column] for row in range(len(mean)) for column in range(len(mean))
    )
    return sqrt(max(form, 0.0)) / square if square > 0.0 else 0.0
