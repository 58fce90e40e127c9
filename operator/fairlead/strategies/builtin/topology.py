"""Strategy `topology`: members of a group share a domain of nodes, such as a rack.

As a filter it judges two things: here, that a node has the labels which tell its domain; and in `strategies.domains`,
by all nodes of a call and the domain that the group has, whether it is the right one. As a score it prefers nodes near
the group's members, and for the first of them the smallest domain that holds them all.
"""

from collections.abc import Sequence
from typing import Final

from fairlead.api.topologies import TOPOLOGY, TopologyFilter, TopologyScore
from fairlead.strategies.contract import (
    LABELS,
    PASS,
    ComparedNodes,
    CompiledTexts,
    Filter,
    NodeFacts,
    NodeFilter,
    NodeTopology,
    PodFacts,
    Reads,
    Reject,
    Score,
    Strategy,
    TopologyRead,
    Trace,
    Unknown,
    Use,
    Value,
    Verdict,
)
from fairlead.strategies.domains import no_label
from fairlead.strategies.node_topology import DomainValues, MembersIn, nearness, smallest_domain
from fairlead.strategies.reads import EVERY

_OWNERS: Final = ("metadata", "ownerReferences")
NO_GROUP: Final = Unknown("the pod", "is in no group", expected=True)
ALONE: Final = Unknown("the group", "has one member", expected=True)


def _filter(params: TopologyFilter) -> Filter:
    labels = params.shared
    rejections = {label: Reject(no_label(label)) for label in labels}

    def for_pod(_pod: PodFacts) -> NodeFilter[NodeFacts]:
        def one(node: NodeFacts, _now: int, trace: Trace | None = None, /) -> Verdict:
            if trace is not None:
                trace.note(**{label: node.labels.get(label) for label in labels})
            return next((rejections[label] for label in labels if label not in node.labels), PASS)

        return one

    return Filter(
        reads=Reads(node=frozenset((*LABELS, label) for label in labels)),
        for_pod=for_pod,
        reasons=tuple(one.reason for one in rejections.values()),
    )


def _score(params: TopologyScore, texts: CompiledTexts) -> Score:
    group_of, size_of = texts.get("group", _controller), texts.get("size", _one)
    read = TopologyRead(tuple(params.levels), group_of)

    def over(pod: PodFacts, nodes: ComparedNodes[NodeFacts], _now: int, trace: Trace | None = None) -> Sequence[Value]:
        group = group_of(pod)
        if trace is not None:
            trace.note(group=None if isinstance(group, Unknown) else group)
        if isinstance(group, Unknown) or not group:
            return [group or NO_GROUP] * len(nodes)
        topology = nodes.topology(read)
        members = topology.sums.members(pod.namespace, group)
        if members:
            if trace is not None:
                _note_members(trace, nodes, topology, members)
            return [nearness(domains, members) for domains in topology.domains]
        size = size_of(pod)
        if trace is not None:
            trace.note(members=0, size=None if isinstance(size, Unknown) else size)
        if isinstance(size, Unknown) or size == 1:
            return [size if isinstance(size, Unknown) else ALONE] * len(nodes)
        room = topology.room(pod.request)
        chosen = smallest_domain(room, size)
        if trace is not None:
            trace.note(chosen=chosen)
            for node, domains in zip(nodes, topology.domains, strict=True):
                trace.item(node.name, domain=domains[-1], capacity=[room.get(one, 0.0) for one in domains[1:]])
        return [100.0 if chosen is not None and _is_in(chosen, domains) else 0.0 for domains in topology.domains]

    return Score(
        reads=Reads(pod=frozenset({_OWNERS}), request=frozenset({EVERY}), topology=frozenset({read})),
        over=over,
        scale="levels",
    )


def _is_in(domain: DomainValues, domains: Sequence[DomainValues]) -> bool:
    return len(domain) < len(domains) and domains[len(domain)] == domain


def _note_members(trace: Trace, nodes: ComparedNodes[NodeFacts], topology: NodeTopology, members: MembersIn) -> None:
    """Record the members, and of each node how many of them are at each distance, from 0 on."""
    total = members[()]
    trace.note(members=total)
    for node, domains in zip(nodes, topology.domains, strict=True):
        near = [members.get(domain, 0) for domain in reversed(domains)]
        distances = [there - nearer for there, nearer in zip(near, (0, *near), strict=False)]
        trace.item(node.name, domain=domains[-1], distances=distances if len(domains) > 1 else None)


def _controller(pod: PodFacts) -> str:
    """Return the group of a pod where no compiler has given one."""
    return "" if pod.controller is None else f"{pod.controller.kind}/{pod.controller.name}"


def _one(_pod: PodFacts) -> int:
    return 1


STRATEGY = Strategy(name=TOPOLOGY, filter=Use(TopologyFilter, _filter), score=Use.of_texts(TopologyScore, _score))
