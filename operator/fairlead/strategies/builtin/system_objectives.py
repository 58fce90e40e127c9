"""Objectives of a system for `pigeon`: what each would be if the pod were placed on one node or another.

Columns have an entry for each candidate, a node of the system on which the pod fits: its share of a resource before the
pod came, and with it. Less is better. What a pod without requests changes is exactly nothing.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import sqrt
from typing import Final, TypeAlias

from fairlead.learned.demands import Moments
from fairlead.strategies.node_system import PARTS, SystemSums

NodeColumn: TypeAlias = Sequence[float]
_USUAL: Final = 2


def imbalances(sums: SystemSums, before: NodeColumn, after: NodeColumn) -> list[float]:
    """Return the standard deviation of the shares of the first resource for each candidate."""
    number, mean, variance = sums.number, sums.figures.mean[0], sums.figures.covariance[0][0]
    kept = 1.0 - 1.0 / number
    return [
        sqrt(max(variance + (new - old) * (2.0 * (old - mean) + kept * (new - old)) / number, 0.0))
        for old, new in zip(before, after, strict=True)
    ]


def scatterings(sums: SystemSums, before: Sequence[int], after: NodeColumn) -> list[float]:
    """Return how far the nodes are from being full or empty, by the first resource, for each candidate.

    `before` is in parts. With T for n times the mean, a share x below the mean adds ((T - nx) / T)², and one above it
    ((nx - T) / (n - T))². The sums of these squares follow from those of the shares up to the mean.
    """
    number, total_before, (ordered, prefix, squares) = sums.number, sums.prime_total, sums.ranked
    full, twice, of_number = number * PARTS, 2 * number, number * number
    all_sum, all_squares = twice * prefix[-1], of_number * squares[-1]
    found = list[float]()
    for old, share in zip(before, after, strict=True):
        new = int(share * PARTS)
        total = total_before + new - old
        if not 0 < total < full:  # all are empty, or all are full
            found.append(0.0)
            continue
        rank = bisect_left(ordered, -(-total // number))
        below = total * (rank * total - twice * prefix[rank]) + of_number * squares[rank]
        above = total * (number * total - all_sum) + all_squares - below
        # So far with the share that the node has, instead of the one with the pod.
        before_it, with_it = total - number * old, total - number * new
        if before_it > 0:
            below -= before_it * before_it
        else:
            above -= before_it * before_it
        if with_it > 0:
            below += with_it * with_it
        else:
            above += with_it * with_it
        # Whole numbers up to here, so that next to nothing is left of nodes that are next to full.
        mean, rest = float(total), float(full - total)
        found.append(1.0 - sqrt((below / (mean * mean) + above / (rest * rest)) / number))
    return found


def varieties(sums: SystemSums, before: Sequence[NodeColumn], after: Sequence[NodeColumn]) -> list[float]:
    """Return the gamma of the system for each candidate, with a column for each resource.

    With e what the pod adds to a share x, and u the mean share with the pod, the covariance grows by
    ((x - mean) eᵀ + e (x - mean)ᵀ + (1 - 1/n) e eᵀ) / n, of which gamma needs only uᵀ·uᵀ.
    """
    if len(before) == _USUAL:
        return _varieties_of_two(sums, before, after)
    number, (mean, covariance, _) = sums.number, sums.figures
    size, kept = len(before[0]), 1.0 - 1.0 / number
    squares, forms, moves, pulls = ([0.0] * size for _ in range(4))
    means = list[NodeColumn]()
    for place, (of, olds, news) in enumerate(zip(mean, before, after, strict=True)):
        added = [new - old for old, new in zip(olds, news, strict=True)]
        column = [of + each / number for each in added]
        means.append(column)
        squares = [sum_ + one * one for sum_, one in zip(squares, column, strict=True)]
        moves = [sum_ + one * each for sum_, one, each in zip(moves, column, added, strict=True)]
        pulls = [
            sum_ + one * (2.0 * (old - of) + kept * each)
            for sum_, one, old, each in zip(pulls, column, olds, added, strict=True)
        ]
        for other in range(place + 1):
            weight = covariance[place][other] * (1.0 if other == place else 2.0)
            forms = [sum_ + weight * one * two for sum_, one, two in zip(forms, column, means[other], strict=True)]
    return [
        sqrt(max(form + move * pull / number, 0.0)) / square if square > 0.0 else 0.0
        for form, move, pull, square in zip(forms, moves, pulls, squares, strict=True)
    ]


def _varieties_of_two(sums: SystemSums, before: Sequence[NodeColumn], after: Sequence[NodeColumn]) -> list[float]:
    """Return the same for two resources, which is the usual number, in half the time."""
    number, ((mean0, mean1), ((cov00, cov01), (_, cov11)), _) = sums.number, sums.figures
    kept, found = 1.0 - 1.0 / number, list[float]()
    for old0, old1, new0, new1 in zip(*before, *after, strict=True):
        added0, added1 = new0 - old0, new1 - old1
        u0, u1 = mean0 + added0 / number, mean1 + added1 / number
        square = u0 * u0 + u1 * u1
        move = u0 * added0 + u1 * added1
        pull = u0 * (2.0 * (old0 - mean0) + kept * added0) + u1 * (2.0 * (old1 - mean1) + kept * added1)
        form = cov00 * u0 * u0 + 2.0 * cov01 * u0 * u1 + cov11 * u1 * u1 + move * pull / number
        found.append(sqrt(max(form, 0.0)) / square if square > 0.0 else 0.0)
    return found


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
