"""A pod and a node as rules see them. Expressions and strategies read the same objects.

Expressions read the attributes that are named as in the rule language (`pod`, `node`, `free`, `pods`, `data` ...),
strategies the protocols of `strategies.facts`. Views are immutable; derived values are computed on first access.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.schema import NAMESPACE
from fairlead.cel.values.structs import empty
from fairlead.strategies.facts import Condition, Controller, Stamped, Unknown

Amounts = Mapping[str, float]


class Since(Protocol):
    """Times at which labels and annotations got their values, for `NodeFacts.since`."""

    def get(self, key: tuple[Stamped, str, str | None], /) -> int | None:
        """Return the time; None if it is not known."""


_NO_AMOUNTS: Final[Amounts] = {}
_NO_SINCE: Final[Since] = {}


class MissingDataError(CelError):
    """An entry of data has no usable value."""

    __slots__ = ("unknown",)

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(Kind.MISSING_DATA, str(unknown))
        self.unknown = unknown


class Data(dict[str, float]):
    """A policy's data on one node: a map of the usable values, and a function that says why another is not usable."""

    __slots__ = ("missing",)

    def __init__(self, values: Mapping[str, float] | None = None, missing: Mapping[str, Unknown] | None = None) -> None:
        super().__init__(values or {})
        self.missing = missing or {}

    def __missing__(self, name: str) -> float:
        why = self(name)
        raise MissingDataError(why if isinstance(why, Unknown) else Unknown(f"data {name}", "is missing"))

    def __call__(self, name: str) -> float | Unknown:
        """Return the value of an entry, or why there is none."""
        found = self.get(name)
        if found is not None:
            return found
        return self.missing.get(name) or Unknown(f"data {name}", "is missing")


class PodView:
    """The pod to place."""

    __slots__ = ("knows_namespace", "namespaceObject", "pod", "request")

    def __init__(self, pod: Any, namespace: Any = None, request: Amounts = _NO_AMOUNTS) -> None:
        self.pod = pod
        self.knows_namespace = namespace is not None
        self.namespaceObject: Any = namespace if namespace is not None else empty(NAMESPACE)
        self.request = request

    @property
    def namespace(self) -> str:
        """Return the namespace, which is `default` if the object has none."""
        return str(self.pod.metadata.namespace) or "default"

    @property
    def name(self) -> str:
        """Return the name."""
        return str(self.pod.metadata.name)

    @property
    def uid(self) -> str:
        """Return the UID."""
        return str(self.pod.metadata.uid)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        labels: Mapping[str, str] = self.pod.metadata.labels
        return labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations."""
        annotations: Mapping[str, str] = self.pod.metadata.annotations
        return annotations


class NodeView:
    """A node at one moment; `data` is that of one policy."""

    __slots__ = ("_controlled", "_free", "_since", "allocatable", "data", "node", "pods", "requested", "victim")

    def __init__(
        self,
        node: Any,
        *,
        pods: Sequence[Any] = (),
        allocatable: Amounts = _NO_AMOUNTS,
        requested: Amounts = _NO_AMOUNTS,
        data: Data | None = None,
        since: Since = _NO_SINCE,
        victim: Any = None,
    ) -> None:
        self.node = node
        self.pods = pods
        self.allocatable = allocatable
        self.requested = requested
        self.data = data if data is not None else Data()
        self.victim = victim
        self._since = since
        self._controlled: dict[tuple[str, Controller], list[Any]] | None = None
        self._free: Amounts | None = None

    @property
    def free(self) -> Amounts:
        """Return allocatable minus requested, for the resources that the node has."""
        free = self._free
        if free is None:
            requested = self.requested
            free = self._free = {
                name: _difference(amount, requested.get(name, 0.0)) for name, amount in self.allocatable.items()
            }
        return free

    @property
    def name(self) -> str:
        """Return the name."""
        return str(self.node.metadata.name)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        labels: Mapping[str, str] = self.node.metadata.labels
        return labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations."""
        annotations: Mapping[str, str] = self.node.metadata.annotations
        return annotations

    @property
    def created(self) -> int | None:
        """Return the creation time."""
        created: int | None = self.node.metadata.creationTimestamp
        return created

    def controlled(self, namespace: str, controller: Controller) -> Sequence[Any]:
        """Return the pods on the node that a controller owns."""
        if self._controlled is None:
            self._controlled = {}
            for pod in self.pods:
                if (owner := pod.controller) is not None:
                    self._controlled.setdefault((pod.namespace, owner), []).append(pod)
        return self._controlled.get((namespace, controller), ())

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of a type; None if there is none."""
        for condition in self.node.status.conditions:
            if condition.type == kind:
                return Condition(condition.status, condition.lastTransitionTime)
        return None

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        """Return the time at which a label or annotation got this value; None if it is not known."""
        return self._since.get((where, key, value))

    def without(self, uids: Collection[str], requests: Iterable[Amounts] = ()) -> "NodeView":
        """Return the node without the pods of these UIDs, which free the given requests."""
        left = dict(self.requested)
        for request in requests:
            for name, amount in request.items():
                left[name] = _difference(left.get(name, 0.0), amount)
        return NodeView(
            self.node,
            pods=[pod for pod in self.pods if pod.uid not in uids],
            allocatable=self.allocatable,
            requested=left,
            data=self.data,
            since=self._since,
        )

    def with_victim(self, victim: Any) -> "NodeView":
        """Return this node with `victim` set to one of its pods."""
        return self._with(self.data, victim)

    def with_data(self, data: Data) -> "NodeView":
        """Return this node with the data of another policy."""
        return self._with(data, self.victim)

    def _with(self, data: Data, victim: Any) -> "NodeView":
        other = NodeView.__new__(NodeView)
        other.node = self.node
        other.pods = self.pods
        other.allocatable = self.allocatable
        other.requested = self.requested
        other.data = data
        other.victim = victim
        other._since, other._controlled, other._free = self._since, self._controlled, self._free  # noqa: SLF001
        return other


def _difference(one: float, other: float) -> float:
    """Subtract and round to nine digits, as amounts have: 1.0 - 0.9 is 0.1, so `>= 0.1` is true."""
    left = one - other
    return left if left.is_integer() else round(left, 9)
