"""Strategy `loadRisk`: prefers nodes whose load is low and varies little. The worst known resource decides."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from fairlead.api.params import Listed, Params
from fairlead.strategies.builtin.measured_load import (
    RESOURCES_MAX,
    Lag,
    MeasuredResource,
    RateResource,
    compile_load,
    compile_low_and_steady,
    lag_s_of,
    lowest_of,
    reads_of,
)
from fairlead.strategies.contract import NodeFacts, NodeScorer, PodFacts, Score, Strategy, Use


class LoadRisk(Params):
    """Prefer nodes whose load, with the pod, is low and varies little.

    Means and deviations are measured, by the entries of data that the rule names. Pods that were placed too recently to
    be measured count with what they request. The load is a share of what is allocatable.
    """

    resources: Annotated[Listed[MeasuredResource], Field(min_length=1, max_length=RESOURCES_MAX)]
    """Resources; the one with the highest risk decides."""
    margin: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    """Factor for the deviation. Defaults to 1."""
    sensitivity: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    """Root of the deviation that counts: above 1, small deviations count more; 0 ignores them. Defaults to 1."""
    lag: Lag | None = None
    """Time until usage shows in the mean. Pods placed less than this before the time of the mean count with what they
    request. For a mean over hours give half of its window. Defaults to 60s. Entries of data whose values have no time
    cannot have a lag."""


def compile_load_risk(params: LoadRisk) -> Score:
    """Compile the rule; everything that does not depend on the pod is done here."""
    lag_s = lag_s_of(params.lag)
    ratings = [(one.name, _rating(params, one, lag_s)) for one in params.resources]

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        return lowest_of((name, rate_for(pod.request.get(name, 0.0))) for name, rate_for in ratings)

    return Score(reads=reads_of(params.resources, lag_s=lag_s), for_pod=for_pod)


def _rating(params: LoadRisk, resource: MeasuredResource, lag_s: int) -> Callable[[float], RateResource]:
    # No root is of degree 0: deviations then do not count.
    margin = params.margin if params.sensitivity else 0.0
    exponent = 1.0 / params.sensitivity if params.sensitivity else 1.0
    return compile_low_and_steady(compile_load(resource, lag_s=lag_s), margin=margin, exponent=exponent)


STRATEGY = Strategy(name="loadRisk", score=Use(LoadRisk, compile_load_risk))
