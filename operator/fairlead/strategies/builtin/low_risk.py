"""Strategy `lowRisk`: over-commits nodes where it is least likely to hurt.

There are two risks. Limits beyond what is allocatable may be used at once. And a measured load beyond what is requested
means that containers use more than they asked for, so that a full node has no room for that. The worst known resource
decides.
"""

from collections.abc import Callable
from math import sqrt
from typing import Annotated

from msgspec.structs import replace
from pydantic import Field

from fairlead.api.params import Listed, Params
from fairlead.strategies.builtin.comparison import at_most
from fairlead.strategies.builtin.incomplete_beta import incomplete_beta
from fairlead.strategies.builtin.measured_load import (
    RESOURCES_MAX,
    MeasuredResource,
    Notes,
    RateResource,
    compile_load,
    fit_beta,
    lowest_of,
    reads_of,
    shape_notes,
)
from fairlead.strategies.contract import NodeFacts, NodeScorer, PodFacts, Score, Strategy, Trace, Unknown, Use, Value


class CommittedResource(MeasuredResource):
    """Resource, with the entries of data that measure it."""

    limit_weight_percent: Annotated[int, Field(ge=0, le=100)] = 50
    """Weight of the risk from limits against that from the measured load, in percent. Defaults to 50."""


class LowRisk(Params):
    """Prefer nodes where over-commitment is least likely to hurt, by the limits of their pods and by their load.

    The risk from limits is the share of what pods may use beyond their requests that the node does not have, with the
    pod. The risk from load is the probability that the pods on the node use more than they request, by the mean and
    deviation that the entries of data measure. A pod without a limit counts as if its request were its limit. Pods
    without any request or limit of the resources get no points anywhere.
    """

    resources: Annotated[Listed[CommittedResource], Field(min_length=1, max_length=RESOURCES_MAX)]
    """Resources; the one with the highest risk decides."""
    windows: Annotated[int, Field(ge=1, le=60)] = 5
    """Number of samples over which each measured value is smoothed: smoothed values vary less than the load itself.
    Defaults to 5."""


def compile_low_risk(params: LowRisk) -> Score:
    """Compile the rule; everything that does not depend on the pod is done here."""
    root = sqrt(params.windows)
    ratings = [(one.name, _rating(one, root)) for one in params.resources]

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        wanted = {}
        for name, _ in ratings:
            request = pod.request.get(name, 0.0)
            wanted[name] = request, max(pod.limit.get(name, 0.0), request)
        if not any(limit for _, limit in wanted.values()):
            return _nothing
        return lowest_of((name, rate_for(*wanted[name])) for name, rate_for in ratings)

    reads = reads_of(params.resources)
    return Score(
        reads=replace(reads, limit=reads.request, requested=reads.request, limits=reads.request), for_pod=for_pod
    )


def _nothing(_node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
    if trace is not None:
        trace.note(request=0.0, limit=0.0)
    return 0.0


def _rating(resource: CommittedResource, root: float) -> Callable[[float, float], RateResource]:
    name, weight = resource.name, resource.limit_weight_percent / 100.0
    # Without the pod, and without those that the measurement does not contain.
    read = compile_load(resource)(0.0)

    def for_pod(request: float, limit: float) -> RateResource:
        def rate(node: NodeFacts, notes: Notes | None) -> float | Unknown:
            load = read(node, notes)
            if isinstance(load, Unknown):
                return load
            total = node.allocatable[name]
            requested, limits = node.requested.get(name, 0.0), node.limits.get(name, 0.0)
            unlimited = node.unlimited.get(name, 0)
            after = limits + limit
            over = 0.0 if at_most(after, total) else (after - total) / (after - min(requested + request, total))
            mu, shape = load[0], fit_beta(load[0], load[1] * root)
            within = 1.0  # without pods nothing is used that was not requested
            if requested or limits or unlimited:
                within = _probability(mu, shape, requested / total)
                # Limits bound what pods use only if every pod has one. A load beyond them is not the pods' own, and no
                # risk that they use more than they request: as in Trimaran, it is taken for impossible.
                is_bounded = not unlimited and limits < total and at_most(requested, limits)
                if is_bounded and shape is not None:
                    bounded = incomplete_beta(limits / total, *shape)
                    within = min(within / bounded, 1.0) if bounded > 0.0 else within
            risk = min(weight * over + (1.0 - weight) * (1.0 - within), 1.0)
            if notes is not None:
                notes |= {"request": request, "limit": limit, "requested": requested, "limits": limits}
                notes |= {"unlimited": unlimited, **shape_notes(shape)}
                notes |= {"riskLimit": over, "riskLoad": 1.0 - within, "risk": risk}
            return 100.0 * (1.0 - risk)

        return rate

    return for_pod


def _probability(mu: float, shape: tuple[float, float] | None, share: float) -> float:
    """Return the probability of a load up to a share."""
    if shape is None:
        return 1.0 if at_most(mu, share) else 0.0
    return incomplete_beta(share, *shape)


STRATEGY = Strategy(name="lowRisk", score=Use(LowRisk, compile_low_risk))
