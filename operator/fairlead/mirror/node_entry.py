"""One node and what is on it, kept as things come and go; each step says exactly what became different."""

from typing import Any, Final, NamedTuple

from fairlead.mirror.node_changes import ChangeTimes, node_changes
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.resource_requests import COUNTED, Amounts, allocatable_of, as_amounts
from fairlead.policy.views.pod_and_node import NodeView
from fairlead.strategies.reads import Change

_NOTHING: Final[Amounts] = {}


class FullNode(NamedTuple):
    """A node that somebody else knows, and what it has for pods."""

    node: Any
    allocatable: Amounts

    @classmethod
    def of(cls, node: Any) -> "FullNode":
        """Raises ValueError for a quantity that cannot be read."""
        return cls(node, as_amounts(allocatable_of(node)))


class NodeEntry:
    """A node, or a place for one that is not known yet: its pods may be told first."""

    __slots__ = ("_allocatable", "_requested", "_stamps", "_totals", "node", "pods")

    def __init__(self) -> None:
        self.node: Any = None
        self.pods: dict[Key, PodEntry] = {}
        self._totals: dict[str, int] = {}
        self._allocatable = _NOTHING
        self._requested = _NOTHING
        self._stamps = ChangeTimes(None)

    def update_node(self, node: Any, now: int) -> Change | None:
        """The node came (nothing is said then), or became different. Raises ValueError, and is then as it was."""
        before, allocatable = self.node, as_amounts(allocatable_of(node))
        self.node = node
        if before is None or before.metadata.uid != node.metadata.uid:
            self._stamps = ChangeTimes(node)
            self._allocatable = allocatable
            self._recount()
            return None
        paths = node_changes(before, node)
        self._stamps = self._stamps.after(node, paths, now)
        old, self._allocatable = self._allocatable, allocatable
        return Change(node=paths, allocatable=_differing(old, self._allocatable), requested=self._recount())

    def clear_node(self) -> None:
        """The node went; its pods may still be there."""
        self.node = None
        self._allocatable = _NOTHING
        self._stamps = ChangeTimes(None)

    def replace_pod(self, before: PodEntry | None, after: PodEntry | None) -> Change:
        """A pod came, changed or went."""
        for pod, sign in ((before, -1), (after, 1)):
            if pod is not None:
                self._add(pod, sign)
        if after is not None:
            self.pods[after.key] = after
        elif before is not None:
            del self.pods[before.key]
        requested = frozenset[str]() if before and after and before.request is after.request else self._recount()
        return Change(pods=tuple([held.pod for held in (before, after) if held is not None]), requested=requested)

    def view(self) -> NodeView:
        """What rules see of it."""
        return NodeView(
            self.node,
            pods=[held.pod for held in self.pods.values()],
            allocatable=self._allocatable,
            requested=self._requested,
            since=self._stamps,
        )

    def view_of(self, given: "FullNode", now: int) -> NodeView:
        """The same, were the node this one; nothing is kept of it."""
        node, allocatable = given
        known = self.node is not None and self.node.metadata.uid == node.metadata.uid
        return NodeView(
            node,
            pods=[held.pod for held in self.pods.values()],
            allocatable=allocatable,
            requested=_requested(allocatable, self._totals),
            since=self._stamps.after(node, node_changes(self.node, node), now) if known else ChangeTimes(node),
        )

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


def _requested(allocatable: Amounts, totals: dict[str, int]) -> Amounts:
    """What the node has is there, if only as zero."""
    return as_amounts({**dict.fromkeys(COUNTED, 0), **dict.fromkeys(allocatable, 0), **totals})


def _differing(one: Amounts, other: Amounts) -> frozenset[str]:
    if one == other:
        return frozenset()
    return frozenset(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
