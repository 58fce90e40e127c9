"""Strategy `topology`: members of a group share a domain of nodes, such as a rack.

As a filter it judges two things: here, that a node has the labels which tell its domain; and in `strategies.domains`,
by all nodes of a call and the domain that the group has, whether it is the right one.
"""

from fairlead.api.topologies import TOPOLOGY, TopologyFilter
from fairlead.strategies.contract import (
    LABELS,
    PASS,
    Filter,
    NodeFacts,
    NodeFilter,
    PodFacts,
    Reads,
    Reject,
    Strategy,
    Trace,
    Use,
    Verdict,
)
from fairlead.strategies.domains import no_label


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


STRATEGY = Strategy(name=TOPOLOGY, filter=Use(TopologyFilter, _filter))
