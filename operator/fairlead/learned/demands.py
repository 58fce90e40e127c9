"""Demands of the newest pods: a set, so that what is heard late, twice or by two leaders changes nothing."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import mul
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

Arrival: TypeAlias = tuple[int, str]
"""Creation of a pod in seconds since 1970, and its UID."""
Demands: TypeAlias = Mapping[Arrival, tuple[float, ...]]
"""Requests of pods, one for each resource of a rule, as they were when the pods were first seen."""
AMOUNT_MAX: Final = 1e30
NO_DEMANDS: Final[Demands] = MappingProxyType({})


class Moments(NamedTuple):
    """Mean and second moments of demands, exact over all of them."""

    number: int
    mean: tuple[float, ...]
    second: tuple[tuple[float, ...], ...]


def amount(requested: float) -> float:
    """Return a request as it is kept, whatever a pod asks for: finite, and not negative."""
    return min(max(requested, 0.0), AMOUNT_MAX) if math.isfinite(requested) else 0.0


def newest(demands: Demands, samples: int) -> Demands:
    """Return the demands of the newest pods."""
    if len(demands) <= samples:
        return demands
    return {one: demands[one] for one in islice(sorted(demands, reverse=True), samples)}


def unite(published: Demands, heard: Demands, samples: int) -> Demands:
    """Return the demands of the newest pods of both; those of a pod that is in both are the published ones."""
    return newest({**heard, **published}, samples)


def moments(demands: Demands, floors: Sequence[float]) -> Moments:
    """Return the moments of demands, each at least its floor."""
    number, places = len(demands), range(len(floors))
    if not number:
        return Moments(0, (0.0,) * len(floors), ((0.0,) * len(floors),) * len(floors))
    columns: list[Sequence[float]] = []
    columns += [*zip(*demands.values(), strict=True)][: len(floors)]
    for place, floor in enumerate(floors):
        if min(columns[place]) < floor:
            columns[place] = [max(one, floor) for one in columns[place]]
    mean = tuple([math.fsum(column) / number for column in columns])
    lower = [
        [math.fsum(map(mul, columns[first], columns[last])) / number for last in range(first + 1)] for first in places
    ]
    second = tuple([tuple([lower[max(first, last)][min(first, last)] for last in places]) for first in places])
    return Moments(number, mean, second)
