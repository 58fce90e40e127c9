"""Evictions for a pod that finds no room: the pods that its scheduler would choose, and those that policies protect.

The choice is kube-scheduler's, as far as requests and host ports decide it: all pods of lower priority go, and those
with the highest priority that still fit come back. It knows no PodDisruptionBudget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.preemption import Dropped, dropped, protects
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import PlacedPod
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.results import NodeResult, PodResult
from fairlead.simulation.scheduler_filters import SchedulerFilter, filters_for
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Raw

NODES_MAX: Final = 100
"""Greatest number of nodes on which evictions are looked at."""
_BY_EVICTION: Final = ("Insufficient ", "Too many pods", "node(s) didn't have free ports")


@dataclass(frozen=True, slots=True)
class Protected:
    """A pod that a rule protects from eviction for another pod."""

    pod: str
    """Namespace and name."""
    policy: str
    rule: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """Evictions on one node."""

    node: str
    lower: int
    """Number of pods of lower priority."""
    victims: Sequence[str]
    """Pods that the scheduler would evict, by namespace and name; none if that makes no room."""
    protected: Sequence[Protected]
    """Pods of lower priority that policies protect, whether they would be evicted or not."""
    given_up: Dropped | None
    """Why the policies give the node up."""

    @property
    def is_possible(self) -> bool:
        """Return whether the evictions make room and no policy is against them."""
        return bool(self.victims) and self.given_up is None


def evictions(simulation: Simulation, raw: Raw, judged: PodResult) -> list[Eviction]:
    """Return the evictions on nodes that lack room for a pod of `Simulation.judge`.

    None if a node is left for it, or if it is a member of a group that has not started: such groups evict no pods.
    """
    spec = judged.pod.pod.spec
    if judged.left or judged.unanswered or spec.nodeName or str(spec.preemptionPolicy) == "Never":
        return []
    if judged.group is not None and judged.group.evicts_nothing:
        return []
    with simulation.view_without_placement(raw) as (view, _):
        return [*_evictions(simulation, view, judged)]


def _evictions(simulation: Simulation, pod: PodView, judged: PodResult) -> Iterator[Eviction]:
    asked = [one for one in filters_for(pod) if one.of_pods]
    lacking = [node for node in judged.nodes if _lacks_room(node)]
    for node in lacking[:NODES_MAX]:
        view = simulation.mirror.nodes.view_of(node.name)
        lower = [] if view is None else [one for one in view.pods if one.spec.priority < pod.priority]
        if view is None or not lower:
            continue
        victims = _victims(simulation, asked, view, lower)
        uids = [one.uid for one in victims]
        tally = RuleErrorTally()
        given_up = None
        if victims:
            given_up = dropped(
                pod,
                judged.matched,
                simulation.mirror.nodes,
                node.name,
                uids,
                requests=simulation.mirror.requests_of_placed,
                now=simulation.now,
                tally=tally,
            )
        protected = [*_protected(simulation, pod, judged, view, lower)]
        yield Eviction(node.name, len(lower), [*map(_named, victims)], protected, given_up)


def _lacks_room(node: NodeResult) -> bool:
    return bool(node.unfit) and all(one.what.startswith(_BY_EVICTION) for one in node.unfit)


def _victims(
    simulation: Simulation, reviewed: Sequence[SchedulerFilter], view: NodeView, lower: Sequence[PlacedPod]
) -> list[PlacedPod]:
    """Return the pods that go; none if even without all of lower priority there is no room."""

    def has_room(gone: Sequence[PlacedPod]) -> bool:
        left = view.without([one.uid for one in gone], [simulation.mirror.requests_of_placed(one) for one in gone])
        return not any(one.judge(left) for one in reviewed)

    gone = sorted(lower, key=lambda one: -one.spec.priority)
    if not has_room(gone):
        return []
    for one in [*gone]:
        if has_room(without := [other for other in gone if other is not one]):
            gone = without
    return gone


def _protected(
    simulation: Simulation, pod: PodView, judged: PodResult, view: NodeView, lower: Sequence[PlacedPod]
) -> Iterator[Protected]:
    for each in judged.matched:
        policy = each.policy
        seen = with_data(view, policy.data, simulation.now, simulation.mirror.nodes) if policy.protections else view
        for rule in policy.protections:
            for one in lower:
                if each.undecided is not None or protects(
                    rule, policy.name, pod, seen.with_victim(one), simulation.now, RuleErrorTally()
                ):
                    yield Protected(_named(one), policy.name, rule.name)


def _named(pod: PlacedPod) -> str:
    return f"{pod.namespace}/{pod.name}"
