"""Kept systems: sums over the nodes that a rule's system selects, which follow the journal of `Nodes`.

A system is behind until it has looked at all nodes that wait; `compared_views` brings it up to date before it is read.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, count
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from fairlead.api.selectors import compile_selector
from fairlead.cooperative import Steps
from fairlead.learned.demands import NO_DEMANDS, Moments, moments
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.node_system import NodeSystem, SystemNode, SystemSums, system_node
from fairlead.strategies.reads import DemandsRead, NodeChange, SystemRead

_SLICE: Final = 64  # nodes between two pauses: half a millisecond

LearnedDemands: TypeAlias = Callable[[str, str, DemandsRead], Moments]
"""Returns the moments of the requests that a rule of a policy has learned, by UID and name."""


def nothing_learned(_policy_uid: str, _rule: str, read: DemandsRead) -> Moments:
    """Return the moments of no requests."""
    return moments(NO_DEMANDS, read.floors)


class _Columns(NamedTuple):
    """Numbers of the nodes of a system, as `SystemNode` has them: of each a column for each resource, by slot."""

    requested: Sequence[list[Any]]
    allocatable: Sequence[list[Any]]
    shares: Sequence[list[Any]]
    parts: Sequence[list[Any]]

    @classmethod
    def of(cls, resources: int) -> "_Columns":
        requested, allocatable, shares, parts = ([list[Any]() for _ in range(resources)] for _ in cls._fields)
        return cls(requested, allocatable, shares, parts)


class KeptSystem:
    """Sums of one system, and the numbers of its nodes."""

    __slots__ = (
        "__weakref__",
        "_columns",
        "_inside",
        "_matches",
        "_members",
        "_waiting",
        "position",
        "read",
        "reads",
        "sums",
    )

    def __init__(self, read: SystemRead) -> None:
        self.read: Final = read
        self.reads: Final = read.of_node
        self.position = -1
        """Position in the journal of the nodes; -1 before anything was read."""
        self._matches = None if read.selector is None else compile_selector(read.selector)
        self.begin(())

    def begin(self, slots: Iterable[int]) -> None:
        """Forget everything; the nodes in these slots wait."""
        self.sums = SystemSums(len(self.read.resources))
        self._waiting = {*slots}
        self._members: list[SystemNode | None] = []  # by slot, as everything below
        self._inside = bytearray()
        self._columns = _Columns.of(len(self.read.resources))

    def wait_for(self, slot: int, change: NodeChange | None) -> None:
        """Let the node in a slot wait, if what changed matters; None stands for everything."""
        if slot in self._waiting:
            return
        # Most changes are of what is requested, and this is the quick way to tell.
        if change is None or not self.reads.requested.isdisjoint(change.requested) or self.reads.affected_by(change):
            self._waiting.add(slot)

    def work(self, views: Sequence[NodeView | None]) -> Steps[None]:
        """Look at the nodes that wait, with pauses; they are given by slot."""
        waiting = self._waiting
        if not waiting:
            return
        more = len(views) - len(self._members)
        self._members.extend([None] * more)
        self._inside.extend(bytes(more))
        for column in chain.from_iterable(self._columns):
            column.extend([0] * more)
        for position in count(1):
            slot = waiting.pop()
            self._put(slot, views[slot])
            if not waiting:
                return
            if position % _SLICE == 0:
                yield

    def seen_from(self, slots: Iterable[int]) -> NodeSystem:
        """Return the system for the nodes in some slots; -1 stands for a node that is elsewhere."""
        mask, places = self._inside, [*slots]
        inside = [slot >= 0 and mask[slot] == 1 for slot in places]
        found = [*compress(places, inside)]
        pick: Callable[[Any], Any] = itemgetter(*found) if len(found) > 1 else lambda of: [of[slot] for slot in found]
        requested, allocatable, shares, parts = ([pick(column) for column in several] for several in self._columns)
        return NodeSystem(self.sums, inside, requested, allocatable, shares, parts[0])

    def _put(self, slot: int, view: NodeView | None) -> None:
        before, after = self._members[slot], None if view is None else self._member(view)
        if before == after:
            return
        if before is not None:
            self.sums.remove(before)
        if after is not None:
            self.sums.add(after)
            for columns, numbers in zip(self._columns, after, strict=True):
                for column, number in zip(columns, numbers, strict=True):
                    column[slot] = number
        self._members[slot], self._inside[slot] = after, after is not None

    def _member(self, view: NodeView) -> SystemNode | None:
        """Return a node as a member; None if it does not belong to the system."""
        if view.node.spec.unschedulable or not (self._matches is None or self._matches(view.labels)):
            return None
        ready = view.condition("Ready")
        if ready is not None and ready.status != "True":
            return None
        return system_node(self.read.resources, view.requested, view.allocatable)
