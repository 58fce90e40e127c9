"""A node as rules see it: expressions and strategies read the same object.

Expressions read the attributes that are named as in the rule language (`pod`, `node`, `free`, `pods`, `data` ...),
strategies the protocols of `strategies.facts`. Views are immutable; derived values are computed on first access.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from fairlead.cel.functions.quantity import difference, to_float
from fairlead.grants.device_usage import PodGrant, RequestingPod
from fairlead.learned.pair import LearnedOutcomes
from fairlead.policy.views.derived import Derived
from fairlead.policy.views.device_facts import NO_DEVICES, NodeDevices
from fairlead.policy.views.pod_usage import (
    NONE_UNMEASURED,
    PlacedEntry,
    UnmeasuredEntries,
    limits_of,
    newest_first,
    placements,
    pods_requesting,
)
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.facts import (
    Amounts,
    ControllerRef,
    NodeCondition,
    Nominated,
    RecentPlacement,
    Stamped,
    Unknown,
)
from fairlead.time_units import SECOND_NS


class Since(Protocol):
    """Times at which labels and annotations got their values, for `NodeFacts.since`."""

    def get(self, key: tuple[Stamped, str, str | None], /) -> int | None:
        """Return the time; None if it is not known."""


_NO_AMOUNTS: Final[Amounts] = {}
_NO_SINCE: Final[Since] = {}
NOT_LEARNED: Final = Unknown("what the rule has learned", "is not known here", passes=True)


class NodeView:
    """A node at one moment; `data` is that of one policy."""

    __slots__ = (
        "_cached",
        "_derived",
        "_entries",
        "_since",
        "_unmeasured",
        "allocatable",
        "data",
        "devices",
        "learned",
        "newest_placed",
        "node",
        "pods",
        "requested",
        "victim",
    )

    def __init__(
        self,
        node: Any,
        *,
        pods: Sequence[Any] = (),
        entries: Sequence[PlacedEntry] = (),
        allocatable: Amounts = _NO_AMOUNTS,
        requested: Amounts = _NO_AMOUNTS,
        data: Data | None = None,
        since: Since = _NO_SINCE,
        victim: Any = None,
        newest_placed: int = 0,
        devices: NodeDevices = NO_DEVICES,
    ) -> None:
        """`entries` are the pods with what they count for; none of them was placed later than `newest_placed`."""
        self.node = node
        self.pods = pods
        self.allocatable = allocatable
        self.requested = requested
        self.data = data if data is not None else Data()
        self.victim = victim
        self.newest_placed = newest_placed
        self.devices = devices
        self.learned: LearnedOutcomes | Unknown = NOT_LEARNED
        self._entries = entries
        self._since = since
        self._derived = Derived()
        self._cached: dict[Hashable, Any] = {}
        self._unmeasured: dict[tuple[str, int], UnmeasuredEntries] = {}

    @property
    def free(self) -> Amounts:
        """Return allocatable minus requested, for the resources that the node has."""
        free = self._derived.free
        if free is None:
            requested = self.requested
            free = self._derived.free = {
                name: difference(amount, requested.get(name, 0.0)) for name, amount in self.allocatable.items()
            }
        return free

    @property
    def capacity(self) -> Amounts:
        """Return what the node has."""
        capacity = self._derived.capacity
        if capacity is None:
            texts: Mapping[str, str] = self.node.status.capacity
            amounts = {name: to_float(text) for name, text in texts.items()}
            capacity = {name: amount for name, amount in amounts.items() if amount is not None}
            self._derived.capacity = capacity
        return capacity

    @property
    def limits(self) -> Amounts:
        """Return the limits of the pods, each at least what the pod requests."""
        return self._limits()[0]

    @property
    def unlimited(self) -> Mapping[str, int]:
        """Return how many pods have no limit for a resource."""
        return self._limits()[1]

    def unmeasured(self, name: str, lag_s: int) -> UnmeasuredEntries:
        """Return the pods that were placed later than this long before the time of an entry's value."""
        key = name, lag_s
        if (known := self._unmeasured.get(key)) is None:
            known = self._unmeasured[key] = self._placed_since(name, lag_s)
        return known

    def placed(self, after: int) -> Sequence[RecentPlacement]:
        """Return the placements after a moment, newest first, without daemons and the node's own pods."""
        return placements(self._timed(), after)

    @property
    def granted(self) -> Sequence[PodGrant]:
        """Return the grants of its devices that are in force or may become so."""
        return self.devices.granted

    @property
    def nominated(self) -> Sequence[Nominated]:
        """Return the unplaced pods that are nominated to it."""
        return self.devices.nominated

    def unhealthy(self, namespace: str, prefix: str, key: str) -> str | Unknown:
        """Return the text in its ConfigMap of unhealthy devices."""
        return self.devices.unhealthy_text((namespace, prefix, key))

    def cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what a strategy computed for a key before, for any class of pods, else compute it."""
        if key not in self._cached:
            self._cached[key] = compute()
        return self._cached[key]

    def pods_requesting(self, resource: str) -> Sequence[RequestingPod]:
        """Return the placed pods that request a resource and have not ended."""
        return pods_requesting(self._entries, resource)

    def placed_between(self, first: int, second: int) -> bool:
        """Report whether a pod was placed after the earlier of two moments and up to the later."""
        after, until = min(first, second), max(first, second)
        return self.newest_placed > after and any(after < at <= until for at, _ in self._timed())

    @property
    def name(self) -> str:
        """Return the name."""
        return str(self.node.metadata.name)

    @property
    def uid(self) -> str:
        """Return the UID."""
        return str(self.node.metadata.uid)

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

    def controlled(self, namespace: str, controller: ControllerRef) -> Sequence[Any]:
        """Return the pods on the node that a controller owns."""
        controlled = self._derived.controlled
        if controlled is None:
            controlled = self._derived.controlled = {}
            for pod in self.pods:
                if (owner := pod.controller) is not None:
                    controlled.setdefault((pod.namespace, owner), []).append(pod)
        return controlled.get((namespace, controller), ())

    def condition(self, kind: str) -> NodeCondition | None:
        """Return the condition of a type; None if there is none."""
        for condition in self.node.status.conditions:
            if condition.type == kind:
                return NodeCondition(condition.status, condition.lastTransitionTime)
        return None

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        """Return the time at which a label or annotation got this value; None if it is not known."""
        return self._since.get((where, key, value))

    def without(self, uids: Collection[str], requests: Iterable[Amounts] = ()) -> "NodeView":
        """Return the node without the pods of these UIDs, which free the given requests."""
        left = dict(self.requested)
        for request in requests:
            for name, amount in request.items():
                left[name] = difference(left.get(name, 0.0), amount)
        other = NodeView(
            self.node,
            pods=[pod for pod in self.pods if pod.uid not in uids],
            entries=[one for one in self._entries if one.pod.uid not in uids],
            allocatable=self.allocatable,
            requested=left,
            data=self.data,
            since=self._since,
            newest_placed=self.newest_placed,
            devices=self.devices.without(uids),
        )
        other.learned = self.learned
        return other

    def with_devices(self, devices: NodeDevices) -> "NodeView":
        """Return the node with other facts about its devices, such as the grants of a newer ledger."""
        other = self._with(self.data, self.victim)
        other.devices = devices
        other._cached = {}  # noqa: SLF001  of other devices
        return other

    def with_victim(self, victim: Any) -> "NodeView":
        """Return this node with `victim` set to one of its pods."""
        return self._with(self.data, victim)

    def with_learned(self, learned: LearnedOutcomes | Unknown) -> "NodeView":
        """Return this node with what a rule has learned of pods like one on it."""
        other = self._with(self.data, self.victim)
        other.learned = learned
        return other

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
        other.newest_placed = self.newest_placed
        other.devices = self.devices
        other.learned = self.learned
        other._entries, other._since, other._derived = self._entries, self._since, self._derived  # noqa: SLF001
        other._cached = self._cached  # noqa: SLF001
        other._unmeasured = {}  # noqa: SLF001  of other data
        return other

    def _placed_since(self, name: str, lag_s: int) -> UnmeasuredEntries:
        at = self.data.times.get(name)
        if at is None:
            return NONE_UNMEASURED
        after = at - lag_s * SECOND_NS
        found = list[PlacedEntry]()
        for placed_at, one in self._timed():
            if placed_at <= after:
                break
            found.append(one)
        return UnmeasuredEntries(found) if found else NONE_UNMEASURED

    def _limits(self) -> tuple[Amounts, Mapping[str, int]]:
        limits = self._derived.limits
        if limits is None:
            limits = self._derived.limits = limits_of(self._entries)
        return limits

    def _timed(self) -> Sequence[tuple[int, PlacedEntry]]:
        timed = self._derived.timed
        if timed is None:
            timed = self._derived.timed = newest_first(self._entries)
        return timed
