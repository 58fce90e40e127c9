"""Nodes of a call as a score that compares them gets them: with the systems that are kept, and what was learned."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from fairlead.cooperative import Steps, finish
from fairlead.learned.demands import Moments
from fairlead.policy.nodes.kept_system import KeptSystem
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.compared_nodes import ComparedNodes
from fairlead.strategies.node_system import NodeSystem
from fairlead.strategies.reads import DemandsRead, SystemRead


class SeenNodes(Sequence[NodeView]):
    """Nodes of a call, which are only looked at if the score does."""

    __slots__ = ("_all", "_now", "_slots", "_view")

    def __init__(self, slots: Sequence[int], view: Callable[[int, int], Any], now: int) -> None:
        self._slots, self._view, self._now = slots, view, now
        self._all: list[NodeView] | None = None

    @overload
    def __getitem__(self, at: int, /) -> NodeView: ...

    @overload
    def __getitem__(self, at: slice, /) -> Sequence[NodeView]: ...

    def __getitem__(self, at: int | slice, /) -> NodeView | Sequence[NodeView]:
        return self._looked_at()[at]

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self._looked_at())

    def __len__(self) -> int:
        return len(self._slots)

    def _looked_at(self) -> list[NodeView]:
        if self._all is None:
            self._all = [self._view(slot, self._now) for slot in self._slots]
        return self._all


def compared_views(
    views: Sequence[NodeView], slots: Sequence[int], nodes: Nodes, policy: str, rule: str
) -> ComparedNodes[NodeView]:
    """Return nodes, given with their slots, for a rule of a policy, which is given by UID, or by name without one."""

    def system(read: SystemRead) -> NodeSystem:
        kept = current_system(nodes, read)
        return kept.seen_from(slots if nodes.home is nodes else [*map(nodes.home_slot, views)])

    def demands(read: DemandsRead) -> Moments:
        return nodes.learned_demands(policy, rule, read)

    return ComparedNodes(views, system, demands)


def kept_system(nodes: Nodes, read: SystemRead) -> KeptSystem:
    """Return what is kept of a system, up to date or not. It is kept for as long as the result is held."""
    systems = nodes.home.systems
    kept = systems.get(read)
    if kept is None:
        kept = systems[read] = KeptSystem(read)
    return kept


def current_system(nodes: Nodes, read: SystemRead) -> KeptSystem:
    """Return what is kept of a system, up to date."""
    kept = kept_system(nodes, read)
    finish(follow(nodes, kept))
    return kept


def follow(nodes: Nodes, kept: KeptSystem) -> Steps[None]:
    """Bring a system up to date, with pauses. If the journal does not reach back, it is computed from nothing."""
    home = nodes.home
    entries = None if kept.position < 0 else home.since(kept.position)
    if entries is None:
        home.note_reads([kept.reads])
        kept.begin(home.slots.values())
    else:
        for entry in entries:
            if not isinstance(entry, Published):
                kept.wait_for(entry.slot, entry.change)
    kept.position = home.head
    yield from kept.work(home.views)
