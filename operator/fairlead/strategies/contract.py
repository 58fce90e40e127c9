"""Contract between rules and the engine, the same for rules compiled from CEL and from a strategy's parameters.

A rule is built in three steps, each as seldom as possible: `filter(params)` once per generation of the policy,
`for_pod(pod)` once per equivalence class of pods, `one(node, now, trace)` per node. All three are pure: the same facts
give the same verdict, nothing is stored between calls, and nothing raises. A rule that cannot decide returns `Unknown`.

A score may compare the nodes of a call instead: `over(pod, nodes, now, trace)` is asked once a call about all of its
nodes that are left, and what it returns is never kept. The nodes also have what it reads of all nodes of the cluster
together: `nodes.system(read)` and `nodes.topology(read)`.

`now` is a fact like any other: a rule that uses it declares `Reads(now=True)` and returns with the verdict `until`: the
earliest moment after `now` at which the verdict may change although no other fact does. Without `until` a verdict holds
until a fact changes. A value of `data` that becomes stale is a change of that fact, and needs no `until`.

A strategy imports everything it needs from here.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from fairlead.grants.device_usage import PodGrant, RequestingPod
from fairlead.grants.entry import GrantedDevice
from fairlead.learned.pair import LearnedOutcomes
from fairlead.strategies.compared_nodes import ComparedNodes
from fairlead.strategies.facts import (
    Amounts,
    ControllerRef,
    NodeCondition,
    NodeFacts,
    Nominated,
    PodFacts,
    PodOnNode,
    Predicted,
    RecentPlacement,
    RequestingContainers,
    Stamped,
    Unknown,
    UnmeasuredPods,
)
from fairlead.strategies.node_system import NodeSystem
from fairlead.strategies.node_topology import NodeTopology
from fairlead.strategies.reads import (
    ANNOTATIONS,
    CONDITIONS,
    LABELS,
    DemandsRead,
    OutcomesRead,
    Path,
    PodsRead,
    Reads,
    SystemRead,
    TopologyRead,
    TypeOf,
    usual_type,
)
from fairlead.strategies.use import CompiledShare, CompiledShares, CompiledTexts, Use

__all__ = [
    "ANNOTATIONS",
    "CONDITIONS",
    "LABELS",
    "PASS",
    "Amounts",
    "ComparedNodes",
    "CompiledFilter",
    "CompiledScore",
    "CompiledShare",
    "CompiledShares",
    "CompiledTexts",
    "ControllerRef",
    "Decide",
    "DemandsRead",
    "Filter",
    "GrantedDevice",
    "LearnedOutcomes",
    "NodeCondition",
    "NodeFacts",
    "NodeFilter",
    "NodeScorer",
    "NodeSystem",
    "NodeTopology",
    "NodesScorer",
    "Nominated",
    "Normalize",
    "OutcomesRead",
    "Pass",
    "Path",
    "PodFacts",
    "PodGrant",
    "PodOnNode",
    "PodsRead",
    "Predicted",
    "Reads",
    "RecentPlacement",
    "Reject",
    "RequestingContainers",
    "RequestingPod",
    "Score",
    "Stamped",
    "Strategy",
    "SystemRead",
    "Timed",
    "TopologyRead",
    "Trace",
    "TypeOf",
    "Unknown",
    "UnmeasuredPods",
    "Use",
    "Value",
    "Verdict",
    "graver",
    "usual_type",
]

Normalize = Literal["None", "MinMax", "Rank"]
"""How raw values become scores from 0 to 100; a strategy for which less is better negates its values."""


class Pass(Struct, frozen=True):
    """Verdict that the node passes. Use `PASS` unless there is an `until`: the engine compares by identity."""

    until: int | None = None


class Reject(Struct, frozen=True):
    """Verdict that the node is rejected. Create it once per rule and reason unless there is an `until`."""

    reason: str
    """One of the filter's `reasons`."""
    resolvable: bool = False
    """True if the rule would pass after pods were evicted from the node."""
    until: int | None = None


class Timed(Struct, frozen=True):
    """Score that holds for a limited time."""

    value: float
    until: int


PASS: Final = Pass()
Verdict: TypeAlias = Pass | Reject | Unknown
Value: TypeAlias = float | Timed | Unknown


def graver(before: Unknown | None, unknown: Unknown) -> Unknown:
    """Return the first of two reasons why a rule cannot decide, or the one that is none for simulations alone."""
    return unknown if before is None or (before.passes and not unknown.passes) else before


class Trace(Protocol):
    """Recorder of what a rule compared, for explain. With a trace a rule checks everything, and decides the same."""

    def note(self, **values: object) -> None:
        """Record values of the rule as a whole."""

    def item(self, name: str, /, **values: object) -> None:
        """Record values of one of several items, in the order in which the rule checks them."""


_Pod = TypeVar("_Pod", bound=PodFacts, contravariant=True)
_Node = TypeVar("_Node", bound=NodeFacts, contravariant=True)


class NodeFilter(Protocol[_Node]):
    """Filter for one equivalence class of pods."""

    def __call__(self, node: _Node, now: int, trace: Trace | None = None, /) -> Verdict:
        """Judge a node."""


class NodeScorer(Protocol[_Node]):
    """Score for one equivalence class of pods."""

    def __call__(self, node: _Node, now: int, trace: Trace | None = None, /) -> Value:
        """Rate a node."""


class NodesScorer(Protocol[_Pod, _Node]):
    """Score that compares the nodes of a call."""

    def __call__(
        self, pod: _Pod, nodes: ComparedNodes[_Node], now: int, trace: Trace | None = None, /
    ) -> Sequence[Value]:
        """Rate nodes, in their order. What it notes of one node is `trace.item(node.name, ...)`."""


def by_no_node(_pod: object) -> "NodeScorer[NodeFacts]":
    """Stand for `for_pod` in a score that has `over`. Raises TypeError."""
    raise TypeError("the score compares the nodes of a call")


# Without slots: Python 3.11 cannot make a frozen dataclass with slots through an alias of its generic.
@dataclass(frozen=True, kw_only=True)
class CompiledFilter(Generic[_Pod, _Node]):
    """Compiled filter that needs facts of these types; one that needs less can replace one that needs more."""

    reads: Reads
    for_pod: Callable[[_Pod], NodeFilter[_Node]]
    reasons: tuple[str, ...]
    """All reasons of its rejections: short, and the same for every node."""
    resolvable: bool = False
    """True if any of its rejections is resolvable."""


@dataclass(frozen=True, kw_only=True)
class CompiledScore(Generic[_Pod, _Node]):
    """Compiled score, by `for_pod` or by `over`; types as in `CompiledFilter`."""

    reads: Reads
    for_pod: Callable[[_Pod], NodeScorer[_Node]] = by_no_node
    over: NodesScorer[_Pod, _Node] | None = None
    """Function that compares the nodes of a call. Its values are scores from 0 to 100, and `scale` is set."""
    normalize: Normalize = "None"
    """Normalization if the policy does not set one."""
    scale: str = ""
    """Parameter that says what the values score, in place of `normalize`; a rule with both does not compile."""


Filter: TypeAlias = CompiledFilter[PodFacts, NodeFacts]
Decide: TypeAlias = NodeFilter[NodeFacts]
Score: TypeAlias = CompiledScore[PodFacts, NodeFacts]


class Strategy:
    """Strategy: what policies may name under filters, under scores, or under both."""

    __slots__ = ("filter", "name", "score")

    def __init__(
        self,
        *,
        name: str,
        filter: Use[Filter] | None = None,  # noqa: A002  the word that policies use
        score: Use[Score] | None = None,
    ) -> None:
        if not re.fullmatch("[a-z][A-Za-z0-9]{0,62}", name):
            raise ValueError(f"{name!r} cannot be the name of a strategy: write it like nodeReadiness")
        if filter is None and score is None:
            raise ValueError(f"the strategy {name} neither filters nor scores")
        uses: tuple[object, ...] = (filter, score)
        if wrong := [one for one in uses if one is not None and not isinstance(one, Use)]:
            raise TypeError(f"filter and score of the strategy {name} are of the class Use, not {wrong[0]!r}")
        self.name: Final = name
        self.filter: Final = filter
        self.score: Final = score

    def __repr__(self) -> str:
        return f"Strategy({self.name!r})"
