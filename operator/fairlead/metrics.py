"""Metrics, and their exposition for Prometheus.

Counters and histograms are plain numbers, because those of prometheus-client take a lock at each call: one that is
counted takes 0.4 us here and 0.7 there, one that is observed 0.7 and 1.0, and a call of a scheduler does three to five
of these. Families, the text format and the collectors of the process and its garbage collector are the library's.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

BUCKETS: Final = (
    *(0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0008, 0.001, 0.0012, 0.0015, 0.002, 0.003, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
)
"""Of calls of schedulers."""
LONG_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0)
"""Of what the leader does."""
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
        """Yield what the library writes."""
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        yield family


@dataclass(slots=True)
class Histogram:
    """Times in seconds, by labels; of more than `limit` label sets the rest are one."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = BUCKETS
    limit: int = 1000
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def begin(self, *labels: str) -> Labels:
        """Tell of these labels from now on: where a series begins with 1, Prometheus sees no increase."""
        if labels not in self.counts and len(self.counts) >= self.limit:
            labels = ("other",) * len(labels)
        if labels not in self.counts:
            self.sums[labels], self.counts[labels] = 0.0, [0] * (len(self.buckets) + 1)
        return labels

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one duration."""
        counts = self.counts.get(labels)
        if counts is None:
            labels = self.begin(*labels)
            counts = self.counts[labels]
        counts[bisect_left(self.buckets, seconds)] += 1
        self.sums[labels] += seconds

    def families(self) -> Iterator[Metric]:
        """Yield what the library writes."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, counts in sorted(self.counts.items()):
            total, buckets = 0, []
            for bound, count in zip((*map(str, self.buckets), "+Inf"), counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(labels, buckets, self.sums[labels])
        yield family


@dataclass(slots=True)
class Gauges:
    """Numbers that are asked for at each scrape."""

    name: str
    help: str
    labels: tuple[str, ...]
    ask: Gauge
    grows: bool = False
    """Whether they only ever grow."""

    def families(self) -> Iterator[Metric]:
        """Yield what the library writes."""
        kind = CounterMetricFamily if self.grows else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.ask().items()):
            family.add_metric(labels, value)
        yield family


Kept = Counter | Histogram | Gauges
PROCESS: Final[tuple[Collector, ...]] = (PROCESS_COLLECTOR, GC_COLLECTOR)


class _Collector(Collector):
    def __init__(self, kept: Iterable[Kept]) -> None:
        self.kept = kept

    def collect(self) -> Iterator[Metric]:
        for one in self.kept:
            yield from one.families()


@dataclass(slots=True)
class Metrics:
    """Metrics of this process."""

    kept: list[Kept] = field(default_factory=list)
    collectors: tuple[Collector, ...] = ()
    """What else is told: `PROCESS` of a program of its own."""

    def counter(self, name: str, help: str, *labels: str) -> Counter:  # noqa: A002 - as Prometheus calls it
        """Make a counter; its name is told with `_total`."""
        made = Counter(name, help, labels)
        self.kept.append(made)
        return made

    def histogram(self, name: str, help: str, *labels: str, buckets: tuple[float, ...] = BUCKETS) -> Histogram:  # noqa: A002
        """Make a histogram of seconds."""
        made = Histogram(name, help, labels, buckets)
        self.kept.append(made)
        return made

    def gauge(self, name: str, help: str, *labels: str, ask: Gauge, grows: bool = False) -> None:  # noqa: A002
        """Have numbers asked for at each scrape; `grows`: they are a counter's."""
        self.kept.append(Gauges(name, help, labels, ask, grows))

    def exposition(self) -> bytes:
        """Return the text for a scrape."""
        registry = CollectorRegistry()
        for each in (_Collector(self.kept), *self.collectors):
            registry.register(each)
        return generate_latest(registry)
