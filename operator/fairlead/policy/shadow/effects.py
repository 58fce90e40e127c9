"""Comparison: the effects that rules in shadow would have had on a call, if they alone were enforced.

A function of verdicts and values. Nodes are numbered from 0: they are those that have passed the call, since no rule
can change anything for the others. A node that changed after the call is left out. An effect that such a node could
change is unknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from fairlead.policy.evaluate.scoring import Values, on_the_wire, totals
from fairlead.strategies.contract import Normalize

Positions: TypeAlias = Sequence[int]
ValuesOf: TypeAlias = Callable[[Positions], Values]
"""Returns the values of a score for some of the nodes, as a call about these would get them."""
_INVERTED: Final = bytes(code == 0 for code in range(256))


class Effects(NamedTuple):
    """Effects that rules would have had on a call."""

    restricted: bool = False
    """Whether the pod would have lost some of the nodes that passed."""
    unschedulable: bool = False
    """Whether it would have lost all of them."""
    reordered: bool = False
    """Whether none of the nodes with the most points would have been among those with the most points.

    False without any node: that is told by `unschedulable`.
    """


NO_EFFECTS: Final = Effects()
EffectsOrUnknown: TypeAlias = Effects | None
"""None: a node that was left out could change them."""


@dataclass(frozen=True, slots=True)
class FilterVerdicts:
    """Verdicts of a filter in shadow about the nodes."""

    name: str
    passing: bytes
    """For each node 1 if it passes, else 0."""
    left_out: bytes | None = None
    """For each node 1 if its verdict is unknown; None if none is."""


@dataclass(frozen=True, slots=True)
class ScoreValues:
    """Values of a score, in shadow or enforced."""

    name: str
    values: ValuesOf
    normalize: Normalize
    weight: int
    is_partial: bool = False
    """Whether the value of a node is unknown."""


class Points:
    """Points that enforced scores give the nodes."""

    def __init__(self, nodes: int, scores: Sequence[ScoreValues]) -> None:
        self._all: Final = range(nodes)
        self.scores: Final = scores

    @cached_property
    def best(self) -> frozenset[int]:
        """Return the nodes with the most points."""
        return best(self.scores, self._all)


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """Effects of the rules in shadow of a policy on a call."""

    together: EffectsOrUnknown
    filters: Mapping[str, EffectsOrUnknown] = field(default_factory=dict)
    """Effects of each filter alone..."""
    scores: Mapping[str, EffectsOrUnknown] = field(default_factory=dict)
    """...and of each score alone."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Nodes that each filter alone would have rejected, without those that were left out and filters without any."""


def compare_policy(
    nodes: int, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues], points: Callable[[], Points]
) -> PolicyComparison:
    """Compare a call with what it would have got, if the rules of one policy in shadow were enforced.

    `points` returns those of the enforced scores about all of the nodes; it is called if they can matter.
    """
    by_filter = {one.name: _effects(nodes, [one], (), points) for one in filters}
    by_score = {one.name: _effects(nodes, (), [one], points) for one in scores}
    alone = [*by_filter.values(), *by_score.values()]
    together = alone[0] if len(alone) == 1 else _effects(nodes, filters, scores, points)
    rejected = {one.name: count for one in filters if (count := _lost(nodes, [one]).count(1))}
    return PolicyComparison(together, by_filter, by_score, rejected)


def need_points(nodes: int, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues]) -> bool:
    """Report whether `compare_policy` may ask for the points of enforced scores."""
    return nodes > 0 and (bool(scores) or any(0 < one.passing.count(1) < nodes or one.left_out for one in filters))


def best(scores: Sequence[ScoreValues], nodes: Positions) -> frozenset[int]:
    """Return those of the nodes with the most points, as they are sent to the scheduler; without scores all."""
    if not scores or not nodes:
        return frozenset(nodes)
    rules = [(one.values(nodes), one.normalize, one.weight) for one in scores]
    points = on_the_wire(totals(rules, len(nodes)))
    most = max(points)
    return frozenset(compress(nodes, [one == most for one in points]))


def _effects(
    nodes: int, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues], points: Callable[[], Points]
) -> EffectsOrUnknown:
    if not nodes:
        return NO_EFFECTS
    lost = _lost(nodes, filters)
    left_out = _left_out(filters, lost)
    losses, doubts = lost.count(1), left_out.count(1)
    if losses == nodes:
        return Effects(restricted=True, unschedulable=True)
    if not losses and not doubts and not scores:
        return NO_EFFECTS
    if doubts and (not losses or losses + doubts == nodes):
        return None  # the node that was left out would have been lost alone, or the only one that is kept
    enforced = points()
    if not enforced.scores and not scores:
        return Effects(restricted=losses > 0)
    if doubts or any(one.is_partial for one in (*enforced.scores, *scores)):
        return None
    kept = [*compress(range(nodes), lost.translate(_INVERTED))] if losses else range(nodes)
    then = best([*enforced.scores, *scores], kept)
    return Effects(restricted=losses > 0, reordered=enforced.best.isdisjoint(then))


def _lost(nodes: int, filters: Iterable[FilterVerdicts]) -> bytes:
    """Return for each node 1 if a filter is known to reject it."""
    lost = 0
    for one in filters:
        rejected = int.from_bytes(one.passing.translate(_INVERTED), "little")
        lost |= rejected if one.left_out is None else rejected & ~int.from_bytes(one.left_out, "little")
    return lost.to_bytes(nodes, "little")


def _left_out(filters: Iterable[FilterVerdicts], lost: bytes) -> bytes:
    """Return for each node 1 if it is unknown whether a filter rejects it, and no other filter is known to."""
    left_out = 0
    for one in filters:
        if one.left_out is not None:
            left_out |= int.from_bytes(one.left_out, "little")
    return (left_out & ~int.from_bytes(lost, "little")).to_bytes(len(lost), "little")
