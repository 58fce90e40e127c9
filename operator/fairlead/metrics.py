"""Metrics, and their exposition for Prometheus.

Counters and histograms are plain numbers, because those of prometheus-client take a lock for each value: a counter
takes 0.25 us here and 0.42 there, a histogram 0.38 and 0.92, and a scheduler's call updates three to five of them
(decision 16). Families, the text format and the collectors of the process and its garbage collector are the library's.
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
"""Buckets for calls of schedulers."""
LONG_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0)
"""Buckets for reconciles and rollouts."""
Labels = tuple[str, ...]
Gauge = Callable[[], Mapping[Labels, float]]


@dataclass(slots=True)
class Counter:
    """Counter by label sets; label sets beyond `limit` are counted as `other`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    limit: int = 1000
    values: dict[Labels, float] = field(default_factory=dict)

    def add(self, *labels: str, amount: float = 1) -> None:
        """Add to the counter of a label set."""
        values = self.values
        if labels not in values and len(values) >= self.limit:
            labels = ("other",) * len(labels)
        values[labels] = values.get(labels, 0) + amount

    def families(self) -> Iterator[Metric]:
        """Yield the metric family to expose."""
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        yield family


@dataclass(slots=True)
class Histogram:
    """Histogram of seconds by label sets; label sets beyond `limit` are counted as `other`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = BUCKETS
    limit: int = 1000
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def begin(self, *labels: str) -> Labels:
        """Expose a label set from now on: Prometheus sees no increase in a series that begins with 1."""
        if labels not in self.counts and len(self.counts) >= self.limit:
            labels = ("other",) * len(labels)
        if labels not in self.counts:
            self.sums[labels], self.counts[labels] = 0.0, [0] * (len(self.buckets) + 1)
        return labels

    def observe(self, seconds: float, *labels: str) -> None:
        """Add a duration."""
        counts = self.counts.get(labels)
        if counts is None:
            labels = self.begin(*labels)
            counts = self.counts[labels]
        counts[bisect_left(self.buckets, seconds)] += 1
        self.sums[labels] += seconds

    def families(self) -> Iterator[Metric]:
        """Yield the metric family to expose."""
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
    """Gauges, or counters, that are computed at each scrape."""

    name: str
    help: str
    labels: tuple[str, ...]
    ask: Gauge
    grows: bool = False
    """Whether they only grow, and so are counters."""

    def families(self) -> Iterator[Metric]:
        """Yield the metric family to expose."""
        kind = CounterMetricFamily if self.grows else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.ask().items()):
            family.add_metric(labels, value)
        yield family


OwnMetric = Counter | Histogram | Gauges
PROCESS: Final[tuple[Collector, ...]] = (PROCESS_COLLECTOR, GC_COLLECTOR)


class _Collector(Collector):
    def __init__(self, own: Iterable[OwnMetric]) -> None:
        self.own = own

    def collect(self) -> Iterator[Metric]:
        for one in self.own:
            yield from one.families()


@dataclass(slots=True)
class Metrics:
    """Registry of this process's metrics."""

    own: list[OwnMetric] = field(default_factory=list)
    collectors: tuple[Collector, ...] = ()
    """Further collectors: `PROCESS` if this process is a program of its own."""

    def add(self, *metrics: OwnMetric) -> None:
        """Register metrics that were made by their owners."""
        self.own.extend(metrics)

    def counter(self, name: str, help: str, *labels: str) -> Counter:  # noqa: A002 - as Prometheus calls it
        """Register a counter; it is exposed with the suffix `_total`."""
        metric = Counter(name, help, labels)
        self.own.append(metric)
        return metric

    def histogram(self, name: str, help: str, *labels: str, buckets: tuple[float, ...] = BUCKETS) -> Histogram:  # noqa: A002
        """Register a histogram of seconds."""
        metric = Histogram(name, help, labels, buckets)
        self.own.append(metric)
        return metric

    def gauge(self, name: str, help: str, *labels: str, ask: Gauge, grows: bool = False) -> None:  # noqa: A002
        """Register a function that is called at each scrape; `grows`: its values are counters."""
        self.own.append(Gauges(name, help, labels, ask, grows))

    def exposition(self) -> bytes:
        """Return the text for a scrape."""
        registry = CollectorRegistry()
        for each in (_Collector(self.own), *self.collectors):
            registry.register(each)
        return generate_latest(registry)
