"""Domains of nodes: which of a call's nodes the members of a group may share.

What a group has already is in its ledger. While it has no domain, those count in which the nodes of the call have room
for all of its members, because other nodes may be refused by rules that are not asked here.
"""

from collections.abc import Callable, Iterable, Sequence
from math import floor
from typing import Final, TypeAlias

from fairlead.grants.entry import Domain
from fairlead.grants.group_domain import agrees, outside
from fairlead.strategies.facts import Amounts, NodeFacts

Values: TypeAlias = frozenset[tuple[str, ...]]
"""Domains, each by the values of the labels of its levels."""
_ROUNDING: Final = 1e-9
PODS: Final = "pods"


def no_label(label: str) -> str:
    """Return why a node is rejected that lacks the label of a level."""
    return f"no label {label}"


def none_holds(level: str) -> str:
    """Return why nodes are rejected whose domain has no room for the group."""
    return f"no {level} holds the group"


def domain_of(node: NodeFacts, labels: Sequence[str]) -> Domain | str:
    """Return the domain of a node by the labels of the levels, or the first label that it lacks."""
    has = node.labels
    found = dict[str, str]()
    for label in labels:
        if label not in has:
            return label
        found[label] = has[label]
    return found


def members_that_fit(node: NodeFacts, request: Amounts) -> float:
    """Return how many pods with a request have room on a node, by what the pods on it request."""
    has, taken = node.allocatable, node.requested
    least = has.get(PODS, 0.0) - taken.get(PODS, 0.0)
    for resource, wanted in request.items():
        if wanted > 0 and resource != PODS:
            # Amounts are sums of floats: what fits exactly must not be lost by rounding.
            room = (has.get(resource, 0.0) - taken.get(resource, 0.0)) / wanted
            least = min(least, floor(room + _ROUNDING))
    return max(0.0, least)


def rejected_by_domain(
    nodes: Iterable[NodeFacts],
    labels: Sequence[str],
    domain: Domain | None,
    *,
    size: int,
    request: Amounts,
    avoided: Domain | None = None,
    lately: Values = frozenset(),
    sees_all: bool = True,
    took: Callable[[], None] = lambda: None,
    on_holding: Callable[[Values], None] = lambda _: None,
) -> dict[str, str]:
    """Return why nodes are rejected, by name.

    `domain` is that of the group; None if it has none yet. Then domains pass that hold `size` members, without the one
    to be `avoided` if others do, and `on_holding` hears of them. Those that held the group `lately` are not asked
    again, as the scheduler may have placed members there since. If not all nodes are seen, any passes. `took` is called
    now and then, and may raise.
    """
    level = labels[-1]
    rejected, holds = dict[str, str](), dict[tuple[str, ...], float]()
    seen = list[tuple[str, tuple[str, ...]]]()
    for at, node in enumerate(nodes):
        if at % 256 == 255:
            took()
        found = domain_of(node, labels)
        if isinstance(found, str):
            rejected[node.name] = no_label(found)
        elif domain is not None:
            if not agrees(found, domain):
                rejected[node.name] = outside(level)
        elif sees_all:
            key = tuple(found.values())
            seen.append((node.name, key))
            holds[key] = holds.get(key, 0.0) + members_that_fit(node, request)
    if domain is None and sees_all:
        passing = lately or frozenset(key for key, room in holds.items() if room >= size)
        if avoided is not None:
            others = {key for key in passing if not agrees(dict(zip(labels, key, strict=True)), avoided)}
            passing = frozenset(others) or passing
        if passing and not lately:
            on_holding(passing)
        rejected |= {name: none_holds(level) for name, key in seen if key not in passing}
    return rejected
