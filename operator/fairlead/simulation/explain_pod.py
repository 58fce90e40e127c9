"""Explanation of a pod: nodes grouped by verdict, what each rule compared, and the closest node."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, Literal

from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.explain.explanation import NodeExplained, NodeScored, RuleExplained
from fairlead.policy.explain.mismatch import Unmatched, explain_mismatch
from fairlead.simulation.evictions import Eviction, evictions
from fairlead.simulation.results import NodeResult, PodResult
from fairlead.simulation.simulation import Simulation, scheduler_of
from fairlead.simulation.snapshot import Raw

Verdict = Literal["Preferred", "Possible", "Unknown", "Unanswered", "Rejected", "Unfit"]
LOOKED_AT: Final = 24
"""Number of near nodes whose comparisons are computed to find the closest."""
_ORDER: Final[Sequence[Verdict]] = ("Preferred", "Possible", "Unknown", "Unanswered", "Rejected", "Unfit")
ASKED_MAX: Final = 50
"""Greatest number of nodes, rejected for different reasons, whose comparisons are computed."""
Rejected = tuple[str, str, str]
"""Policy, rule and reason."""


@dataclass(frozen=True, slots=True)
class NodesAlike:
    """Nodes with the same verdict for the same reasons."""

    verdict: Verdict
    nodes: Sequence[NodeResult]

    @property
    def first(self) -> NodeResult:
        """First of the nodes, which stands for all."""
        return self.nodes[0]


@dataclass(frozen=True, slots=True)
class RejectingRule:
    """A rule that rejects nodes, with what it compared on one of them."""

    count: int
    node: str
    explained: RuleExplained


@dataclass(frozen=True, slots=True)
class Closest:
    """The node with the fewest rejections, and the rules that reject it."""

    node: NodeResult
    rules: Sequence[RuleExplained]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of one pod."""

    judged: PodResult
    groups: Sequence[NodesAlike]
    rejecting: Sequence[RejectingRule]
    closest: Closest | None
    """None if no node is rejected, if there are no nodes, or if others than the rules that were evaluated decide."""
    as_good: Sequence[str]
    """Nodes below the highest score that are equal for the scheduler, which gets a tenth of the points, rounded."""
    others: Sequence[Unmatched]
    """Policies that do not match the pod."""
    foreign: Mapping[str, str]
    """Policies that are for another scheduler, and which."""
    evictions: Sequence[Eviction] = ()
    """Evictions on nodes that lack room, if no node is left."""


def explanation(simulation: Simulation, raw: Raw, judged: PodResult) -> Explanation:
    """Return the explanation of a pod of `Simulation.judge`."""
    scheduler = scheduler_of(judged.pod)
    others = (
        explain_mismatch(policy, judged.pod, scheduler, simulation.now) for policy in simulation.policies.policies
    )
    return Explanation(
        judged,
        groups(judged),
        _rejecting(simulation, raw, judged),
        None if judged.unanswered or judged.is_open else _closest(simulation, raw, judged),
        _as_good(judged),
        [one for one in others if one is not None],
        {one.name: one.scheduler_name for one in simulation.policies.policies if one.scheduler_name != scheduler},
        evictions(simulation, raw, judged),
    )


def verdicts_of(judged: PodResult) -> Callable[[NodeResult], Verdict]:
    """Return a function that returns the verdict on a node. A rule that was not evaluated may reject every node."""
    preferred = frozenset(judged.preferred) if judged.matched else frozenset()  # without a policy nothing prefers
    is_open, unanswered = judged.is_open, judged.unanswered

    def verdict(node: NodeResult) -> Verdict:
        if unanswered:  # the scheduler asks about the nodes that fit
            return "Unfit" if node.unfit else "Unanswered"
        if node.rejections:
            return "Rejected"
        if node.unfit:
            return "Unfit"
        if is_open:
            return "Unknown"
        return "Preferred" if node.name in preferred else "Possible"

    return verdict


def groups(judged: PodResult) -> list[NodesAlike]:
    """Return nodes grouped by verdict and reasons, the best first; groups with one verdict by their size."""
    verdict_of = verdicts_of(judged)
    found: dict[object, list[NodeResult]] = {}
    for node in judged.nodes:
        verdict = verdict_of(node)
        said = [(one.policy, one.rule, one.reason) for one in node.rejections if not judged.unanswered]
        key = (verdict, (*said, *dict.fromkeys(one.reason for one in node.unfit)))
        found.setdefault(key, []).append(node)
    made = [NodesAlike(verdict_of(nodes[0]), sorted(nodes, key=_worse)) for nodes in found.values()]
    return sorted(made, key=lambda group: (_ORDER.index(group.verdict), -len(group.nodes)))


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """Explanation of one node."""

    node: NodeResult
    verdict: Verdict
    explained: NodeExplained
    scored: NodeScored | None
    """None if the node does not fit or is rejected: the scheduler gets no score."""


def explain_node(simulation: Simulation, raw: Raw, judged: PodResult, node: NodeResult) -> NodeExplanation:
    """Return everything about one node."""
    [explained] = simulation.explain(raw, judged, [node.name])
    scored = next((one for one in simulation.explain_scores(raw, judged) if one.node == node.name), None)
    return NodeExplanation(node, verdicts_of(judged)(node), explained, None if judged.unevaluated else scored)


def _worse(node: NodeResult) -> float:
    return -(node.score or 0.0)


def _rejecting(simulation: Simulation, raw: Raw, judged: PodResult) -> list[RejectingRule]:
    """Return each rule with each of its reasons and the first node it rejects for it, in the order of rules."""
    counts: Counter[Rejected] = Counter()
    first: dict[Rejected, str] = {}
    for node in judged.nodes:
        for one in node.rejections:
            said = one.policy, one.rule, one.reason
            counts[said] += 1
            first.setdefault(said, node.name)
    names = [*dict.fromkeys(first.values())][:ASKED_MAX]
    explained = {one.node: one.filters for one in simulation.explain(raw, judged, names)}
    found = [
        RejectingRule(counts[said], name, one)
        for said, name in first.items()
        for one in explained.get(name, ())
        if (one.policy, one.rule) == said[:2]
    ]
    order = {each.policy.name: at for at, each in enumerate(judged.matched)}
    return sorted(found, key=lambda one: (order[one.explained.policy], one.explained.rule))


def _closest(simulation: Simulation, raw: Raw, judged: PodResult) -> Closest | None:
    away = [node for node in judged.nodes if not node.is_candidate]
    near = nsmallest(LOOKED_AT, away, key=_far)
    explained = simulation.explain(raw, judged, [node.name for node in near])
    found = [Closest(node, [*_rejections(one)]) for node, one in zip(near, explained, strict=True)]
    return min(found, key=_far_in_all, default=None)


def _as_good(judged: PodResult) -> list[str]:
    if judged.unevaluated or judged.unanswered:
        return []
    left, preferred = judged.left, frozenset(judged.preferred)
    sent = on_the_wire([node.score or 0.0 for node in left])
    best = max(sent, default=0)
    return [node.name for node, one in zip(left, sent, strict=True) if one == best and node.name not in preferred]


def _rejections(node: NodeExplained) -> Iterator[RuleExplained]:
    return (one for one in node.filters if one.outcome == "Rejected")


def _far(node: NodeResult) -> float:
    return len(node.rejections) + sum(one.shortfall for one in node.unfit)


def _far_in_all(closest: Closest) -> float:
    return sum(max(1, len(one.changes)) for one in closest.rules) + sum(one.shortfall for one in closest.node.unfit)
