"""Duration of calls between two moments, from the histograms of processes that come and go: pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

Buckets = Mapping[float, float]
"""Number of calls that took at most so many seconds, by that time; each without those of the bucket before."""


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """Histogram of one pod at one moment, since its process began."""

    at_s: float
    pod: str
    buckets: Buckets


def between(samples: Iterable[HistogramSample], begin_s: float, end_s: float) -> Buckets:
    """Return the calls in that time. The histogram of a process that has begun since is all of it its own."""
    by_pod: dict[str, list[HistogramSample]] = {}
    for one in samples:
        by_pod.setdefault(one.pod, []).append(one)
    total = defaultdict[float, float](float)
    for series in by_pod.values():
        for before, after in pairwise([HistogramSample(0.0, "", {}), *series]):
            if begin_s < after.at_s <= end_s:
                for until, count in _since(before.buckets, after.buckets).items():
                    total[until] += count
    return total


def _since(before: Buckets, after: Buckets) -> dict[float, float]:
    if any(after.get(until, 0.0) < count for until, count in before.items()):
        return {**after}
    return {until: count - before.get(until, 0.0) for until, count in after.items()}


def quantile_ms(buckets: Buckets, share: float) -> float:
    """Return the time within which that share of the calls was answered; as in Prometheus, even within a bucket."""
    rank, seen, lower = share * sum(buckets.values()), 0.0, 0.0
    for until in sorted(buckets):
        if seen + buckets[until] >= rank and buckets[until]:
            upper = lower if math.isinf(until) else until
            return 1000 * (lower + (upper - lower) * (rank - seen) / buckets[until])
        seen, lower = seen + buckets[until], until
    return math.nan
