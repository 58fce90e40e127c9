"""Pods that the page shows, each judged by the rules in force, and as if all that is in shadow were enforced. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from fairlead.cli.inputs.created_pods import published_by
from fairlead.cli.inputs.live_policies import unknown_rules
from fairlead.cli.inputs.policy_versions import KnownInputs, version_of
from fairlead.cli.inputs.simulated_cluster import SimulatedCluster
from fairlead.cli.inputs.simulation_inputs import Pod
from fairlead.cli.reports.explain_data import ExplainContext
from fairlead.cli.reports.explained_pods import ExplainedPods
from fairlead.cli.reports.pending_text import WaitVerdict, pending_groups
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import rules_in_shadow
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation

WAITING_MAX: Final = 5_000
"""Greatest number of pods without a node that are judged; most of them share their results with others."""
PAIRS_MAX: Final = 1_000_000
"""Greatest number of pairs of a placed pod and a node that are judged: nothing is shared among placed pods."""
PLACED_MIN: Final = 20
WITHOUT_NODE: Final[frozenset[WaitVerdict]] = frozenset({"NoAnswer", "NotScheduled", "Group", "NoNode"})
"""Reasons to wait that leave a pod without any node."""
WorkloadKey = tuple[str, str]
"""Namespace, and kind and name of the controller, or name of the pod."""


@dataclass(frozen=True, slots=True)
class ShownPod:
    """One pod with its results."""

    pod: Pod
    context: ExplainContext
    workload: WorkloadKey
    waits_because: WaitVerdict | None = None
    """None for a pod that has a node."""
    why: str = ""

    @property
    def name(self) -> str:
        """Namespace and name."""
        return self.context.name

    @property
    def judged(self) -> PodResult:
        """Result by the rules in force."""
        return self.context.judged

    @property
    def as_enforced(self) -> PodResult | None:
        """Result as if all that is in shadow were enforced; None if no policy with rules in shadow applies."""
        return None if self.context.shadow is None else self.context.shadow.enforced

    @property
    def is_stuck(self) -> bool:
        """Return whether it waits and no node is left for it."""
        return self.waits_because in WITHOUT_NODE


@dataclass(frozen=True, slots=True)
class ShownPods:
    """The pods of the schedulers that policies name, as many as are judged."""

    explained: ExplainedPods
    pods: Sequence[ShownPod]
    simulation: Simulation
    """The simulation of the rules in force."""
    left_out: int = 0
    """Number of pods that are not judged."""
    owners: Mapping[WorkloadKey, str] = field(default_factory=dict)

    @property
    def cluster(self) -> SimulatedCluster:
        """The cluster that was read."""
        return self.explained.cluster

    @property
    def policies(self) -> Sequence[CompiledPolicy]:
        """All policies, also those of which a rule is not evaluated."""
        return self.cluster.versions[0].policies.policies

    @property
    def waiting(self) -> list[ShownPod]:
        """The pods without a node."""
        return [each for each in self.pods if each.waits_because is not None]


class _Owner(msgspec.Struct, gc=False):
    kind: str | None = None
    name: str | None = None
    controller: bool | None = None


class _Metadata(msgspec.Struct, gc=False):
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - as in the API


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata


_pod: Final = msgspec.json.Decoder(_Pod)


def show_pods(explained: ExplainedPods) -> ShownPods:
    """Judge the pods of a cluster, all that wait and as many placed ones as take seconds."""
    cluster = explained.cluster
    waiting = [pod for pod in cluster.pods if pod.waits]
    placed = [pod for pod in cluster.pods if not pod.waits]
    most = max(PLACED_MIN, PAIRS_MAX // max(1, len(cluster.snapshot.nodes)))
    chosen = [*waiting[:WAITING_MAX], *one_of_each_first(placed, most)]
    shown = [_shown(explained, pod) for pod in chosen]
    return ShownPods(explained, shown, _in_force(explained), len(cluster.pods) - len(chosen))


def _in_force(explained: ExplainedPods) -> Simulation:
    answered = (name for name, state in explained.schedulers.items() if not state.is_unanswered or state.waits)
    name = next(answered, None)
    return explained.cluster.simulation() if name is None else explained.simulation_of(name)


def _shown(explained: ExplainedPods, pod: Pod) -> ShownPod:
    context, workload = explained.context(pod), workload_of(pod)
    if not pod.waits:
        return ShownPod(pod, context, workload)
    [group] = pending_groups([context])
    return ShownPod(pod, context, workload, group.verdict, group.why)


def workload_of(pod: Pod) -> WorkloadKey:
    """Return the workload of a pod; the pod itself if nothing controls it."""
    owners = _pod.decode(pod.raw).metadata.ownerReferences or ()
    owner = next((each for each in owners if each.controller and each.kind and each.name), None)
    return (pod.key[0], f"{owner.kind} {owner.name}" if owner is not None else pod.key[1])


def one_of_each_first(pods: Sequence[Pod], most: int) -> Sequence[Pod]:
    """Return at most so many pods: one of each workload, then others."""
    if len(pods) <= most:
        return pods
    first: dict[WorkloadKey, Pod] = {}
    rest = [pod for pod in pods if first.setdefault(workload_of(pod), pod) is not pod]
    return [*first.values(), *rest][:most]


def with_policies(cluster: SimulatedCluster, policies: Iterable[CompiledPolicy]) -> SimulatedCluster:
    """Return the cluster with these policies applied to it, without the rules that read what is not known."""
    every = policy_set(policies)
    names = {each.name for each in every.policies}
    unknown = unknown_rules(each for each in cluster.live_policies if each.name not in names)
    published = published_by(
        every.policies, cluster.live_policies, knows_namespaces="namespace" not in cluster.live.unread
    )
    known = KnownInputs(cluster.live.unread_kinds, cluster.data.readings, cluster.live.given_learned)
    new = version_of(every, known, unknown, published)
    return replace(cluster, versions=[new], concerned=every.policies)


def with_rules_in_shadow(policies: Iterable[CompiledPolicy]) -> list[CompiledPolicy]:
    """Return the policies that have rules in shadow, and are not turned off."""
    return [each for each in policies if each.evaluated and each.shadow is not None]


def filters_in_shadow(policies: PolicySet | Sequence[CompiledPolicy]) -> frozenset[tuple[str, str]]:
    """Return the filters in shadow, each by its policy and its name."""
    every = policies.policies if isinstance(policies, PolicySet) else policies
    return frozenset(_filters(every))


def _filters(policies: Iterable[CompiledPolicy]) -> Iterator[tuple[str, str]]:
    for policy in with_rules_in_shadow(policies):
        yield from ((policy.name, name) for kind, name in rules_in_shadow(policy) if kind == "Filter")
