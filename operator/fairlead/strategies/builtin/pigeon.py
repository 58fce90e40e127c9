"""Strategy `pigeon`: prefers nodes on which the pod moves a whole system of nodes towards an objective."""

from collections.abc import Sequence
from itertools import compress
from math import isfinite
from typing import Annotated, Final, Literal

from pydantic import Field

from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import QualifiedKey, Quantity
from fairlead.strategies.builtin.system_objectives import (
    NO_FIT,
    BySize,
    Deviations,
    Scattering,
    deviations,
    scatterings,
    variety_of_demands,
)
from fairlead.strategies.contract import (
    ComparedNodes,
    DemandsRead,
    NodeFacts,
    NodeSystem,
    PodFacts,
    Reads,
    Score,
    Strategy,
    SystemRead,
    Trace,
    Unknown,
    Use,
    Value,
)

NO_NODE: Final = Unknown("the system", "has no node", expected=True)
OUTSIDE: Final = Unknown("node", "is not in the system", expected=True)
_USUAL: Final = ("cpu", "memory")
_SAMPLES: Final = 100
_SAMPLES_LEAST: Final = 10
_ALIKE: Final = 1e-9
"""Values that differ by less get the same score."""
_LOWEST: Final = 10.0

Aim = Literal["Adaptive", "Balance", "Consolidate"]


class ResourceFloor(Params):
    """The least request of a resource that counts."""

    name: QualifiedKey
    """Name of the resource, one of resources."""
    quantity: Quantity
    """Least request that counts, such as 10m: a pod that requests less, or none, counts as if it requested this."""


class Pigeon(Params):
    """Prefer nodes on which the pod moves a whole system of nodes towards an objective.

    The nodes of the system match its selector, are ready, are not cordoned and have all of the resources. Other nodes
    get the mean score of the nodes of the system.
    """

    objective: Aim = "Adaptive"
    """Balance makes all nodes equally full, Consolidate makes each full or empty. Adaptive learns how varied the
    requests of pods are, and keeps the nodes as varied: it spreads equal pods, and packs a mixture of small and large
    ones, so that large ones still find room. Defaults to Adaptive."""
    resources: Annotated[Listed[QualifiedKey], Field(min_length=1, max_length=5)] = _USUAL
    """Resources that count. Balance and Consolidate go by the first. Defaults to cpu and memory."""
    system: LabelSelector | None = None
    """Selector of the nodes of the system. If not set, all nodes."""
    floors: Annotated[Listed[ResourceFloor], Field(max_length=5)] = ()
    """Least requests that count, each of a resource that is listed. If not set, pods count with what they request."""
    samples: Annotated[int, Field(ge=2, le=4000)] = _SAMPLES
    """Number of the newest pods from whose requests Adaptive learns. Defaults to 100."""
    min_samples: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of pods below which Adaptive adds nothing, at most samples. Defaults to 10, or samples if that is less."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require that floors are of listed resources, and that enough pods can be known."""
        usual = ", ".join(f"'{name}'" for name in _USUAL)
        return (
            FieldCheck(
                rule="!has(self.floors) || self.floors.all(one,"
                f" has(self.resources) ? one.name in self.resources : one.name in [{usual}])",
                holds=lambda self: not self.unlisted_floors(),
                message="a floor is of a resource that counts: add its name to resources, or leave the floor out",
                field="floors",
                below=lambda self: (self.unlisted_floors()[0], "name"),
            ),
            FieldCheck(
                rule=f"!has(self.minSamples) || self.minSamples <= (has(self.samples) ? self.samples : {_SAMPLES})",
                holds=lambda self: self.least_samples <= self.samples,
                message=f"minSamples is at most samples, of which no more are known; samples is {_SAMPLES} when absent",
                field="minSamples",
            ),
        )

    def unlisted_floors(self) -> list[int]:
        """Return the positions of floors whose resource is not listed."""
        return [at for at, one in enumerate(self.floors) if one.name not in self.resources]

    @property
    def least_samples(self) -> int:
        """Number of pods that have to be known."""
        return min(_SAMPLES_LEAST, self.samples) if self.min_samples is None else self.min_samples


def _score(params: Pigeon) -> Score:
    objective, resources = params.objective, tuple(params.resources)
    amounts = {one.name: one.quantity.amount for one in params.floors}
    floors = tuple(amounts.get(name, 0.0) for name in resources)
    is_adaptive, least = objective == "Adaptive", params.least_samples
    of_system, of_pods = SystemRead(resources, params.system), DemandsRead(resources, params.samples, floors, least)
    too_few = Unknown("the rule", f"knows fewer than {least} {'pod' if least == 1 else 'pods'}", expected=True)

    def over(pod: PodFacts, nodes: ComparedNodes[NodeFacts], _now: int, trace: Trace | None = None) -> Sequence[Value]:
        system = nodes.system(of_system)
        sums = system.sums
        request = [max(pod.request.get(name, 0.0), floor) for name, floor in zip(resources, floors, strict=True)]
        goal = 0.0
        if trace is not None:
            trace.note(objective=objective, resources=resources, request=request)
            trace.note(nodes=sums.number, mean=sums.figures.mean)
        if not sums.number:
            return [NO_NODE] * len(nodes)
        if is_adaptive:
            demands = nodes.demands(of_pods)
            goal = variety_of_demands(demands, sums.figures.capacity)
            if trace is not None:
                trace.note(pods=demands.number, minSamples=least, meanRequest=demands.mean)
                trace.note(meanCapacity=sums.figures.capacity, gammaDemand=goal)
            if demands.number < least:
                return [too_few] * len(nodes)
        values = _values(objective, system, request, goal)
        if trace is not None:
            gammas = _values(objective, system, request, 0.0) if is_adaptive else ()
            _note(trace, [node.name for node in compress(nodes, system.inside)], system, request, values, gammas)
        scores = _scaled(values)
        if len(scores) == len(nodes):
            return scores
        of_members = iter(scores)
        return [next(of_members) if is_inside else OUTSIDE for is_inside in system.inside]

    return Score(
        reads=Reads(
            request=frozenset(resources),
            system=frozenset({of_system}),
            demands=frozenset({of_pods}) if is_adaptive else frozenset(),
        ),
        over=over,
        scale="objective",
    )


def _values(objective: Aim, system: NodeSystem, request: Sequence[float], goal: float) -> list[float]:
    """Return the values of the system with the pod on each of its nodes, less is better."""
    sums, nodes = system.sums, system.members
    if objective == "Consolidate":
        return scatterings(nodes, BySize(Scattering.of, sums, request))
    of_size = Deviations.balance if objective == "Balance" else Deviations.variety
    return deviations(nodes, BySize(of_size, sums, request), sums.figures.mean, goal)


def _scaled(values: Sequence[float]) -> list[float]:
    """Return scores: the least value gets 100, the greatest the lowest score; 0 where the pod does not fit."""
    worst, best = max(values, default=0.0), min(values, default=0.0)
    if worst == NO_FIT:
        worst = max(filter(isfinite, values), default=best)
    span = worst - best
    if not span >= _ALIKE:
        return [0.0 if value == NO_FIT else 100.0 for value in values]
    return [0.0 if value == NO_FIT else _LOWEST + (100.0 - _LOWEST) * (worst - value) / span for value in values]


def _note(
    trace: Trace,
    names: Sequence[str],
    system: NodeSystem,
    request: Sequence[float],
    values: Sequence[float],
    gammas: Sequence[float],
) -> None:
    of_system = iter(gammas)
    for name, node, value in zip(names, system.members, values, strict=True):
        gamma, fits = next(of_system, None), value != NO_FIT
        trace.item(
            name,
            requested=node.requested,
            allocatable=node.allocatable,
            shares=node.shares,
            sharesWithPod=tuple(
                (used + more) / whole
                for used, more, whole in zip(node.requested, request, node.allocatable, strict=True)
            ),
            fits=fits,
            gammaSystem=gamma if fits else None,
            v=value if fits else None,
        )


STRATEGY = Strategy(name="pigeon", score=Use(Pigeon, _score))
