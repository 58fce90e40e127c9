"""Measured load of a node: what the strategies about load share.

Values come in the unit that the policy names. They are converted to base units before anything else is done with them,
and the load is a share of what is allocatable. What cannot be known of one resource says nothing about the others.
"""

from collections.abc import Callable, Iterable
from math import pow as power
from typing import Annotated, Final, Literal, TypeAlias

from fairlead.api.params import DataName, Params
from fairlead.api.values import Duration, QualifiedKey, within
from fairlead.strategies.contract import NodeFacts, NodeScorer, Reads, Trace, Unknown, Value, graver

Measure = Literal["Used", "Free", "UsedRatio", "FreeRatio"]
Lag = Annotated[Duration, within("0s", "24h")]

RATIOS: Final[tuple[Measure, ...]] = ("UsedRatio", "FreeRatio")
FREE: Final[tuple[Measure, ...]] = ("Free", "FreeRatio")
NOT_ON_NODE: Final = Unknown("the node", "has none of the rule's resources")
RESOURCES_MAX: Final = 4
LEAST_DEVIATION: Final = 0.0005
"""Deviations below this count as 0: a beta distribution so narrow would take hundreds of terms."""

_LAG_S: Final = 60
_LEAST_VARIANCE: Final = LEAST_DEVIATION * LEAST_DEVIATION
_MOST_OF_VARIANCE: Final = 0.99
"""No values from 0 to 1 have a variance of mean * (1 - mean) or more, but mean and deviation may come from different
times."""

Notes: TypeAlias = dict[str, object]
"""What a trace says of a resource."""
Load: TypeAlias = tuple[float, float]
"""Mean and deviation of the load, from 0 to 1."""
ReadLoad: TypeAlias = Callable[[NodeFacts, Notes | None], Load | Unknown]
"""Function that reads the load of a node with a pod, and notes all numbers if it gets something to note them in."""
RateResource: TypeAlias = Callable[[NodeFacts, Notes | None], float | Unknown]
"""Function that rates one resource of a node, for one class of pods."""


class MeasuredResource(Params):
    """Resource, with the entries of data that measure it."""

    name: QualifiedKey
    """Name of the resource, such as cpu."""
    mean: DataName
    """Entry of data with the mean of the measured values."""
    deviation: DataName | None = None
    """Entry of data with their standard deviation, in the unit of the mean. If not set, they do not vary."""
    measure: Measure = "UsedRatio"
    """Unit of the entries. Used, Free: cores, bytes or pieces, Free being what is left of what is allocatable.
    UsedRatio, FreeRatio: a share of the node's capacity, from 0 to 1. Defaults to UsedRatio."""


def lag_s_of(lag: Duration | None) -> int:
    """Return the lag in seconds. It does not matter for an entry that does not tell the time of its values."""
    return _LAG_S if lag is None else lag.seconds


def reads_of(
    resources: Iterable[MeasuredResource], *, forecasts: Iterable[DataName] = (), lag_s: int | None = None
) -> Reads:
    """Return the facts that `compile_load` needs for these resources."""
    all_ = [*resources]
    names = frozenset(one.name for one in all_)
    entries = [entry for one in all_ for entry in (one.mean, one.deviation) if entry is not None]
    return Reads(
        request=names,
        allocatable=names,
        capacity=frozenset(one.name for one in all_ if one.measure in RATIOS),
        data=frozenset(map(str, [*entries, *forecasts])),
        unmeasured=frozenset() if lag_s is None else frozenset((str(one.mean), lag_s) for one in all_),
    )


def compile_load(
    resource: MeasuredResource,
    *,
    forecast: str | None = None,
    forecast_weight: float = 0.0,
    lag_s: int | None = None,
) -> Callable[[float], ReadLoad]:
    """Return a function that takes a pod's request and reads the load of a node with that pod.

    A forecast that is missing is left out. Pods that the mean does not contain yet count with what they request; they
    do not count without a lag.
    """
    # Plain strings are looked up faster than a class of their own.
    name, mean = resource.name, str(resource.mean)
    deviation = None if resource.deviation is None else str(resource.deviation)
    forecast = None if forecast is None else str(forecast)
    is_ratio, is_free = resource.measure in RATIOS, resource.measure in FREE
    mean_weight = 1.0 - forecast_weight

    def for_request(request: float) -> ReadLoad:
        def read(node: NodeFacts, notes: Notes | None) -> Load | Unknown:
            total = node.allocatable.get(name, 0.0)
            unit = node.capacity.get(name, 0.0) if is_ratio else 1.0
            value = node.data(mean)
            spread = 0.0 if deviation is None else node.data(deviation)
            ahead = None if forecast is None else node.data(forecast)
            if notes is not None:
                notes |= note_values(allocatable=total, mean=value, deviation=spread, forecast=ahead)
                notes |= note_values(capacity=unit if is_ratio else None)
            if not total > 0.0 or not unit > 0.0:
                return NOT_ON_NODE
            if isinstance(value, Unknown):
                return value
            if isinstance(spread, Unknown):
                return spread
            whole = unit if is_ratio else total
            used = whole - value * unit if is_free else value * unit
            if ahead is not None and not isinstance(ahead, Unknown):
                later = whole - ahead * unit if is_free else ahead * unit
                used = mean_weight * used + forecast_weight * later
            if not used > 0.0:
                used = 0.0
            unmeasured = 0.0 if lag_s is None else node.unmeasured(mean, lag_s).request(name)
            mu = (used + unmeasured + request) / total
            sigma = spread * unit / total
            if mu > 1.0:
                mu = 1.0
            if sigma > 1.0:
                sigma = 1.0
            elif not sigma > 0.0:
                sigma = 0.0
            if notes is not None:
                notes |= note_values(
                    used=used, unmeasured=None if lag_s is None else unmeasured, request=request, mu=mu, sigma=sigma
                )
            return mu, sigma

        return read

    return for_request


def compile_low_and_steady(
    load_for: Callable[[float], ReadLoad], *, margin: float, exponent: float, least_deviation: float = 0.0
) -> Callable[[float], RateResource]:
    """Return a function that rates a load: 100 for none that does not vary, 0 for a full one that does.

    The deviation counts as `margin * deviation ** exponent`, and not at all below the least one.
    """

    def for_request(request: float) -> RateResource:
        read = load_for(request)

        def rate(node: NodeFacts, notes: Notes | None) -> float | Unknown:
            load = read(node, notes)
            if isinstance(load, Unknown):
                return load
            mu, sigma = load
            spread = 0.0 if sigma < least_deviation else min(margin * power(sigma, exponent), 1.0)
            points = 100.0 * (1.0 - (mu + spread) / 2.0)
            if notes is not None:
                notes |= {"spread": spread, "points": points}
            return points

        return rate

    return for_request


def lowest_of(ratings: Iterable[tuple[str, RateResource]]) -> NodeScorer[NodeFacts]:
    """Return a score that is the lowest of the known ratings of a node's resources, which it takes by name."""
    parts = tuple(ratings)

    def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
        lowest: float | None = None
        unknown = NOT_ON_NODE
        for name, rate in parts:
            notes: Notes | None = None if trace is None else {}
            found = rate(node, notes)
            if isinstance(found, Unknown):
                unknown = found if unknown is NOT_ON_NODE else graver(unknown, found)
            elif lowest is None or found < lowest:
                lowest = found
            if trace is not None and notes is not None:
                trace.item(name, **notes)
        return unknown if lowest is None else lowest

    return one


def fit_beta(mu: float, sigma: float) -> tuple[float, float] | None:
    """Return alpha and beta of the beta distribution with a mean and deviation; None if it is all at the mean."""
    spread = mu * (1.0 - mu)
    variance = sigma * sigma
    if variance > _MOST_OF_VARIANCE * spread:
        variance = _MOST_OF_VARIANCE * spread
    if variance < _LEAST_VARIANCE:
        return None
    size = spread / variance - 1.0
    return mu * size, (1.0 - mu) * size


def shape_notes(shape: tuple[float, float] | None) -> Notes:
    """Return notes of a fitted distribution."""
    return {} if shape is None else {"alpha": shape[0], "beta": shape[1]}


def note_values(**values: float | Unknown | None) -> Notes:
    """Return notes of values: why there is none instead of an unknown one, and nothing of None."""
    return {
        name: str(value) if isinstance(value, Unknown) else value for name, value in values.items() if value is not None
    }
