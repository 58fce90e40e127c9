"""Nodes of a call as a score that compares them gets them: with what is kept of all nodes, and what was learned."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

from fairlead.cooperative import Steps, finish
from fairlead.learned.demands import Moments
from fairlead.policy.nodes.kept_system import KeptSystem
from fairlead.policy.nodes.kept_topology import KeptTopology
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.compared_nodes import ComparedNodes
from fairlead.strategies.node_system import NodeSystem
from fairlead.strategies.node_topology import NodeTopology
from fairlead.strategies.reads import DemandsRead, Reads, SystemRead, TopologyRead

KeptOfNodes: TypeAlias = KeptSystem | KeptTopology
"""Sums over all nodes that follow the journal."""


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
        return kept.seen_from(at_home())

    def topology(read: TopologyRead) -> NodeTopology:
        kept = kept_topology(nodes, read)
        finish(follow(nodes, kept))
        return kept.seen_from(at_home(), nodes.home.views, views)

    def at_home() -> Sequence[int]:
        return slots if nodes.home is nodes else [*map(nodes.home_slot, views)]

    def demands(read: DemandsRead) -> Moments:
        return nodes.learned_demands(policy, rule, read)

    return ComparedNodes(views, system, demands, topology)


def kept_system(nodes: Nodes, read: SystemRead) -> KeptSystem:
    """Return what is kept of a system, up to date or not. It is kept for as long as the result is held."""
    systems = nodes.home.systems
    kept = systems.get(read)
    if kept is None:
        kept = systems[read] = KeptSystem(read)
    return kept


def kept_topology(nodes: Nodes, read: TopologyRead) -> KeptTopology:
    """Return what is kept of a topology, up to date or not. It is kept for as long as the result is held."""
    topologies = nodes.home.topologies
    kept = topologies.get(read)
    if kept is None:
        kept = topologies[read] = KeptTopology(read)
    return kept


def kept_of(nodes: Nodes, reads: Reads) -> list[KeptOfNodes]:
    """Return what is kept for a rule, up to date or not."""
    systems: list[KeptOfNodes] = [kept_system(nodes, read) for read in reads.system]
    return [*systems, *(kept_topology(nodes, read) for read in reads.topology)]


def current_system(nodes: Nodes, read: SystemRead) -> KeptSystem:
    """Return what is kept of a system, up to date."""
    kept = kept_system(nodes, read)
    finish(follow(nodes, kept))
    return kept


def follow(nodes: Nodes, kept: KeptOfNodes) -> Steps[None]:
    """Bring sums up to date, with pauses. If the journal does not reach back, they are computed from nothing."""
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
