"""Which nodes a pod may use, found out in slices and without keeping verdicts: for whom nobody else will ask the same.

The first nodes are judged at another moment than the last ones: it says that something may have changed, and decides
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlead.policy.bound import BoundFilter
from fairlead.policy.deadline import Clock
from fairlead.policy.nodes import Nodes

_AT_ONCE = 8  # nodes, between two looks at the clock


@dataclass(slots=True, eq=False)
class Sweep:
    """Once over all nodes."""

    filters: Sequence[BoundFilter]
    nodes: Nodes
    passing: bytearray = field(default_factory=bytearray)
    """By slot, as far as it got: 1 where all filters pass."""

    def go_on(self, now: int, clock: Clock, deadline: int) -> bool:
        """Until the deadline, but at least for a few nodes; whether all are judged."""
        views = self.nodes.views
        while len(self.passing) < len(views):
            for slot in range(len(self.passing), min(len(self.passing) + _AT_ONCE, len(views))):
                self.passing.append(views[slot] is not None and self._passes(slot, now))
            if clock() > deadline:
                return len(self.passing) >= len(views)
        return True

    def _passes(self, slot: int, now: int) -> bool:
        for each in self.filters:
            view = each.view(slot)
            if view is None or each.judge(view, now) is not None:
                return False
        return True
