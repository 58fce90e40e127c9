"""Kept systems: sums over the nodes that a rule's system selects, which follow the journal of `Nodes`.

A system is behind until it has looked at all nodes that wait; `compared_views` brings it up to date before it is read.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from operator import itemgetter
from typing import Final, TypeAlias

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


class KeptSystem:
    """Sums of one system, and the numbers of its nodes."""

    __slots__ = (
        "__weakref__",
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
        self._waiting = dict.fromkeys(slots, True)  # False: only its amounts have changed
        self._members: list[SystemNode | None] = []  # by slot

    def wait_for(self, slot: int, change: NodeChange | None) -> None:
        """Let the node in a slot wait, if what changed matters; None stands for everything."""
        # Most changes are of what is requested, and this is the quick way to tell.
        if change is None or change.node or self.reads.requested.isdisjoint(change.requested):
            if change is None or self.reads.affected_by(change):
                self._waiting[slot] = True
        else:
            self._waiting.setdefault(slot, False)

    def work(self, views: Sequence[NodeView | None]) -> Steps[None]:
        """Look at the nodes that wait, with pauses; they are given by slot."""
        waiting = self._waiting
        if not waiting:
            return
        self._members.extend([None] * (len(views) - len(self._members)))
        for position in count(1):
            slot, is_anew = waiting.popitem()
            self._put(slot, views[slot], is_anew=is_anew)
            if not waiting:
                return
            if position % _SLICE == 0:
                yield

    def seen_from(self, slots: Sequence[int]) -> NodeSystem:
        """Return the system for the nodes in some slots; -1 stands for a node that is elsewhere."""
        members = self._members
        if len(slots) > 1 and min(slots) >= 0:
            found: Sequence[SystemNode | None] = itemgetter(*slots)(members)
        else:
            found = [members[slot] if slot >= 0 else None for slot in slots]
        return NodeSystem(self.sums, [one is not None for one in found], [*filter(None, found)])

    def _put(self, slot: int, view: NodeView | None, *, is_anew: bool) -> None:
        before, after = self._members[slot], None
        if view is not None and ((before is not None and not is_anew) or self._selects(view)):
            after = system_node(self.read.resources, view.requested, view.allocatable)
        if before == after:
            return
        if before is not None and after is not None:
            self.sums.replace(before, after)
        elif before is not None:
            self.sums.remove(before)
        elif after is not None:
            self.sums.add(after)
        self._members[slot] = after

    def _selects(self, view: NodeView) -> bool:
        """Return whether a node belongs to the system if it has the resources."""
        if view.node.spec.unschedulable or not (self._matches is None or self._matches(view.labels)):
            return False
        ready = view.condition("Ready")
        return ready is None or ready.status == "True"
