"""Effects that rules in shadow would have had on a call, if they alone were enforced.

A function of verdicts and values about the nodes that have passed the call, since no rule can change anything for the
others. Sets of nodes are integers with a byte for each slot, which is 1 for a node of the set: operations on these take
a microsecond for thousands of nodes. A node that changed after the call is left out. An effect that such a node could
change is unknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, count
from typing import Final, NamedTuple, TypeAlias

from fairlead.policy.evaluate.scoring import Values, on_the_wire, totals
from fairlead.strategies.contract import Normalize

NodeMask: TypeAlias = int
"""Set of nodes, with a byte for each slot."""
ValuesOf: TypeAlias = Callable[[Sequence[int]], Values]
"""Returns the values of a score for the nodes in some slots, as a call about these would get them."""


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
    rejected: NodeMask
    """Nodes of the call that it is known to reject."""
    left_out: NodeMask = 0
    """Nodes of the call whose verdict is unknown."""


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

    def __init__(self, nodes: NodeMask, scores: Sequence[ScoreValues]) -> None:
        self._nodes: Final = nodes
        self.scores: Final = scores

    @cached_property
    def best(self) -> NodeMask:
        """Return the nodes with the most points."""
        return best(self.scores, self._nodes)


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
    nodes: NodeMask, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues], points: Callable[[], Points]
) -> PolicyComparison:
    """Compare a call with what it would have got, if the rules of one policy in shadow were enforced.

    `points` returns those of the enforced scores about all of the nodes; it is called if they can matter.
    """
    by_filter = {one.name: _effects(nodes, [one], (), points) for one in filters}
    by_score = {one.name: _effects(nodes, (), [one], points) for one in scores}
    alone = [*by_filter.values(), *by_score.values()]
    together = alone[0] if len(alone) == 1 else _effects(nodes, filters, scores, points)
    rejected = {one.name: one.rejected.bit_count() for one in filters if one.rejected}
    return PolicyComparison(together, by_filter, by_score, rejected)


def need_points(nodes: NodeMask, filters: Iterable[FilterVerdicts], scores: Sequence[ScoreValues]) -> bool:
    """Report whether `compare_policy` may ask for the points of enforced scores."""
    if not nodes or scores:
        return nodes != 0
    return any(one.left_out or one.rejected not in (0, nodes) for one in filters)


def best(scores: Sequence[ScoreValues], nodes: NodeMask) -> NodeMask:
    """Return those of the nodes with the most points, as they are sent to the scheduler; without scores all."""
    if not scores or not nodes:
        return nodes
    slots = slots_in(nodes)
    rules = [(one.values(slots), one.normalize, one.weight) for one in scores]
    points = on_the_wire(totals(rules, len(slots)))
    most = max(points)
    return mask_of([*compress(slots, [one == most for one in points])])


def mask_of(slots: Sequence[int], size: int = 0) -> NodeMask:
    """Return the set of the nodes in these slots, which are less than the size, if that is given."""
    mask = bytearray(size or max(slots, default=-1) + 1)
    for slot in slots:
        mask[slot] = 1
    return int.from_bytes(mask, "little")


def slots_in(nodes: NodeMask) -> Sequence[int]:
    """Return the slots of nodes, in their order."""
    return [*compress(count(), nodes.to_bytes((nodes.bit_length() + 7) // 8, "little"))]


def _effects(
    nodes: NodeMask, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues], points: Callable[[], Points]
) -> EffectsOrUnknown:
    lost = doubtful = 0
    for one in filters:
        lost |= one.rejected
        doubtful |= one.left_out
    doubtful &= nodes & ~lost
    if not nodes or not (lost or doubtful or scores):
        return NO_EFFECTS
    if lost == nodes:
        return Effects(restricted=True, unschedulable=True)
    if doubtful and (not lost or lost | doubtful == nodes):
        return None  # the node that was left out would have been lost alone, or the only one that is kept
    enforced = points()
    if not enforced.scores and not scores:
        return Effects(restricted=lost != 0)
    if doubtful or any(one.is_partial for one in (*enforced.scores, *scores)):
        return None
    then = best([*enforced.scores, *scores], nodes & ~lost)
    return Effects(restricted=lost != 0, reordered=not enforced.best & then)
