"""What is counted, and how it is told to Prometheus.

Whoever counts adds to plain numbers: nothing on the way of a request takes a lock or looks a label up twice.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

BUCKETS: Final = (
    *(0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0008, 0.001, 0.0012, 0.0015, 0.002, 0.003, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
)
Labels = tuple[str, ...]
Gauge = Callable[[], Mapping[Labels, float]]


@dataclass(slots=True)
class Counter:
    """Numbers that grow, by labels; of more than `limit` label sets the rest are one."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    limit: int = 1000
    values: dict[Labels, float] = field(default_factory=dict)

    def add(self, *labels: str, amount: float = 1) -> None:
        """Count."""
        values = self.values
        if labels not in values and len(values) >= self.limit:
            labels = ("other",) * len(labels)
        values[labels] = values.get(labels, 0) + amount

    def families(self) -> Iterator[Metric]:
        """As Prometheus wants it."""
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        yield family


@dataclass(slots=True)
class Histogram:
    """Times in seconds, by labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one."""
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.counts[labels] = [0] * (len(BUCKETS) + 1)
            self.sums[labels] = 0.0
        counts[bisect_left(BUCKETS, seconds)] += 1
        self.sums[labels] += seconds

    def families(self) -> Iterator[Metric]:
        """As Prometheus wants it."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, counts in sorted(self.counts.items()):
            total, buckets = 0, []
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(labels, buckets, self.sums[labels])
        yield family


@dataclass(slots=True)
class Gauges:
    """Numbers that are asked for when somebody looks."""

    name: str
    help: str
    labels: tuple[str, ...]
    ask: Gauge
    grows: bool = False
    """Whether they only ever grow."""

    def families(self) -> Iterator[Metric]:
        """As Prometheus wants it."""
        kind = CounterMetricFamily if self.grows else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.ask().items()):
            family.add_metric(labels, value)
        yield family


Kept = Counter | Histogram | Gauges


class _Collector(Collector):
    def __init__(self, kept: Iterable[Kept]) -> None:
        self.kept = kept

    def collect(self) -> Iterator[Metric]:
        for one in self.kept:
            yield from one.families()


@dataclass(slots=True)
class Metrics:
    """All that is counted in this process."""

    kept: list[Kept] = field(default_factory=list)

    def counter(self, name: str, help: str, *labels: str) -> Counter:  # noqa: A002 - as Prometheus calls it
        """A new one."""
        made = Counter(name, help, labels)
        self.kept.append(made)
        return made

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:  # noqa: A002
        """A new one."""
        made = Histogram(name, help, labels)
        self.kept.append(made)
        return made

    def gauge(self, name: str, help: str, *labels: str, ask: Gauge, grows: bool = False) -> None:  # noqa: A002
        """A new one."""
        self.kept.append(Gauges(name, help, labels, ask, grows))

    def exposition(self) -> bytes:
        """The text for a scrape."""
        registry = CollectorRegistry()
        registry.register(_Collector(self.kept))
        return generate_latest(registry)
