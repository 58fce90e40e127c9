"""From raw values to what the scheduler is told.

A value is brought to 0..100 by the rule's normalisation, over the nodes of one call; the rule's weight counts after
that. A node without a value gets the mean of the others, so that not knowing is neither good nor bad; when nobody has
one, the rule adds nothing.
"""

import math
from collections.abc import Sequence
from typing import Final

from fairlead.strategies.seam import Normalize

TOP: Final = 100.0
_EQUAL: Final = 1e-9


def normalized(values: Sequence[float | None], how: Normalize) -> list[float] | None:
    """Scores from 0 to 100, one for each value; None if there is no value at all."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    if len(known) == len(values):
        return _scaled(known, known, how)
    scaled = _scaled(known, known, how)
    mean = math.fsum(scaled) / len(scaled)
    following = iter(scaled)
    return [mean if value is None or not math.isfinite(value) else next(following) for value in values]


def _scaled(values: Sequence[float], known: Sequence[float], how: Normalize) -> list[float]:
    if how == "None":
        return [0.0 if value < 0.0 else min(value, TOP) for value in values]
    if how == "Rank":
        distinct = sorted(set(known))
        if len(distinct) == 1:
            return [TOP] * len(values)
        step = TOP / (len(distinct) - 1)
        rank = {value: at * step for at, value in enumerate(distinct)}
        return [rank[value] for value in values]
    low, high = min(known), max(known)
    if high - low < _EQUAL:
        return [TOP] * len(values)
    if math.isinf(high - low):  # halves, so that the span of extreme values has room
        return [TOP * ((value / 2 - low / 2) / (high / 2 - low / 2)) for value in values]
    return [TOP * ((value - low) / (high - low)) for value in values]


def totals(rules: Sequence[tuple[Sequence[float | None], Normalize, int]], size: int) -> list[float]:
    """The sum of all rules for each node."""
    sums = [0.0] * size
    for values, how, weight in rules:
        scores = normalized(values, how)
        if scores is not None:
            sums = [total + weight * score for total, score in zip(sums, scores, strict=True)]
    return sums


def on_the_wire(sums: Sequence[float]) -> list[int]:
    """What is sent: shifted so that the lowest is 0, divided by 10 (the scheduler multiplies by 10), rounded half up."""
    if not sums:
        return []
    low = min(sums)
    return [math.floor((total - low) / 10.0 + 0.5) for total in sums]
