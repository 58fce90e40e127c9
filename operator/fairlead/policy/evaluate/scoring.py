"""Scores of nodes, from the raw values of rules to what is sent to the scheduler.

The rule's normalization brings values to 0..100 over the nodes of one call; then its weight is applied. A node without
a value gets the mean of the others, so that a missing value is neither good nor bad; if no node has a value, the rule
adds nothing.
"""

import math
from collections.abc import Iterable, Sequence
from operator import add
from typing import Final, cast

from fairlead.strategies.contract import Normalize

TOP: Final = 100.0
STEP: Final = 10
"""Worth of a point that is sent: the scheduler multiplies by it."""
_EQUAL: Final = 1e-9
_FEW: Final = 4
"""If a value is shared by more nodes than this on average, which is common, each value is computed once."""

Values = Sequence[float | None]
"""Values of a rule, one for each node; None, NaN and infinities mean no value."""


def normalize_scores(values: Values, how: Normalize) -> list[float] | None:
    """Return scores from 0 to 100, one for each value; None if there is no value at all."""
    distinct = {*values}
    if distinct and None not in distinct and math.isfinite(sum(cast("set[float]", distinct))):
        numbers = cast("Sequence[float]", values)
        if len(distinct) > len(values) // _FEW:
            return _scaled(numbers, how)
        few = [*cast("set[float]", distinct)]
        table = dict(zip(few, _scaled(few, how), strict=True))
        return [*map(table.__getitem__, numbers)]
    known = [value for value in values if value is not None and value - value == 0.0]
    if not known:
        return None
    scaled = _scaled(known, how)
    if len(known) == len(values):
        return scaled
    mean = math.fsum(scaled) / len(scaled)
    following = iter(scaled)
    return [mean if value is None or value - value != 0.0 else next(following) for value in values]


def _scaled(values: Sequence[float], how: Normalize) -> list[float]:
    if how == "None":
        return [0.0 if value <= 0.0 else min(value, TOP) for value in values]
    if how == "Rank":
        distinct = sorted(set(values))
        if len(distinct) == 1:
            return [TOP] * len(values)
        step = len(distinct) - 1
        rank = {value: TOP * at / step for at, value in enumerate(distinct)}
        return [rank[value] for value in values]
    low, high = min(values), max(values)
    if high - low < _EQUAL:
        return [TOP] * len(values)
    if math.isinf(high - low):  # the span overflows: compute with halves
        low, high, values = low / 2, high / 2, [value / 2 for value in values]
    span = high - low
    return [TOP * ((value - low) / span) for value in values]


def weigh(scores: list[float], weight: int) -> list[float]:
    """Return the points of a rule, which are its scores times its weight."""
    return scores if weight == 1 else [weight * score for score in scores]


def totals(rules: Sequence[tuple[Values, Normalize, int]], size: int) -> list[float]:
    """Return the sum of all rules for each node, independent of the order of the rules."""
    scored = ((normalize_scores(values, how), weight) for values, how, weight in rules)
    return sums([weigh(scores, weight) for scores, weight in scored if scores is not None], size)


def sums(columns: Sequence[list[float]], size: int) -> list[float]:
    """Return the sum of the points of all rules for each node."""
    if len(columns) == 1:
        return columns[0]
    if len(columns) == 2:  # the sum of two is rounded once, whatever their order
        return [*map(add, *columns)]
    return [math.fsum(row) for row in zip(*columns, strict=True)] if columns else [0.0] * size


def on_the_wire(sums: Sequence[float]) -> list[int]:
    """Return what is sent: shifted so that the lowest is 0, divided by `STEP`, rounded half up."""
    distinct = {*sums}
    low = min(distinct, default=0.0)
    if len(distinct) > len(sums) // _FEW:
        return _points(sums, low)
    points = dict(zip(distinct, _points(distinct, low), strict=True))
    return [*map(points.__getitem__, sums)]


def _points(sums: Iterable[float], low: float) -> list[int]:
    return [(int(total - low) + STEP // 2) // STEP for total in sums]  # exact, as half a step is a whole number
