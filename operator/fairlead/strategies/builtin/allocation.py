"""Strategy `allocation`: packs, spreads or balances pods by what they request of named resources."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.values import QualifiedKey
from fairlead.strategies.builtin.comparison import at_most
from fairlead.strategies.contract import (
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Score,
    Strategy,
    Trace,
    Unknown,
    Use,
    Value,
)

NO_RESOURCE = Unknown("node", "has none of the resources")
TOO_FEW = Unknown("node", "has fewer than two of the resources")
_BALANCED_MIN = 2

Objective = Literal["Pack", "Spread", "Balance"]


class AllocatedResource(Params):
    """A resource whose allocation counts."""

    name: QualifiedKey
    """Name of the resource, such as cpu, memory or nvidia.com/gpu."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Weight of the resource among the others. Defaults to 1."""


class Allocation(Params):
    """Prefer nodes by the share of their resources that pods request, the pod to be placed included.

    Resources that a node does not have do not count there. A node that has none of them gets the mean score of the
    other nodes.
    """

    objective: Objective
    """Pack prefers nodes that are allocated most, so that others stay free, Spread those that are allocated least,
    Balance those whose resources are allocated in equal shares."""
    resources: Annotated[Listed[AllocatedResource], Field(min_length=1, max_length=16)] = (
        AllocatedResource(name="cpu"),
        AllocatedResource(name="memory"),
    )
    """Resources that count. Defaults to cpu and memory."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require two resources for a balance between them."""
        return (
            FieldCheck(
                rule="self.objective != 'Balance' || !has(self.resources) || self.resources.size() >= 2",
                holds=lambda self: self.objective != "Balance" or len(self.resources) >= _BALANCED_MIN,
                message="Balance needs at least two resources: with one, every node is balanced",
                field="resources",
            ),
        )


class _Share(NamedTuple):
    weight: int
    part: float


def _score(params: Allocation) -> Score:
    objective, resources = params.objective, tuple(params.resources)
    names = frozenset(one.name for one in resources)

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        wanted = [(one.name, one.weight, pod.request.get(one.name, 0.0)) for one in resources]

        def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
            shares = list[_Share]()
            for name, weight, request in wanted:
                allocatable = node.allocatable.get(name)
                requested = node.requested.get(name, 0.0)
                part = None
                if allocatable is not None and not at_most(allocatable, 0.0):
                    part = min(max((requested + request) / allocatable, 0.0), 1.0)
                    shares.append(_Share(weight, part))
                if trace is not None:
                    amounts = {"requested": requested, "request": request, "allocatable": allocatable}
                    trace.item(name, **amounts, share=part, weight=weight)
            if not shares:
                return NO_RESOURCE
            return _rated(shares, objective, trace)

        return one

    return Score(reads=Reads(request=names, requested=names, allocatable=names), for_pod=for_pod)


def _rated(shares: Sequence[_Share], objective: Objective, trace: Trace | None) -> float | Unknown:
    total = sum(weight for weight, _ in shares)
    mean = sum(weight * part for weight, part in shares) / total
    if trace is not None:
        trace.note(objective=objective, share=mean)
    if objective != "Balance":
        return 100.0 * (mean if objective == "Pack" else 1.0 - mean)
    if len(shares) < _BALANCED_MIN:
        return TOO_FEW
    deviation = math.sqrt(sum(weight * (part - mean) ** 2 for weight, part in shares) / total)
    if trace is not None:
        trace.note(deviation=deviation)
    # Numbers from 0 to 1 deviate by at most 0.5 from their mean.
    return max(100.0 * (1.0 - 2.0 * deviation), 0.0)


STRATEGY = Strategy(name="allocation", score=Use(Allocation, _score))
