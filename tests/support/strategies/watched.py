"""Facts that fail whoever reads what was not declared, and remember what was read."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from fairlead.strategies.contract import (
    ANNOTATIONS,
    CONDITIONS,
    LABELS,
    Amounts,
    ControllerRef,
    LearnedOutcomes,
    NodeCondition,
    NodeFacts,
    Nominated,
    PodFacts,
    PodGrant,
    PodOnNode,
    PodsRead,
    Predicted,
    Reads,
    RecentPlacement,
    RequestingContainers,
    RequestingPod,
    Stamped,
    Unknown,
    UnmeasuredPods,
)
from fairlead.strategies.reads import EVERY, Path, overlap, owner_of

_METADATA = {"namespace": "namespace", "name": "name", "uid": "uid", "created": "creationTimestamp"}


class UndeclaredError(AssertionError):
    """A rule read what its `reads` do not name."""


class WatchedMap(Mapping[str, str]):
    def __init__(self, entries: Mapping[str, str], path: Path, paths: frozenset[Path], seen: list[object]) -> None:
        self._entries, self._path, self._paths, self._seen = entries, path, paths, seen

    def __getitem__(self, key: str) -> str:
        allow((*self._path, key), self._paths)
        self._seen.append(self._entries.get(key))
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        allow(self._path, self._paths)
        return iter(self._entries)

    def __len__(self) -> int:
        allow(self._path, self._paths)
        return len(self._entries)


class WatchedAmounts(Mapping[str, float]):
    """Amounts of which only declared resources may be read, one by one."""

    def __init__(self, what: str, amounts: Mapping[str, float], declared: frozenset[str], seen: list[object]) -> None:
        self._what, self._amounts, self._declared, self._seen = what, amounts, declared, seen

    def __getitem__(self, resource: str) -> float:
        if not self._declared & {resource, EVERY}:
            raise UndeclaredError(f"read of {self._what} {resource} is not declared")
        found = self._amounts[resource]
        self._seen.append(found)
        return found

    def __iter__(self) -> Iterator[str]:
        raise UndeclaredError(f"read of all {self._what} is not declared")

    def __len__(self) -> int:
        raise UndeclaredError(f"read of all {self._what} is not declared")


class WatchedPod:
    def __init__(self, pod: PodFacts, reads: Reads) -> None:
        self._pod, self._paths, self._limit, self._devices = pod, reads.pod, reads.limit, reads.devices
        self.request = WatchedAmounts("request", pod.request, reads.request, [])
        self.limit = WatchedAmounts("limit", pod.limit, reads.limit, [])
        self.labels = WatchedMap(pod.labels, LABELS, reads.pod, [])
        self.annotations = WatchedMap(pod.annotations, ANNOTATIONS, reads.pod, [])

    def _field(self, name: str) -> str:
        allow(("metadata", _METADATA[name]), self._paths)
        return str(getattr(self._pod, name))

    @property
    def namespace(self) -> str:
        return self._field("namespace")

    @property
    def name(self) -> str:
        return self._field("name")

    @property
    def uid(self) -> str:
        return self._field("uid")

    @property
    def controller(self) -> ControllerRef | None:
        allow(("metadata", "ownerReferences"), self._paths)
        return self._pod.controller

    def predicted(self, resource: str) -> Predicted:
        if resource not in self._limit:
            raise UndeclaredError(f"read of limit {resource} is not declared")
        return self._pod.predicted(resource)

    @property
    def priority(self) -> int:
        allow(("spec", "priority"), self._paths)
        return self._pod.priority

    @property
    def nominated(self) -> str:
        allow(("status", "nominatedNodeName"), self._paths)
        return self._pod.nominated

    @property
    def granted_uid(self) -> str:
        if not self._devices:
            raise UndeclaredError("read of the ledgers is not declared")
        return self._pod.granted_uid

    def requesting_containers(self, resource: str) -> RequestingContainers:
        of_devices(resource, self._devices)
        return self._pod.requesting_containers(resource)


class WatchedOnNode:
    """A pod that the rule may only pass by when its reads do not cover it."""

    def __init__(self, pod: PodOnNode, *, covered: bool) -> None:
        self._pod, self._covered = pod, covered
        self.namespace, self.controller = pod.namespace, pod.controller

    def _checked(self) -> PodOnNode:
        if not self._covered:
            raise UndeclaredError(f"read of the pod {self._pod.namespace}/{self._pod.name} is not declared")
        return self._pod

    @property
    def name(self) -> str:
        return self._checked().name

    @property
    def uid(self) -> str:
        return self._checked().uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self._checked().labels

    @property
    def phase(self) -> str:
        return self._checked().phase

    @property
    def ready(self) -> bool:
        return self._checked().ready

    @property
    def ready_since(self) -> int | None:
        return self._checked().ready_since

    @property
    def deleting(self) -> bool:
        return self._checked().deleting


class WatchedNode:
    def __init__(self, node: NodeFacts, reads: Reads) -> None:
        self.node, self._reads = node, reads
        self.seen: list[object] = []
        """Values that were handed out and that a trace has to show."""
        self.labels = WatchedMap(node.labels, LABELS, reads.node, self.seen)
        self.annotations = WatchedMap(node.annotations, ANNOTATIONS, reads.node, self.seen)
        amounts = [
            WatchedAmounts(what, getattr(node, what), getattr(reads, what), self.seen)
            for what in ("allocatable", "capacity", "requested", "limits")
        ]
        self.allocatable, self.capacity, self.requested, self.limits = (cast("Amounts", one) for one in amounts)
        unlimited: Any = WatchedAmounts("limits", node.unlimited, reads.limits, self.seen)
        self.unlimited: Mapping[str, int] = unlimited

    @property
    def name(self) -> str:
        allow(("metadata", "name"), self._reads.node)
        return self.node.name

    @property
    def uid(self) -> str:
        allow(("metadata", "uid"), self._reads.node)
        return self.node.uid

    @property
    def learned(self) -> LearnedOutcomes | Unknown:
        if not self._reads.learned:
            raise UndeclaredError("read of what was learned is not declared")
        learned = self.node.learned
        if not isinstance(learned, Unknown):
            self.seen += [learned.type, learned.sums.rewards, learned.sums.weight]
        return learned

    def cached(self, _key: Hashable, compute: Callable[[], Any]) -> Any:
        return compute()

    @property
    def created(self) -> int | None:
        allow(("metadata", "creationTimestamp"), self._reads.node)
        self.seen.append(self.node.created)
        return self.node.created

    @property
    def pods(self) -> Sequence[PodOnNode]:
        if not self._reads.pods:
            raise UndeclaredError("read of pods is not declared")
        return [self._watched(pod) for pod in self.node.pods]

    def controlled(self, namespace: str, controller: ControllerRef) -> Sequence[PodOnNode]:
        wanted = PodsRead(namespace, controller)
        if not self._reads.pods & {wanted, PodsRead(namespace), PodsRead(None, controller), PodsRead()}:
            raise UndeclaredError(f"read of {wanted} is not declared")
        return [self._watched(pod) for pod in self.node.controlled(namespace, controller)]

    def condition(self, kind: str) -> NodeCondition | None:
        allow((*CONDITIONS, kind), self._reads.node)
        found = self.node.condition(kind)
        self.seen.append(found and found.status)
        return found

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        allow((*(LABELS if where == "labels" else ANNOTATIONS), key), self._reads.node)
        found = self.node.since(where, key, value)
        if found is not None:
            self.seen.append(found)
        return found

    def data(self, name: str) -> float | Unknown:
        if not self._reads.data & {name, EVERY}:
            raise UndeclaredError(f"read of data {name} is not declared")
        found = self.node.data(name)
        if not isinstance(found, Unknown):
            self.seen.append(found)
        return found

    def unmeasured(self, name: str, lag_s: int) -> UnmeasuredPods:
        if (name, lag_s) not in self._reads.unmeasured:
            raise UndeclaredError(f"read of what is unmeasured for data {name} is not declared")
        return self.node.unmeasured(name, lag_s)

    def placed(self, after: int) -> Sequence[RecentPlacement]:
        if not self._reads.placements:
            raise UndeclaredError("read of placements is not declared")
        reads, found = self._reads.placements, self.node.placed(after)
        self.seen.append(len(found))
        return [
            RecentPlacement(
                one.at,
                WatchedOnNode(one.pod, covered=any(read.covers(owner_of(one.pod)) for read in reads)),
                one.request,
            )
            for one in found
        ]

    @property
    def granted(self) -> Sequence[PodGrant]:
        of_devices(EVERY, self._reads.devices)
        return self.node.granted

    @property
    def nominated(self) -> Sequence[Nominated]:
        of_devices(EVERY, self._reads.devices)
        return self.node.nominated

    def pods_requesting(self, resource: str) -> Sequence[RequestingPod]:
        of_devices(resource, self._reads.devices)
        return self.node.pods_requesting(resource)

    def unhealthy(self, namespace: str, prefix: str, key: str) -> str | Unknown:
        of_devices(EVERY, self._reads.devices)
        return self.node.unhealthy(namespace, prefix, key)

    def _watched(self, pod: PodOnNode) -> WatchedOnNode:
        return WatchedOnNode(pod, covered=any(read.covers(owner_of(pod)) for read in self._reads.pods))


def allow(path: Path, declared: frozenset[Path]) -> None:
    """Fail unless the path or one that leads to it is declared."""
    if not any(len(one) <= len(path) and overlap(one, path) for one in declared):
        raise UndeclaredError(f"read of {'.'.join(path)} is not declared")


def of_devices(resource: str, declared: frozenset[str]) -> None:
    """Fail unless devices with this resource are declared, or any for EVERY."""
    if not declared or (resource != EVERY and resource not in declared):
        raise UndeclaredError(f"read of the devices with {resource} is not declared")
