"""Strategy `targetLoad`: fills nodes up to a target, then avoids them.

The usage to come is predicted from the limits and requests of containers, of the pod and of those that the measurement
does not contain yet. All is a share of the node's capacity, which is what its agents measure.
"""

from typing import Annotated

from pydantic import Field

from fairlead.api.params import DataName, Params
from fairlead.api.values import QualifiedKey, Quantity
from fairlead.strategies.builtin.comparison import at_most
from fairlead.strategies.builtin.measured_load import FREE, NOT_ON_NODE, RATIOS, Lag, Measure, lag_s_of, note_values
from fairlead.strategies.contract import (
    NodeFacts,
    NodeScorer,
    PodFacts,
    Predicted,
    Reads,
    Score,
    Strategy,
    Trace,
    Unknown,
    Use,
    Value,
)


class TargetLoad(Params):
    """Prefer nodes whose load, with the pod, comes close to a target.

    A node at the target gets 100 points. An idle node gets as many points as the target is in percent, and above the
    target points fall from that number to 0. The load is measured, by the entry of data that the rule names. Pods that
    were placed too recently to be measured count with their predicted usage. The load is a share of the node's
    capacity.
    """

    value: DataName
    """Entry of data with the usage of the node."""
    measure: Measure = "UsedRatio"
    """Unit of the entry. Used, Free: cores, bytes or pieces. UsedRatio, FreeRatio: a share of the node's capacity, from
    0 to 1. Defaults to UsedRatio."""
    resource: QualifiedKey = "cpu"
    """Name of the resource. Defaults to cpu."""
    target_percent: Annotated[int, Field(ge=1, le=99)] = 40
    """Load at which nodes are best, in percent of the capacity. Defaults to 40."""
    multiplier_percent: Annotated[int, Field(ge=1, le=1000)] = 150
    """Usage predicted for a container without a limit, in percent of its request. One with a limit is predicted to use
    all of it. Defaults to 150."""
    default_request: Quantity = Quantity("1")
    """Usage predicted for a container with neither limit nor request, such as 500m or 256Mi. Defaults to 1."""
    lag: Lag | None = None
    """Time until usage shows in the value. Pods placed less than this before the time of the value count with their
    predicted usage. For a mean over hours give half of its window. Defaults to 60s. An entry of data whose values have
    no time cannot have a lag."""


def compile_target_load(params: TargetLoad) -> Score:
    """Compile the rule; everything that does not depend on the pod is done here."""
    resource, entry, lag_s = params.resource, str(params.value), lag_s_of(params.lag)
    is_ratio, is_free = params.measure in RATIOS, params.measure in FREE
    multiplier, default_request = params.multiplier_percent / 100.0, params.default_request.amount
    target = float(params.target_percent)

    def usage(predicted: Predicted) -> float:
        return predicted.limits + predicted.requests * multiplier + predicted.unsaid * default_request

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        expected = usage(pod.predicted(resource))

        def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
            capacity = node.capacity.get(resource, 0.0)
            value = node.data(entry)
            if trace is not None:
                trace.note(**note_values(capacity=capacity, value=value))
            if not capacity > 0.0:
                return NOT_ON_NODE
            if isinstance(value, Unknown):
                return value
            used = value * capacity if is_ratio else value
            if is_free:
                used = capacity - used
            if not used > 0.0:
                used = 0.0
            unmeasured = usage(node.unmeasured(entry, lag_s).predicted(resource))
            percent = 100.0 * (used + expected + unmeasured) / capacity
            if at_most(percent, target):
                points = target + (100.0 - target) * min(percent, target) / target
            else:
                points = target * (100.0 - min(percent, 100.0)) / (100.0 - target)
            if trace is not None:
                trace.note(
                    used=used, predicted=expected, unmeasured=unmeasured, percent=percent, target=target, points=points
                )
            return points

        return one

    reads = Reads(
        limit=frozenset({resource}),
        capacity=frozenset({resource}),
        data=frozenset({entry}),
        unmeasured=frozenset({(entry, lag_s)}),
    )
    return Score(reads=reads, for_pod=for_pod)


STRATEGY = Strategy(name="targetLoad", score=Use(TargetLoad, compile_target_load))
