"""Nodes that a score compares: those of a call, and what the rule reads of all nodes together."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar, overload

from fairlead.learned.demands import Moments
from fairlead.strategies.node_system import NodeSystem
from fairlead.strategies.node_topology import NodeTopology
from fairlead.strategies.reads import DemandsRead, SystemRead, TopologyRead

_Node = TypeVar("_Node", covariant=True)

SystemOf: TypeAlias = Callable[[SystemRead], NodeSystem]
TopologyOf: TypeAlias = Callable[[TopologyRead], NodeTopology]
DemandsOf: TypeAlias = Callable[[DemandsRead], Moments]


class ComparedNodes(Sequence[_Node]):
    """Nodes of a call, in the order of the values that a score returns."""

    __slots__ = ("_nodes", "demands", "system", "topology")

    def __init__(self, nodes: Sequence[_Node], system: SystemOf, demands: DemandsOf, topology: TopologyOf) -> None:
        self._nodes = nodes
        self.system: Final = system
        """Returns a system that is in `Reads.system` of the rule. It is the cluster's, whatever nodes the call has."""
        self.topology: Final = topology
        """Returns a topology that is in `Reads.topology` of the rule, with the members that all nodes have."""
        self.demands: Final = demands
        """Returns the moments of the requests that are in `Reads.demands`; their number is 0 if none are known."""

    @overload
    def __getitem__(self, at: int, /) -> _Node: ...

    @overload
    def __getitem__(self, at: slice, /) -> Sequence[_Node]: ...

    def __getitem__(self, at: int | slice, /) -> _Node | Sequence[_Node]:
        return self._nodes[at]

    def __iter__(self) -> Iterator[_Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)
