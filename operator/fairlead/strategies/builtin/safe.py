"""Strategy `safe`: keeps low the probability that the load of a node exceeds a limit.

The load of each resource, with the pod and with those that the measurement does not contain yet, is taken to have a
beta distribution with the measured mean and deviation. The worst known resource decides.
"""

from collections.abc import Callable
from math import sqrt
from typing import Annotated, Final, Literal

from pydantic import Field

from fairlead.api.params import DataName, Listed, Params
from fairlead.strategies.builtin.comparison import at_most
from fairlead.strategies.builtin.incomplete_beta import incomplete_beta
from fairlead.strategies.builtin.measured_load import (
    LEAST_DEVIATION,
    NOT_ON_NODE,
    RESOURCES_MAX,
    Lag,
    MeasuredResource,
    Notes,
    RateResource,
    ReadLoad,
    compile_load,
    compile_low_and_steady,
    fit_beta,
    lag_s_of,
    lowest_of,
    reads_of,
    shape_notes,
)
from fairlead.strategies.contract import (
    PASS,
    Decide,
    Filter,
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Reject,
    Score,
    Strategy,
    Trace,
    Unknown,
    Use,
    Verdict,
    graver,
)

OVERLOAD_RISK: Final = "overload risk on {name}"


class ForecastResource(MeasuredResource):
    """Resource, with the entries of data that measure and forecast it."""

    forecast: DataName | None = None
    """Entry of data with a forecast of the mean, in its unit. Nodes without a forecast are judged by their mean."""


class SafeFilter(Params):
    """Reject nodes whose load, with the pod, is too likely to exceed a limit.

    Means and deviations are measured, by the entries of data that the rule names. Pods that were placed too recently to
    be measured count with what they request. The load is a share of what is allocatable.
    """

    resources: Annotated[Listed[ForecastResource], Field(min_length=1, max_length=RESOURCES_MAX)]
    """Resources; the one most likely to exceed the limit decides."""
    limit_percent: Annotated[int, Field(ge=1, le=100)] = 90
    """Limit of the load, in percent of what is allocatable. Defaults to 90."""
    tolerance_percent: Annotated[int, Field(ge=1, le=100)] = 30
    """Highest accepted probability that the load exceeds the limit, in percent. Defaults to 30."""
    forecast_percent: Annotated[int, Field(ge=0, le=100)] = 20
    """Weight of a forecast against the mean, in percent. Defaults to 20."""
    lag: Lag | None = None
    """Time until usage shows in the mean. Pods placed less than this before the time of the mean count with what they
    request. For a mean over hours give half of its window. Defaults to 60s. Entries of data whose values have no time
    cannot have a lag."""


class SafeScore(SafeFilter):
    """Prefer nodes whose load, with the pod, is unlikely to exceed a limit.

    Means and deviations are measured, by the entries of data that the rule names. Pods that were placed too recently to
    be measured count with what they request. The load is a share of what is allocatable.
    """

    objective: Literal["Overload", "Balance"] = "Overload"
    """Overload: the lower the probability that the limit is exceeded the better, and 0 points from the tolerance on.
    Balance: the lower mean and deviation are the better, whatever the limit. Defaults to Overload."""


_RateFor = Callable[[float], RateResource]
"""Function that takes what a pod requests of a resource."""


def compile_safe_filter(params: SafeFilter) -> Filter:
    """Compile the rule; everything that does not depend on the pod is done here."""
    tolerance = params.tolerance_percent / 100.0
    rejections = {one.name: Reject(OVERLOAD_RISK.format(name=one.name)) for one in params.resources}
    risks = [(one.name, _risk(params, one, is_rated=False)) for one in params.resources]

    def for_pod(pod: PodFacts) -> Decide:
        parts = [(name, risk_for(pod.request.get(name, 0.0)), rejections[name]) for name, risk_for in risks]

        def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Verdict:
            refused: Reject | None = None
            otherwise: Verdict = NOT_ON_NODE
            for name, risk_of, rejection in parts:
                notes: Notes | None = None if trace is None else {}
                risk = risk_of(node, notes)
                if isinstance(risk, Unknown):
                    if isinstance(otherwise, Unknown):
                        otherwise = risk if otherwise is NOT_ON_NODE else graver(otherwise, risk)
                elif at_most(risk, tolerance):
                    otherwise = PASS
                elif trace is None:
                    return rejection
                else:
                    refused = refused or rejection
                if trace is not None and notes is not None:
                    trace.item(name, **notes, tolerance=tolerance)
            return refused or otherwise

        return one

    return Filter(reads=_reads(params), for_pod=for_pod, reasons=tuple(one.reason for one in rejections.values()))


def compile_safe_score(params: SafeScore) -> Score:
    """Compile the rule; everything that does not depend on the pod is done here."""
    points = _balance if params.objective == "Balance" else _overload
    ratings = [(one.name, points(params, one)) for one in params.resources]

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        return lowest_of((name, rate_for(pod.request.get(name, 0.0))) for name, rate_for in ratings)

    return Score(reads=_reads(params), for_pod=for_pod)


def _risk(params: SafeFilter, resource: ForecastResource, *, is_rated: bool) -> _RateFor:
    """Return a function for the probability that the load exceeds the limit.

    Without notes it returns 1 for a probability that is certainly above the tolerance and, if risks are not rated but
    only compared with the tolerance, 0 for one that is certainly below. Cantelli's inequality bounds the probability
    for every distribution, and is much cheaper than the exact one.
    """
    limit, above = params.limit_percent / 100.0, (100 - params.limit_percent) / 100.0
    tolerance = params.tolerance_percent / 100.0
    # Away from the tolerance by more than the exact probability can be wrong.
    surely_below, surely_above = 0.999 * tolerance, 1.001 * tolerance
    load_for = _load(params, resource)

    def for_request(request: float) -> RateResource:
        read = load_for(request)

        def rate(node: NodeFacts, notes: Notes | None) -> float | Unknown:
            load = read(node, notes)
            if isinstance(load, Unknown):
                return load
            mu, sigma = load
            if notes is None and sigma >= LEAST_DEVIATION:
                variance, distance = sigma * sigma, limit - mu
                tail = variance / (variance + distance * distance)
                if distance < 0.0:
                    if 1.0 - tail > surely_above:
                        return 1.0
                elif tail < surely_below and not is_rated:
                    return 0.0
            shape = fit_beta(mu, sigma)
            if shape is None:
                risk = 0.0 if at_most(mu, limit) else 1.0
            else:
                # The mirrored distribution up to what is above the limit, which is exact for small risks.
                alpha, beta = shape
                risk = incomplete_beta(above, beta, alpha)
            if notes is not None:
                notes |= {"limit": limit, **shape_notes(shape), "risk": risk}
            return risk

        return rate

    return for_request


def _overload(params: SafeScore, resource: ForecastResource) -> _RateFor:
    tolerance = params.tolerance_percent / 100.0
    risk_for = _risk(params, resource, is_rated=True)

    def for_request(request: float) -> RateResource:
        risk_of = risk_for(request)

        def rate(node: NodeFacts, notes: Notes | None) -> float | Unknown:
            risk = risk_of(node, notes)
            if isinstance(risk, Unknown):
                return risk
            phi = risk / tolerance if risk < tolerance else 1.0
            points = 100.0 * (1.0 - sqrt(phi))
            if notes is not None:
                notes |= {"tolerance": tolerance, "phi": phi, "points": points}
            return points

        return rate

    return for_request


def _balance(params: SafeScore, resource: ForecastResource) -> _RateFor:
    return compile_low_and_steady(_load(params, resource), margin=1.0, exponent=0.5, least_deviation=LEAST_DEVIATION)


def _load(params: SafeFilter, resource: ForecastResource) -> Callable[[float], ReadLoad]:
    return compile_load(
        resource,
        forecast=resource.forecast if params.forecast_percent else None,
        forecast_weight=params.forecast_percent / 100.0,
        lag_s=lag_s_of(params.lag),
    )


def _reads(params: SafeFilter) -> Reads:
    forecasts = [one.forecast for one in params.resources if one.forecast is not None and params.forecast_percent]
    return reads_of(params.resources, forecasts=forecasts, lag_s=lag_s_of(params.lag))


STRATEGY = Strategy(name="safe", filter=Use(SafeFilter, compile_safe_filter), score=Use(SafeScore, compile_safe_score))
