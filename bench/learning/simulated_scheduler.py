"""Scheduling cycles of kube-scheduler on simulated nodes, one pod at a time: pure.

The formulas are those of kube-scheduler 1.37, as far as they tell nodes apart that have no taints, zones or volumes;
scores of policies are computed by the product's evaluator. A placement is seen at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic_ns
from typing import Any, Final, Literal, NamedTuple

from bench.cluster import NEVER, SCHEDULER
from bench.systems import policy_of
from fairlead.cel.values.structs import from_json
from fairlead.learned.demands import Demands
from fairlead.learned.pairs import Pairs
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_facts import table_of, tables_of
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import NodeChange
from fairlead.time_units import SECOND_NS

GIB: Final = 1 << 30
TOP: Final = 100
"""Highest score of a plugin."""
POINT: Final = 10
"""Worth of a point of an extender."""
ScoringStrategy = Literal["LeastAllocated", "MostAllocated"]
_CHANGED: Final = NodeChange(requested=frozenset({"cpu", "memory"}))


class Amounts(NamedTuple):
    """Amounts of cpu in thousandths of a core, and of memory in bytes, as the scheduler counts them."""

    cpu: int
    memory: int

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sums."""
        return Amounts(self.cpu + other.cpu, self.memory + other.memory)

    def minus(self, other: "Amounts") -> "Amounts":
        """Return the differences."""
        return Amounts(self.cpu - other.cpu, self.memory - other.memory)

    def fits_into(self, free: "Amounts") -> bool:
        """Return whether there is as much of both."""
        return self.cpu <= free.cpu and self.memory <= free.memory

    @property
    def in_units(self) -> dict[str, float]:
        """Return cores and bytes, as rules see them."""
        return {"cpu": self.cpu / 1000, "memory": float(self.memory)}


class SimulatedPod(NamedTuple):
    """Pod to place."""

    uid: str
    request: Amounts
    app: str = "web"


def least_allocated(requested: Amounts, capacity: Amounts) -> int:
    """Return the score of NodeResourcesFit with LeastAllocated; `requested` includes the pod."""
    return sum((whole - used) * TOP // whole for used, whole in zip(requested, capacity, strict=True)) // 2


def most_allocated(requested: Amounts, capacity: Amounts) -> int:
    """Return the score of NodeResourcesFit with MostAllocated; `requested` includes the pod."""
    return sum(used * TOP // whole for used, whole in zip(requested, capacity, strict=True)) // 2


def balanced_allocation(before: Amounts, requested: Amounts, capacity: Amounts) -> int:
    """Return the score of NodeResourcesBalancedAllocation, by how the balance changes with the pod."""
    change = _balance(requested, capacity) - _balance(before, capacity)
    return TOP // 2 + int((TOP // 2 + change) / 2)  # Go divides towards zero


def _balance(requested: Amounts, capacity: Amounts) -> int:
    cpu, memory = (min(1.0, used / whole) for used, whole in zip(requested, capacity, strict=True))
    return int((1 - abs((cpu - memory) / 2)) * TOP)


_FIT: Final[Mapping[ScoringStrategy, Callable[[Amounts, Amounts], int]]] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
}


@dataclass(slots=True, eq=False)
class SimulatedScheduler:
    """Nodes that are equal but for their names, and the scheduler that places pods on them."""

    names: Sequence[str]
    capacity: Amounts
    fit: ScoringStrategy = "LeastAllocated"
    scores: Sequence[Mapping[str, Any]] = ()
    """Score rules of a policy."""
    seed: int = 0
    requested: dict[str, Amounts] = field(init=False)
    _chance: Random = field(init=False)
    _nodes: Nodes = field(default_factory=Nodes)
    _structs: dict[str, Any] = field(init=False)
    _policy: CompiledPolicy | None = field(init=False, default=None)
    _evaluator: Evaluator | None = field(init=False, default=None)
    _requests: LearnedRequests = field(default_factory=LearnedRequests)

    def __post_init__(self) -> None:
        self._chance = Random(self.seed)  # noqa: S311  a simulation
        self.requested = dict.fromkeys(self.names, Amounts(0, 0))
        self._structs = {name: from_json("Node", _node(name)) for name in self.names}
        for name in self.names:
            self._nodes.put(self._view(name))
        if self.scores:
            self._policy = policy = policy_of(self.scores)
            self._nodes.learned.keep(tables_of(policy))
            self._requests.keep({table_of(policy, name, read): read for name, read in policy.demanding})
            self._nodes.learned_demands = self._requests
            self._evaluator = Evaluator(policy_set([policy]), self._nodes)

    def place(self, pod: SimulatedPod, now_s: float) -> str | None:
        """Return the node that a pod gets, which it takes; None if it fits on no node."""
        names = self.fitting(pod.request)
        if not names:
            return None
        totals = [
            own + POINT * more
            for own, more in zip(self.own(pod, names), self.of_policy(pod, names, now_s), strict=True)
        ]
        best = max(totals)
        name = self._chance.choice([one for one, total in zip(names, totals, strict=True) if total == best])
        self._take(name, self.requested[name].plus(pod.request))
        return name

    def remove(self, pod: SimulatedPod, name: str) -> None:
        """Take a pod from its node."""
        self._take(name, self.requested[name].minus(pod.request))

    def fitting(self, request: Amounts) -> list[str]:
        """Return the nodes on which so much fits."""
        return [name for name in self.names if request.fits_into(self.capacity.minus(self.requested[name]))]

    def own(self, pod: SimulatedPod, names: Sequence[str]) -> list[int]:
        """Return the sums of the scheduler's own scores."""
        fit, capacity, found = _FIT[self.fit], self.capacity, list[int]()
        for name in names:
            before = self.requested[name]
            after = before.plus(pod.request)
            found.append(fit(after, capacity) + balanced_allocation(before, after, capacity))
        return found

    def of_policy(self, pod: SimulatedPod, names: Sequence[str], now_s: float) -> list[int]:
        """Return the points that Fairlead sends."""
        return on_the_wire(self.exact(pod, names, now_s))

    def exact(self, pod: SimulatedPod, names: Sequence[str], now_s: float) -> list[float]:
        """Return the scores of the policy with their weights, before they are rounded."""
        if self._evaluator is None:
            return [0.0] * len(names)
        metadata = {"name": pod.uid, "namespace": "default", "uid": pod.uid, "labels": {"app": pod.app}}
        view = PodView(from_json("Pod", {"metadata": metadata, "spec": {}}), request=pod.request.in_units)
        now = int(now_s * SECOND_NS)
        matched = self._evaluator.matching(view, SCHEDULER, now, clock=monotonic_ns, deadline_ns=NEVER)
        return self._evaluator.score(view, matched, names, now=now, clock=monotonic_ns, deadline_ns=NEVER)

    def publish_demands(self, demands: Demands) -> None:
        """Let the rules of the policy have learned these requests."""
        for table in self._requests.rules:
            self._requests.put(table, demands)

    def publish_outcomes(self, number: int, pairs: Pairs) -> None:
        """Let the rules of the policy have learned the outcomes of a shard."""
        for table in self._nodes.learned.tables:
            self._nodes.put_learned(table, number, pairs)

    def _take(self, name: str, requested: Amounts) -> None:
        self.requested[name] = requested
        self._nodes.put(self._view(name), _CHANGED)

    def _view(self, name: str) -> NodeView:
        return NodeView(
            self._structs[name], allocatable=self.capacity.in_units, requested=self.requested[name].in_units
        )


def _node(name: str) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": ready}
