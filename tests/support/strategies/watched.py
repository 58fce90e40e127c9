"""Facts that fail whoever reads what was not declared, and remember what was read."""

from collections.abc import Iterator, Mapping, Sequence

from fairlead.strategies.contract import (
    ANNOTATIONS,
    CONDITIONS,
    LABELS,
    Condition,
    Controller,
    NodeFacts,
    PodFacts,
    PodOnNode,
    PodsRead,
    Reads,
    Stamped,
    Unknown,
)
from fairlead.strategies.reads import EVERY, Path, overlap

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


class WatchedPod:
    def __init__(self, pod: PodFacts, reads: Reads) -> None:
        self._pod, self._paths = pod, reads.pod
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
        self._node, self._reads = node, reads
        self.seen: list[object] = []
        """Values that were handed out and that a trace has to show."""
        self.labels = WatchedMap(node.labels, LABELS, reads.node, self.seen)
        self.annotations = WatchedMap(node.annotations, ANNOTATIONS, reads.node, self.seen)

    @property
    def name(self) -> str:
        allow(("metadata", "name"), self._reads.node)
        return self._node.name

    @property
    def created(self) -> int | None:
        allow(("metadata", "creationTimestamp"), self._reads.node)
        self.seen.append(self._node.created)
        return self._node.created

    @property
    def pods(self) -> Sequence[PodOnNode]:
        if not self._reads.pods:
            raise UndeclaredError("read of pods is not declared")
        return [self._watched(pod) for pod in self._node.pods]

    def controlled(self, namespace: str, controller: Controller) -> Sequence[PodOnNode]:
        wanted = PodsRead(namespace, controller)
        if not self._reads.pods & {wanted, PodsRead(namespace), PodsRead(None, controller), PodsRead()}:
            raise UndeclaredError(f"read of {wanted} is not declared")
        return [self._watched(pod) for pod in self._node.controlled(namespace, controller)]

    def condition(self, kind: str) -> Condition | None:
        allow((*CONDITIONS, kind), self._reads.node)
        found = self._node.condition(kind)
        self.seen.append(found and found.status)
        return found

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        allow((*(LABELS if where == "labels" else ANNOTATIONS), key), self._reads.node)
        found = self._node.since(where, key, value)
        if found is not None:
            self.seen.append(found)
        return found

    def data(self, name: str) -> float | Unknown:
        if not self._reads.data & {name, EVERY}:
            raise UndeclaredError(f"read of data {name} is not declared")
        found = self._node.data(name)
        if not isinstance(found, Unknown):
            self.seen.append(found)
        return found

    def _watched(self, pod: PodOnNode) -> WatchedOnNode:
        return WatchedOnNode(pod, covered=any(read.covers(pod) for read in self._reads.pods))


def allow(path: Path, declared: frozenset[Path]) -> None:
    """Fail unless the path or one that leads to it is declared."""
    if not any(len(one) <= len(path) and overlap(one, path) for one in declared):
        raise UndeclaredError(f"read of {'.'.join(path)} is not declared")
