"""Polls of measured values: what is asked for, and what came back. Entries with equal keys share one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fairlead.api.data import DataEntry


class PrometheusPoll(NamedTuple):
    """Instant query to a Prometheus server."""

    server: str
    query: str
    node_label: str
    time_query: str | None
    interval_s: int


class NodeMetricsPoll(NamedTuple):
    """Usage of all nodes from the metrics API."""

    resource: str
    unit: str
    interval_s: int


class ConfigMapPoll(NamedTuple):
    """Document in a ConfigMap of the operator's namespace, which is watched instead of polled."""

    name: str
    key: str
    key_label: str | None


Poll: TypeAlias = PrometheusPoll | NodeMetricsPoll | ConfigMapPoll


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
    """Values by the value of a label, of a document in which a label is looked up; NaN for one that is no number."""

    def time_of(self, node: str) -> int | None:
        """Return the time of the value of a node."""
        return self.times.get(node) if isinstance(self.times, Mapping) else self.times


def poll_name(poll: Poll) -> str:
    """Return how messages name a poll."""
    if isinstance(poll, PrometheusPoll):
        return f"prometheus {poll.server}: {poll.query}"
    if isinstance(poll, NodeMetricsPoll):
        return f"nodeMetrics {poll.resource}"
    return f"configMap {poll.name}/{poll.key}"


def poll_of(entry: DataEntry) -> Poll | None:
    """Return the poll that an entry takes its values from; None if it reads them from the node object."""
    if (one := entry.prometheus) is not None:
        return PrometheusPoll(one.server, one.query, one.node_label, one.time_query, one.interval.seconds)
    if (metrics := entry.node_metrics) is not None:
        return NodeMetricsPoll(metrics.resource, metrics.unit, metrics.interval.seconds)
    if (document := entry.config_map) is not None:
        return ConfigMapPoll(document.name, document.key, document.key_label)
    return None
