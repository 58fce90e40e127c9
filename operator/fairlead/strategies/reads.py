"""What a rule reads, so that the engine knows what to compute again and what a class of pods is.

A path is the way to a field, with the key of a map or the type of a condition as its last step:
`("metadata", "labels", "example.org/gpu")`, `("status", "conditions", "Ready")`. A path stands for all below it, so
that a rule that walks all labels reads `("metadata", "labels")`.
"""

from collections.abc import Iterable

from msgspec import Struct

from fairlead.strategies.facts import Controller, PodOnNode

Path = tuple[str, ...]
LABELS: Path = ("metadata", "labels")
ANNOTATIONS: Path = ("metadata", "annotations")
CONDITIONS: Path = ("status", "conditions")

EVERY = "*"
"""In place of a name: all of them. No resource and no entry of `data` is called so."""


class PodsRead(Struct, frozen=True):
    """Which pods on the node are read; what is left out is not asked for. `PodsRead()` is all of them."""

    namespace: str | None = None
    controller: Controller | None = None

    def covers(self, pod: PodOnNode) -> bool:
        """Whether this pod is one of them."""
        return self.namespace in (None, pod.namespace) and self.controller in (None, pod.controller)


class Change(Struct, frozen=True):
    """What became different about one node."""

    node: frozenset[Path] = frozenset()
    """Fields, as deep as they are known: the key of a label rather than all labels."""
    pods: tuple[PodOnNode, ...] = ()
    """Pods that came, went or changed; of one that changed, both as it was and as it is."""
    requested: frozenset[str] = frozenset()
    allocatable: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()


class Reads(Struct, frozen=True):
    """Every fact that a rule uses. Whatever is not named here the rule cannot reach: the tests hold it to that."""

    pod: frozenset[Path] = frozenset()
    namespace: frozenset[Path] = frozenset()
    """Fields of the pod's namespace."""
    request: frozenset[str] = frozenset()
    """Resources that the pod asks for."""
    node: frozenset[Path] = frozenset()
    pods: frozenset[PodsRead] = frozenset()
    free: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    allocatable: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    now: bool = False

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(**{name: getattr(self, name) | getattr(other, name) for name in self.__struct_fields__})

    def affected_by(self, change: Change) -> bool:
        """Whether a verdict of this rule about the node that changed may be another now."""
        return (
            any(overlap(read, path) for path in change.node for read in self.node)
            or any(read.covers(pod) for pod in change.pods for read in self.pods)
            or _shared(self.data, change.data)
            or _shared(self.requested, change.requested)
            or _shared(self.allocatable, change.allocatable)
            or _shared(self.free, change.requested | change.allocatable)
        )

    @property
    def of_pod(self) -> bool:
        """Whether the verdict depends on the pod at all: if not, all pods are one class."""
        return bool(self.pod or self.namespace or self.request)

    @property
    def of_pods(self) -> bool:
        """Whether taking pods away from the node can change the verdict."""
        return bool(self.pods or self.free or self.requested)


def union(several: Iterable[Reads]) -> Reads:
    """What several rules read together."""
    together = Reads()
    for one in several:
        together |= one
    return together


def overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or leads to it."""
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))


def _shared(read: frozenset[str], changed: frozenset[str]) -> bool:
    return bool(changed) and (EVERY in read or (EVERY in changed and bool(read)) or not read.isdisjoint(changed))
