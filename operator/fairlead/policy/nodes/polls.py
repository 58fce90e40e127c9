"""Polls of measured values: what is asked for, and what came back. Entries with equal keys share one.

A poll says itself what depends on its source, so that tables, limits and reports know no sources.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Protocol

from fairlead.api.data import DataEntry

DOCUMENT_INTERVAL_S: Final = 5
"""How often documents are given to nodes: a node may have joined, or have another label. They are in memory."""


class Poll(Protocol):
    """Source of values, and what is asked of it. Equal polls are asked once; they are the keys of mappings."""

    @property
    def field(self) -> str:
        """Field of a `data` entry that names it."""

    @property
    def server(self) -> str | None:
        """Server whose limits hold for it; None if it shares those of its field."""

    @property
    def name(self) -> str:
        """Name in messages, metrics and reports."""

    @property
    def interval_s(self) -> int:
        """Seconds from one reading to the next."""

    @property
    def is_whole(self) -> bool:
        """True if a reading has all values: a node that it does not name has none."""

    @property
    def key_label(self) -> str | None:
        """Label of nodes whose value is looked up; None if values are by the name of the node."""

    def __hash__(self) -> int: ...


class PollError(Exception):
    """Failed poll, with a message for users."""


def decode_fault(error: Exception) -> str:
    """Return why data cannot be decoded; Python has other words in each version for what is nested too deeply."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


@dataclass(frozen=True, slots=True)
class PrometheusPoll:
    """Instant query to a Prometheus server."""

    server: str
    query: str
    node_label: str
    time_query: str | None
    interval_s: int
    field: ClassVar = "prometheus"
    is_whole: ClassVar = False
    key_label: ClassVar = None

    @property
    def name(self) -> str:
        """Name in messages, metrics and reports."""
        return f"prometheus {self.server}: {self.query}"


@dataclass(frozen=True, slots=True)
class NodeMetricsPoll:
    """Usage of all nodes from the metrics API."""

    resource: str
    unit: str
    interval_s: int
    field: ClassVar = "nodeMetrics"
    server: ClassVar = None
    is_whole: ClassVar = False
    key_label: ClassVar = None

    @property
    def name(self) -> str:
        """Name in messages, metrics and reports."""
        return f"nodeMetrics {self.resource}"


@dataclass(frozen=True, slots=True)
class ConfigMapPoll:
    """Document in a ConfigMap of the operator's namespace, which is watched instead of polled."""

    config_map: str
    key: str
    key_label: str | None
    field: ClassVar = "configMap"
    server: ClassVar = None
    interval_s: ClassVar = DOCUMENT_INTERVAL_S
    is_whole: ClassVar = True

    @property
    def name(self) -> str:
        """Name in messages, metrics and reports."""
        return f"configMap {self.config_map}/{self.key}"


class Reading(NamedTuple):
    """Result of one poll. A node that it does not name keeps its last value, with the time of that value."""

    values: Mapping[str, float]
    """Finite values by the name of the node."""
    times: int | Mapping[str, int] | None
    """Time of all values or, by node, of each, in nanoseconds; None if they tell none."""
    several: frozenset[str] = frozenset()
    """Nodes with several values, so that none counts."""
    no_number: frozenset[str] = frozenset()
    """Nodes whose value is no finite number."""
    note: str = ""
    """Advice for the owner of the policy, such as why no value names a node; "" if there is none."""
    by_label: Mapping[str, float] = MappingProxyType({})
    """Values by the value of a label, of a document in which a label is looked up; NaN for one that is not a number."""

    def time_of(self, node: str) -> int | None:
        """Return the time of the value of a node."""
        return self.times.get(node) if isinstance(self.times, Mapping) else self.times


def poll_of(entry: DataEntry) -> Poll | None:
    """Return the poll that an entry takes its values from; None if it reads them from the node object."""
    if (one := entry.prometheus) is not None:
        return PrometheusPoll(one.server, one.query, one.node_label, one.time_query, one.interval.seconds)
    if (metrics := entry.node_metrics) is not None:
        return NodeMetricsPoll(metrics.resource, metrics.unit, metrics.interval.seconds)
    if (document := entry.config_map) is not None:
        return ConfigMapPoll(document.name, document.key, document.key_label)
    return None
