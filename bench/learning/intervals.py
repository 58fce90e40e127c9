"""Means of several runs, with intervals. Pure."""

import random
from collections.abc import Sequence
from statistics import fmean
from typing import Final, NamedTuple

_DRAWN: Final = 10_000


class Mean(NamedTuple):
    """Mean of some runs, and an interval of 95 %."""

    value: float
    low: float
    high: float

    def text(self, form: str) -> str:
        """Write it in that format."""
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


def mean(values: Sequence[float]) -> Mean:
    """Return the mean, with an interval bootstrapped from the runs; the same runs give the same interval."""
    draw = random.Random(0)  # noqa: S311  no secret
    drawn = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(_DRAWN))
    return Mean(fmean(values), drawn[_DRAWN // 40], drawn[-_DRAWN // 40])
