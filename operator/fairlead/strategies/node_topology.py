"""Topology of nodes: the members of groups in each domain of nodes, and the room in it.

All sums are of whole numbers, so that those that follow the nodes for months equal those computed from nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from fairlead.strategies.facts import Amounts

DomainValues: TypeAlias = tuple[str, ...]
"""Domain, by the values of the labels of its levels, the widest first; the empty one has all nodes."""
DomainsOfNode: TypeAlias = tuple[DomainValues, ...]
"""Domains that a node is in, the widest first, from the one of all nodes on; that one alone if a label is missing."""
MembersIn: TypeAlias = Mapping[DomainValues, int]
"""Number of placed members of a group in each domain that has any."""
RoomIn: TypeAlias = Mapping[DomainValues, float]
"""Number of pods with one request that have room in each domain that has room for any."""
NOWHERE: Final[DomainsOfNode] = ((),)
_NO_MEMBERS: Final[MembersIn] = {}
_GroupKey: TypeAlias = tuple[str, str]
_Number = TypeVar("_Number", int, float)


class TopologyNode(NamedTuple):
    """Node of a topology."""

    domains: DomainsOfNode
    members: Mapping[tuple[str, str], int]
    """Number of placed members of each group, by namespace and value."""


class TopologySums:
    """Sums over the nodes of a topology."""

    __slots__ = ("_members", "nodes")

    def __init__(self) -> None:
        self.nodes: Final[dict[DomainValues, int]] = {}
        """Number of nodes of each domain."""
        self._members: Final[dict[_GroupKey, dict[DomainValues, int]]] = {}

    def members(self, namespace: str, value: str) -> MembersIn:
        """Return where the placed members of a group are."""
        return self._members.get((namespace, value), _NO_MEMBERS)

    @property
    def groups(self) -> Mapping[tuple[str, str], MembersIn]:
        """Return where the placed members of all groups are."""
        return self._members

    def add(self, node: TopologyNode) -> None:
        """Add a node."""
        self._count(node, 1)

    def remove(self, node: TopologyNode) -> None:
        """Remove a node that was added."""
        self._count(node, -1)

    def _count(self, node: TopologyNode, sign: int) -> None:
        for domain in node.domains:
            add_to(self.nodes, domain, sign)
        for group, number in node.members.items():
            counts = self._members.setdefault(group, {})
            for domain in node.domains:
                add_to(counts, domain, sign * number)
            if not counts:
                del self._members[group]


class NodeTopology(NamedTuple):
    """Topology as a score reads it in one call."""

    sums: TopologySums
    domains: Sequence[DomainsOfNode]
    """Domains of each node of the call."""
    room: Callable[[Amounts], RoomIn]
    """Returns the room that the nodes of the cluster have for pods with a request."""


def add_to(counts: dict[DomainValues, _Number], domain: DomainValues, number: _Number) -> None:
    """Add to a count, which is absent while it is 0."""
    total = counts.get(domain, 0) + number
    if total:
        counts[domain] = total
    else:
        counts.pop(domain, None)


def domains_of(labels: Mapping[str, str], levels: Sequence[str]) -> DomainsOfNode:
    """Return the domains of a node with these labels."""
    values = tuple([labels[level] for level in levels if level in labels])
    if len(values) < len(levels):
        return NOWHERE
    return tuple([values[:number] for number in range(len(values) + 1)])


def smallest_domain(room: RoomIn, size: int) -> DomainValues | None:
    """Return the domain that should get a group none of whose members has a node; None if no domain holds it.

    It is one of the narrowest level at which any domain does, of these the one with the least room, then the first.
    """
    holds = [(-len(values), there, values) for values, there in room.items() if values and there >= size]
    return min(holds)[2] if holds else None


def nearness(domains: DomainsOfNode, members: MembersIn) -> float:
    """Return a score from 0 to 100: 100 where all levels are shared with all members, 0 where none is."""
    shared = 0
    for domain in domains[1:]:
        if not (there := members.get(domain)):
            break
        shared += there
    return 100.0 * shared / (members[()] * (len(domains) - 1)) if shared else 0.0
