"""Kept topologies: members of groups and room in the domains of nodes, which follow the journal of `Nodes`.

What is kept is that of a rule, because the rule says which group a placed pod is in. A topology is behind until it has
looked at all nodes that wait; `compared_views` brings it up to date before it is read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from fairlead.cooperative import Steps
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.domains import members_that_fit
from fairlead.strategies.facts import Amounts
from fairlead.strategies.node_topology import (
    NOWHERE,
    DomainsOfNode,
    DomainValues,
    NodeTopology,
    RoomIn,
    TopologyNode,
    TopologySums,
    add_to,
    domains_of,
)
from fairlead.strategies.reads import NodeChange, TopologyRead

_SLICE: Final = 8  # nodes between two pauses: with 30 new pods each about a millisecond
_ROOMS_MAX: Final = 16
"""Number of requests for which room is kept."""
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_Request: TypeAlias = tuple[tuple[str, float], ...]


class _SeenNode(NamedTuple):
    """Node as it was counted."""

    node: TopologyNode
    pods: Sequence[Any]
    values: Sequence[str]
    """Group of each pod; "" for one in none."""


class _KeptRoom:
    """Room for pods with one request."""

    __slots__ = ("by_domain", "by_slot", "waiting")

    def __init__(self, slots: Iterable[int]) -> None:
        self.by_domain: Final[dict[DomainValues, float]] = {}
        self.by_slot: Final[dict[int, tuple[DomainsOfNode, float]]] = {}
        self.waiting: Final = set(slots)

    def follow(self, request: Amounts, views: Sequence[NodeView | None], seen: Sequence[_SeenNode | None]) -> None:
        for slot in self.waiting:
            domains, room = self.by_slot.pop(slot, (NOWHERE, 0.0))
            self._add(domains, -room)
            view, one = views[slot], seen[slot]
            if view is not None and one is not None and (room := members_that_fit(view, request)):
                self.by_slot[slot] = one.node.domains, room
                self._add(one.node.domains, room)
        self.waiting.clear()

    def _add(self, domains: DomainsOfNode, room: float) -> None:
        for domain in domains:
            add_to(self.by_domain, domain, room)


class KeptTopology:
    """Members and room in the domains of one topology."""

    __slots__ = ("__weakref__", "_domains", "_rooms", "_seen", "_waiting", "position", "read", "reads", "sums")

    def __init__(self, read: TopologyRead) -> None:
        self.read: Final = read
        self.reads: Final = read.of_node
        self.position = -1
        """Position in the journal of the nodes; -1 before anything was read."""
        self.begin(())

    @property
    def domains(self) -> int:
        """Return the number of domains, without the one of all nodes."""
        return sum(map(bool, self.sums.nodes))

    def begin(self, slots: Iterable[int]) -> None:
        """Forget everything; the nodes in these slots wait."""
        self.sums = TopologySums()
        self._waiting = dict.fromkeys(slots)
        self._seen: list[_SeenNode | None] = []  # by slot
        self._domains: dict[DomainsOfNode, DomainsOfNode] = {}
        self._rooms: dict[_Request, _KeptRoom] = {}  # the one that was read last is the last

    def wait_for(self, slot: int, change: NodeChange | None) -> None:
        """Let the node in a slot wait, if what changed matters; None stands for everything."""
        if change is not None and not self.reads.affected_by(change):
            return
        for room in self._rooms.values():
            room.waiting.add(slot)
        if change is None or change.node or change.pods:
            self._waiting[slot] = None

    def work(self, views: Sequence[NodeView | None]) -> Steps[None]:
        """Look at the nodes that wait, with pauses; they are given by slot."""
        waiting = self._waiting
        self._seen.extend([None] * (len(views) - len(self._seen)))
        for position in count(1):
            if not waiting:
                return
            slot, _ = waiting.popitem()
            self._put(slot, views[slot])
            if waiting and position % _SLICE == 0:
                yield

    def seen_from(
        self, slots: Sequence[int], views: Sequence[NodeView | None], call: Sequence[NodeView]
    ) -> NodeTopology:
        """Return the topology for nodes of a call, given with their slots; -1 stands for a node that is elsewhere.

        `views` are the nodes by slot.
        """

        def room(request: Amounts) -> RoomIn:
            return self._room(request, views)

        seen, levels = self._seen, self.read.levels
        domains = [
            one.node.domains if slot >= 0 and (one := seen[slot]) is not None else domains_of(call[at].labels, levels)
            for at, slot in enumerate(slots)
        ]
        return NodeTopology(self.sums, domains, room)

    def _room(self, request: Amounts, views: Sequence[NodeView | None]) -> RoomIn:
        wanted = tuple(sorted((name, amount) for name, amount in request.items() if amount > 0))
        kept = self._rooms.pop(wanted, None)
        if kept is None:
            kept = _KeptRoom(slot for slot, one in enumerate(self._seen) if one is not None)
            if len(self._rooms) >= _ROOMS_MAX:
                del self._rooms[next(iter(self._rooms))]
        self._rooms[wanted] = kept
        kept.follow(request, views, self._seen)
        return kept.by_domain

    def _put(self, slot: int, view: NodeView | None) -> None:
        before = self._seen[slot]
        after = None if view is None else self._looked_at(view, before)
        self._seen[slot] = after
        if before is not None and after is not None and before.node == after.node:
            return
        if before is not None:
            self.sums.remove(before.node)
        if after is not None:
            self.sums.add(after.node)

    def _looked_at(self, view: NodeView, before: _SeenNode | None) -> _SeenNode:
        domains = domains_of(view.labels, self.read.levels)
        domains = self._domains.setdefault(domains, domains)  # the nodes of a rack share one
        known = {} if before is None else dict(zip(map(id, before.pods), before.values, strict=True))
        pods = tuple(view.pods)
        values = tuple([known[id(pod)] if id(pod) in known else self._value(pod) for pod in pods])
        members = Counter((pod.namespace, value) for pod, value in zip(pods, values, strict=True) if value)
        return _SeenNode(TopologyNode(domains, dict(members)), pods, values)

    def _value(self, pod: Any) -> str:
        if pod.deleting or pod.phase in _ENDED:
            return ""
        value = self.read.group(PodView(pod))
        return value if isinstance(value, str) else ""
