"""Entry of a node in the mirror with its placed pods; each update returns exactly what changed."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fairlead.mirror.interning import Pool
from fairlead.mirror.node_changes import node_changes
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.resource_requests import COUNTED, Amounts, allocatable_of, as_amounts
from fairlead.policy.views.device_facts import NO_DEVICES, NodeDevices
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.facts import Stamped
from fairlead.strategies.reads import ANNOTATIONS, LABELS, NodeChange, Path, PodOwner, owner_of

_NOTHING: Final[Amounts] = {}
_CAPACITY: Final[Path] = ("status", "capacity")


class _Stamp(NamedTuple):
    appeared: int | None  # None: it existed already
    changed: int


_WHERE: Final[Mapping[Path, Stamped]] = {LABELS: "labels", ANNOTATIONS: "annotations"}


class ChangeTimes:
    """Change times of the labels and annotations of a node; immutable."""

    __slots__ = ("_node", "_stamps")

    def __init__(self, node: Any, stamps: Mapping[tuple[Stamped, str], _Stamp] | None = None) -> None:
        self._node = node
        self._stamps = stamps or {}

    def after(self, node: Any, changes: Iterable[Path], now: int) -> "ChangeTimes":
        """Return the change times after an update that changed these paths."""
        stamps = dict(self._stamps)
        for path in changes:
            where = _WHERE.get(path[:2])
            if where is None:
                continue
            key = path[2]
            if key not in getattr(node.metadata, where):
                stamps.pop((where, key), None)
            elif key not in getattr(self._node.metadata, where):
                stamps[where, key] = _Stamp(now, now)
            else:
                before = stamps.get((where, key))
                stamps[where, key] = _Stamp(before and before.appeared, now)
        return ChangeTimes(node, stamps)

    def of_same(self, node: Any) -> "ChangeTimes":
        """Return the change times after an update that changed no label and no annotation."""
        return ChangeTimes(node, self._stamps)

    def get(self, stamped: tuple[Stamped, str, str | None], /) -> int | None:
        """Return when a key got this value; for value None, when the key appeared; None if it is not so now."""
        where, key, value = stamped
        metadata = self._node.metadata
        found = getattr(metadata, where).get(key)
        if found is None or value not in (None, found):
            return None
        created: int | None = metadata.creationTimestamp
        stamp = self._stamps.get((where, key))
        if stamp is None:
            return created
        moment = stamp.appeared if value is None else stamp.changed
        return created if moment is None else moment


class FullNode(NamedTuple):
    """A node from a request, and its allocatable resources."""

    node: Any
    allocatable: Amounts

    @classmethod
    def of(cls, node: Any) -> "FullNode":
        """Return a full node. Raises ValueError for an unreadable quantity."""
        return cls(node, as_amounts(allocatable_of(node)))


class NodeEntry:
    """A node with its placed pods; `node` is None while only its pods are known."""

    __slots__ = (
        "_allocatable",
        "_change_times",
        "_listed",
        "_newest_placed",
        "_requested",
        "_totals",
        "devices",
        "images_hash",
        "node",
        "pods",
        "settled",
    )

    def __init__(self, devices: NodeDevices = NO_DEVICES) -> None:
        self.node: Any = None
        self.devices = devices
        self.images_hash: int | None = None
        self.settled: int | None = None
        """Hash of what a heartbeat leaves as it is, while there is a node, if it came as a WatchedNode."""
        self.pods: dict[Key, PodEntry] = {}
        self._totals: dict[str, int] = {}
        self._newest_placed = 0
        self._allocatable = _NOTHING
        self._requested = _NOTHING
        self._change_times = ChangeTimes(None)
        self._listed: tuple[list[Any], list[PodEntry]] | None = None
        """Pods and their entries, as the views since the last change of the pods have them."""

    def update_heartbeat(self, node: Any) -> None:
        """Set the node after a heartbeat: its labels, annotations and amounts are those of before."""
        self.node = node
        self._change_times = self._change_times.of_same(node)

    def update_node(self, node: Any, now: int) -> NodeChange | None:
        """Set the node; return what changed, or None if the node is new.

        Raises ValueError, and then changes nothing.
        """
        before = self.node
        has_same = before is not None and before.status.allocatable == node.status.allocatable
        allocatable = self._allocatable if has_same else as_amounts(allocatable_of(node))
        self.node = node
        if before is None or before.metadata.uid != node.metadata.uid:
            self._change_times = ChangeTimes(node)
            self._allocatable = allocatable
            self._recount()
            return None
        paths = node_changes(before, node)
        self._change_times = self._change_times.after(node, paths, now)
        old, self._allocatable = self._allocatable, allocatable
        return NodeChange(
            node=paths,
            allocatable=_differing(old, self._allocatable),
            capacity=frozenset(path[2] for path in paths if path[:2] == _CAPACITY),
            requested=frozenset() if has_same else self._recount(),
        )

    def clear_node(self) -> None:
        """Remove the node; its pods may still exist."""
        self.node = self.settled = None
        self._allocatable = _NOTHING
        self._change_times = ChangeTimes(None)

    def replace_pod(self, before: PodEntry | None, after: PodEntry | None) -> NodeChange:
        """Add, replace or remove a pod, and return what changed."""
        self._listed = None
        for pod, sign in ((before, -1), (after, 1)):
            if pod is not None:
                self._add(pod, sign)
        if after is not None:
            self.pods[after.key] = after
            if before is None:
                self._newest_placed = max(self._newest_placed, after.pod.placed_at or 0)
        elif before is not None:
            del self.pods[before.key]
        requested = frozenset[str]() if before and after and before.request is after.request else self._recount()
        owners = [owner_of(entry.pod) for entry in (before, after) if entry is not None]
        return _of_pods(((*dict.fromkeys(owners),), requested))

    def view(self) -> NodeView:
        """Return the view of the node for rules."""
        pods, entries = self._pods_and_entries()
        return NodeView(
            self.node,
            pods=pods,
            entries=entries,
            allocatable=self._allocatable,
            requested=self._requested,
            since=self._change_times,
            newest_placed=self._newest_placed,
            devices=self.devices,
        )

    def view_of(self, full_node: "FullNode", now: int) -> NodeView:
        """Return the view with a node from a request in place of this one; nothing is stored."""
        node, allocatable = full_node
        known = self.node is not None and self.node.metadata.uid == node.metadata.uid
        pods, entries = self._pods_and_entries()
        return NodeView(
            node,
            pods=pods,
            entries=entries,
            allocatable=allocatable,
            requested=_requested(allocatable, self._totals),
            since=self._change_times.after(node, node_changes(self.node, node), now) if known else ChangeTimes(node),
            newest_placed=self._newest_placed,
            devices=self.devices,
        )

    def _pods_and_entries(self) -> tuple[list[Any], list[PodEntry]]:
        if self._listed is None:
            entries = [*self.pods.values()]
            self._listed = [entry.pod for entry in entries], entries
        return self._listed

    def _add(self, pod: PodEntry, sign: int) -> None:
        totals = self._totals
        for name, amount in pod.request.exact.items():
            total = totals.get(name, 0) + sign * amount
            if total:
                totals[name] = total
            else:
                totals.pop(name, None)

    def _recount(self) -> frozenset[str]:
        before, self._requested = self._requested, _requested(self._allocatable, self._totals)
        return _differing(before, self._requested)


_of_pods: Final = Pool[tuple[tuple[PodOwner, ...], frozenset[str]], NodeChange](
    lambda key: NodeChange(pods=key[0], requested=key[1]), 1024
)
"""Changes by what pods bring: few are different, and a journal keeps thousands of them."""


def _requested(allocatable: Amounts, totals: dict[str, int]) -> Amounts:
    """Return the requested amounts; zero for every resource that the node has."""
    return as_amounts({**dict.fromkeys(COUNTED, 0), **dict.fromkeys(allocatable, 0), **totals})


def _differing(first: Amounts, second: Amounts) -> frozenset[str]:
    if first == second:
        return frozenset()
    return frozenset(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
