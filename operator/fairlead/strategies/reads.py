"""Facts that a rule reads, by which the engine knows what to recompute and which pods are equivalent.

A path leads to a field, with the key of a map or the type of a condition as its last step:
`("metadata", "labels", "example.org/gpu")`, `("status", "conditions", "Ready")`. A path includes everything below it,
so a rule that iterates over all labels reads `("metadata", "labels")`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from fairlead.api.selectors import LabelSelector
from fairlead.strategies.facts import ControllerRef, PodFacts, PodOnNode, Unknown

Path = tuple[str, ...]
LABELS: Path = ("metadata", "labels")
ANNOTATIONS: Path = ("metadata", "annotations")
CONDITIONS: Path = ("status", "conditions")

EVERY = "*"
"""Wildcard for all names; no resource and no entry of `data` has this name."""


class PodOwner(Struct, frozen=True):
    """Namespace and controller of a pod: what rules select pods by. Pods that are gone leave no more than this."""

    namespace: str
    controller: ControllerRef | None = None


def owner_of(pod: PodOnNode) -> PodOwner:
    """Return the owner of a pod."""
    return PodOwner(pod.namespace, pod.controller)


class PodsRead(Struct, frozen=True):
    """Selection of the pods on the node that a rule reads; fields that are not set match all pods."""

    namespace: str | None = None
    controller: ControllerRef | None = None

    def covers(self, pod: PodOwner) -> bool:
        """Return whether the selection includes pods of an owner."""
        return self.namespace in (None, pod.namespace) and self.controller in (None, pod.controller)


TYPE_MAX: Final = 128
_MEANING: Final = 16  # hex digits
_LONG_TYPE: Final = Unknown("the pod's type", f"has more than {TYPE_MAX} characters")
TypeOf = Callable[[PodFacts], str | Unknown]
"""Returns the type of a pod, "" if it has none, or why it cannot be told."""


def usual_type(pod: PodFacts) -> str:
    """Return a type by namespace, so that no tenant's pods decide where those of another one go.

    After it comes the first of the labels podtype, app and name, else the controller of the pod.
    """
    for label in ("podtype", "app", "name"):
        if label in pod.labels:
            return f"{pod.namespace}/{pod.labels[label]}" if pod.labels[label] else ""
    return "" if pod.controller is None else f"{pod.namespace}/{pod.controller.kind}/{pod.controller.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesRead:
    """Outcomes of pods that a rule learns, by the type of a pod and its node."""

    type_of: TypeOf = usual_type
    type_text: str = ""
    """Expression of `type_of`; empty for the usual type."""
    settle_s: int = 600
    """Seconds after which a pod that runs without a failure is a success."""
    half_life_s: int = 21_600
    """Seconds after which an outcome weighs half."""
    prior: float = 1.0
    """Value of a pair without outcomes."""
    types: int = 100
    """Number of types that are kept."""

    @property
    def meaning(self) -> str:
        """Return a hash of what gives the numbers of a state their meaning; a state with another one is not used."""
        text = json.dumps(["outcomes", self.type_text, self.settle_s, self.half_life_s])
        return hashlib.sha256(text.encode()).hexdigest()[:_MEANING]

    def pod_type(self, pod: PodFacts) -> str | Unknown:
        """Return the type of a pod, or why it cannot be told."""
        kind = self.type_of(pod)
        return _LONG_TYPE if isinstance(kind, str) and len(kind) > TYPE_MAX else kind


UnmeasuredRead = tuple[str, int]
"""Name of an entry of `data`, and the lag in seconds before its time from which placements are not in it yet."""


class SystemRead(Struct, frozen=True):
    """System that a rule reads: the nodes that are selected, Ready and not cordoned, and have all of some resources.

    A node that has no condition Ready, as in a file written by hand, counts as ready.
    """

    resources: tuple[str, ...]
    """At least one. Of the first, the prime one, the shares of the nodes are kept in order, too."""
    selector: LabelSelector | None = None
    """Selector of the nodes; None: all."""

    @property
    def of_node(self) -> "Reads":
        """Return the facts of a node that decide whether it belongs to the system, and with which amounts."""
        keys = set[str]()
        if self.selector is not None:
            keys = {*self.selector.match_labels, *(one.key for one in self.selector.match_expressions)}
        amounts = frozenset(self.resources)
        return Reads(
            node=frozenset({(*CONDITIONS, "Ready"), ("spec", "unschedulable"), *((*LABELS, key) for key in keys)}),
            requested=amounts,
            allocatable=amounts,
        )


@dataclass(frozen=True, slots=True)
class TopologyRead:
    """Domains of nodes that a rule reads, with the members of groups and the room in them."""

    levels: tuple[str, ...]
    """Keys of labels, the widest level first."""
    group: TypeOf
    """Returns the group that a pod is in within its namespace, also of a placed pod; "" if it is in none."""

    @property
    def of_node(self) -> "Reads":
        """Return the facts of a node that decide what is kept of it."""
        every = frozenset({EVERY})
        labels = frozenset((*LABELS, key) for key in self.levels)
        return Reads(node=labels, pods=frozenset({PodsRead()}), requested=every, allocatable=every)


class DemandsRead(Struct, frozen=True):
    """Requests of pods that a rule reads: those of the newest pods that its policy matches, each at least a floor."""

    resources: tuple[str, ...]
    samples: int
    floors: tuple[float, ...]
    """One for each resource."""
    least: int = 1
    """Number of pods below which the rule adds nothing."""

    @property
    def meaning(self) -> str:
        """Return a hash of what gives the numbers of a state their meaning; a state with another one is not used."""
        return hashlib.sha256(json.dumps(["demands", self.resources]).encode()).hexdigest()[:_MEANING]


class NodeChange(Struct, frozen=True):
    """Change of one node."""

    node: frozenset[Path] = frozenset()
    """Changed fields, as specific as possible: the key of a label rather than all labels."""
    pods: tuple[PodOwner, ...] = ()
    """Owners of the pods that were added, removed or changed; of a changed one before and after."""
    requested: frozenset[str] = frozenset()
    allocatable: frozenset[str] = frozenset()
    capacity: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()
    """Entries of `data` that were measured at another time than before."""
    devices: bool = False
    """Whether grants of its devices, the pods nominated to it, or its unhealthy devices changed."""


class Reads(Struct, frozen=True):
    """Facts that a rule uses. A rule must not read any others, which the tests verify."""

    pod: frozenset[Path] = frozenset()
    namespace: frozenset[Path] = frozenset()
    """Fields of the pod's namespace."""
    request: frozenset[str] = frozenset()
    """Resources of which the rule reads how much the pod requests..."""
    limit: frozenset[str] = frozenset()
    """...its limit, or the usage that is predicted from both."""
    node: frozenset[Path] = frozenset()
    pods: frozenset[PodsRead] = frozenset()
    free: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    allocatable: frozenset[str] = frozenset()
    capacity: frozenset[str] = frozenset()
    limits: frozenset[str] = frozenset()
    """Resources of which the rule reads the limits of the pods on the node."""
    data: frozenset[str] = frozenset()
    unmeasured: frozenset[UnmeasuredRead] = frozenset()
    """Measurements of which the rule reads the pods that are not in them yet."""
    placements: frozenset[PodsRead] = frozenset()
    """Pods of which the rule reads when they were placed."""
    devices: frozenset[str] = frozenset()
    """Resources of which the rule reads who has, asks for or waits for how much of which device."""
    system: frozenset[SystemRead] = frozenset()
    """Systems that a score with `over` reads..."""
    topology: frozenset[TopologyRead] = frozenset()
    """...domains of nodes..."""
    demands: frozenset[DemandsRead] = frozenset()
    """...and learned requests."""
    learned: frozenset[OutcomesRead] = frozenset()
    """Outcomes that the rule learns, and reads; a rule may learn one kind of them."""
    now: bool = False

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(**{name: getattr(self, name) | getattr(other, name) for name in self.__struct_fields__})

    def affected_by(self, change: NodeChange) -> bool:
        """Return whether a verdict of this rule about the changed node may differ now."""
        return (
            any(overlap(read, path) for path in change.node for read in self.node)
            or any(read.covers(pod) for pod in change.pods for read in self.pods)
            or any(read.covers(pod) for pod in change.pods for read in self.placements)
            or (bool(change.pods) and bool(self.unmeasured or self.limits or self.devices))
            or (change.devices and bool(self.devices))
            or _shared(self.data, change.data)
            or any(name in change.timed for name, _ in self.unmeasured)
            or _shared(self.requested, change.requested)
            or _shared(self.allocatable, change.allocatable)
            or _shared(self.capacity, change.capacity)
            or _shared(self.free, change.requested | change.allocatable)
        )

    @property
    def of_pod(self) -> bool:
        """True if the verdict depends on the pod; if not, all pods are equivalent."""
        of_objects = self.pod or self.namespace or self.request or self.limit
        return bool(of_objects or self.devices or self.learned or self.topology)

    @property
    def of_pods(self) -> bool:
        """True if evicting pods from the node can change the verdict."""
        read = self.pods or self.free or self.requested or self.limits or self.unmeasured or self.placements
        return bool(read or self.devices or self.system or self.topology)


def union(several: Iterable[Reads]) -> Reads:
    """Return what several rules read together."""
    together = Reads()
    for one in several:
        together |= one
    return together


def overlap(first: Path, second: Path) -> bool:
    """Return whether one path includes the other."""
    return all(mine == theirs for mine, theirs in zip(first, second, strict=False))


def _shared(read: frozenset[str], changed: frozenset[str]) -> bool:
    return bool(changed) and (EVERY in read or (EVERY in changed and bool(read)) or not read.isdisjoint(changed))
