"""A second computation of `pigeon`: each value from nothing, by its formula, in whole fractions up to the last root."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

Vector = Sequence[Fraction]


class Host(NamedTuple):
    """Node of the system, by resource."""

    requested: Sequence[float]
    allocatable: Sequence[float]


def scores_of(
    objective: str,
    system: Mapping[str, Host],
    names: Sequence[str],
    request: Sequence[float],
    demands: Sequence[Sequence[float]] = (),
    least: int = 0,
) -> list[float]:
    """Score of each node of a call; zeros if the rule adds nothing.

    `demands` are those of the newest pods, and `least` is the number of pods that has to be known.
    """
    if not system or (objective == "Adaptive" and len(demands) < least):
        return [0.0] * len(names)
    values: dict[str, float | None] = {name: None for name in names if name in system}
    for name in values:
        after = [
            (used + more) / whole
            for used, more, whole in zip(system[name].requested, request, system[name].allocatable, strict=True)
        ]
        if max(after) <= 1.0 + 1e-9:
            with_pod = [
                [Fraction(one) for one in after] if each == name else _shares(host) for each, host in system.items()
            ]
            values[name] = _value(objective, with_pod, system, demands)
    fitting = [value for value in values.values() if value is not None]
    span = max(fitting, default=0.0) - min(fitting, default=0.0)
    scores = {
        name: 0.0 if value is None else 100.0 if span < 1e-9 else 10.0 + 90.0 * (max(fitting) - value) / span
        for name, value in values.items()
    }
    inside = [scores[name] for name in names if name in scores]
    mean = sum(inside) / len(inside) if inside else 0.0
    return [scores.get(name, mean) for name in names]


def _shares(host: Host) -> list[Fraction]:
    return [
        Fraction(min(max(used / whole, 0.0), 1.0)) for used, whole in zip(host.requested, host.allocatable, strict=True)
    ]


def _value(
    objective: str, rows: Sequence[Vector], system: Mapping[str, Host], demands: Sequence[Sequence[float]]
) -> float:
    prime = [row[0] for row in rows]
    mean = sum(prime, Fraction(0)) / len(prime)
    if objective == "Balance":
        return sqrt(sum((one - mean) ** 2 for one in prime) / len(prime))
    if objective == "Consolidate":
        if not 0 < mean < 1:
            return 0.0
        terms = [(mean - one) / mean if one < mean else (one - mean) / (1 - mean) for one in prime]
        return 1.0 - sqrt(sum(one * one for one in terms) / len(terms))
    capacity = [
        sum((Fraction(host.allocatable[place]) for host in system.values()), Fraction(0)) / len(system)
        for place in range(len(rows[0]))
    ]
    of_pods = [[Fraction(one) / whole for one, whole in zip(row, capacity, strict=False)] for row in demands]
    return abs(gamma(rows) - gamma(of_pods))


def gamma(rows: Sequence[Vector]) -> float:
    """Return how varied vectors are: √(μᵀΣμ) / μᵀμ."""
    places = range(len(rows[0]))
    mean = [sum(row[place] for row in rows) / Fraction(len(rows)) for place in places]
    square = sum(one * one for one in mean)
    if not square:
        return 0.0
    along = [sum((row[place] - mean[place]) * mean[place] for place in places) for row in rows]
    return sqrt(sum(one * one for one in along) / len(rows)) / float(square)
