"""Systems computed from the nodes that a test wrote down, for scores that read one."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from fairlead.api.selectors import compile_selector
from fairlead.learned.demands import Moments, moments
from fairlead.strategies.compared_nodes import ComparedNodes
from fairlead.strategies.contract import (
    DemandsRead,
    NodeFacts,
    NodeSystem,
    NodeTopology,
    Reads,
    SystemRead,
    TopologyRead,
)
from fairlead.strategies.domains import members_that_fit
from fairlead.strategies.facts import Amounts
from fairlead.strategies.node_system import SystemNode, SystemSums, system_node
from fairlead.strategies.node_topology import RoomIn, TopologyNode, TopologySums, add_to, domains_of
from support.strategies.watched import UndeclaredError

PODS = 12
"""Number of pods whose requests are known."""
_N = TypeVar("_N")


def compared(nodes: Sequence[_N], facts: Sequence[NodeFacts], reads: Reads) -> ComparedNodes[_N]:
    """Nodes as a rule that reads this gets them. The system has their facts, and two nodes that are not asked about."""

    def system(read: SystemRead) -> NodeSystem:
        if read not in reads.system:
            raise UndeclaredError(f"read of {read} is not declared")
        members = [_member(read, node) for node in facts]
        sums, whole = SystemSums(len(read.resources)), dict.fromkeys(read.resources, 10.0)
        for used in (2.0, 7.0):
            _add(sums, system_node(read.resources, dict.fromkeys(read.resources, used), whole))
        for member in members:
            _add(sums, member)
        return NodeSystem(sums, [one is not None for one in members], [one for one in members if one is not None])

    def demands(read: DemandsRead) -> Moments:
        if read not in reads.demands:
            raise UndeclaredError(f"read of {read} is not declared")
        return moments({(at, "u"): (float(at % 4),) * len(read.resources) for at in range(PODS)}, read.floors)

    def topology(read: TopologyRead) -> NodeTopology:
        if read not in reads.topology:
            raise UndeclaredError(f"read of {read} is not declared")
        sums, domains = TopologySums(), [domains_of(node.labels, read.levels) for node in facts]
        for node, of_node in zip(facts, domains, strict=True):
            groups = [(one.namespace, str(read.group(one))) for one in node.pods if not one.deleting]  # type: ignore[arg-type]
            sums.add(TopologyNode(of_node, Counter(one for one in groups if one[1])))

        def room(request: Amounts) -> RoomIn:
            found: dict[tuple[str, ...], float] = {}
            for node, of_node in zip(facts, domains, strict=True):
                for domain in of_node:
                    add_to(found, domain, members_that_fit(node, request))
            return found

        return NodeTopology(sums, domains, room)

    return ComparedNodes(nodes, system, demands, topology)


def _add(sums: SystemSums, member: SystemNode | None) -> None:
    if member is not None:
        sums.add(member)


def _member(read: SystemRead, node: NodeFacts) -> SystemNode | None:
    ready = node.condition("Ready")
    if read.selector is not None and not compile_selector(read.selector)(node.labels):
        return None
    if ready is not None and ready.status != "True":
        return None
    return system_node(read.resources, node.requested, node.allocatable)
