"""Data entries: values per node that rules read, with their source and greatest age."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import FieldCheck, Params, exactly_one_of
from fairlead.api.values import Duration, Identifier, Name, ObjectName, QualifiedKey, Shape, within

_Bounded = Field(ge=-1e18, le=1e18)
_POLLS_PER_AGE = 4
_AGE_OF_NODE_METRICS_S = 180
"""metrics-server of older versions measures once a minute, and what it serves is up to 85 s old."""
_Query = Annotated[str, Field(min_length=1, max_length=4096)]
_PrometheusLabel = Annotated[
    str,
    Field(min_length=1, max_length=128),
    Shape("[a-zA-Z_][a-zA-Z0-9_]*", "write the name of a Prometheus label, such as instance or node"),
]
_DataKey = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Shape("[-._a-zA-Z0-9]+", "write a key of a ConfigMap, such as values.json: letters, digits, '-', '_' and '.'"),
]


class NodeAnnotation(Params):
    """A value in an annotation of the node, written by another program."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    key: QualifiedKey
    """Annotation that holds the value."""
    format: Literal["Number", "Quantity", "ValueCommaTime"] = "Number"
    """Format of the value: Number such as 0.5, Quantity such as 500m or 2Gi, ValueCommaTime a number, a comma and the
    time it was written (RFC 3339 or Unix seconds). Number when absent."""
    time_key: QualifiedKey | None = None
    """Annotation that holds the time when the value was written, in RFC 3339 or Unix seconds."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Allow at most one source of the time, and none that holds the value."""
        return (
            FieldCheck(
                rule="!has(self.timeKey) || self.timeKey != self.key",
                holds=lambda self: self.time_key != self.key,
                message="one annotation cannot hold value and time: name another, or use the format ValueCommaTime",
                field="timeKey",
            ),
            FieldCheck(
                rule="!has(self.timeKey) || !has(self.format) || self.format != 'ValueCommaTime'",
                holds=lambda self: self.time_key is None or self.format != "ValueCommaTime",
                message="the format ValueCommaTime has the time in the value: leave timeKey out",
                field="timeKey",
            ),
        )


class NodeLabel(Params):
    """A value in a label of the node. It has no time and always counts as fresh."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    key: QualifiedKey
    """Label that holds the value."""
    format: Literal["Number", "Quantity"] = "Number"
    """Format of the value: Number such as 0.5, Quantity such as 500m or 2Gi. Number when absent."""


class Prometheus(Params):
    """A value from an instant query to a Prometheus server, or to one that has its API."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    query: _Query
    """PromQL that gives one series per node, such as instance:node_cpu:ratio."""
    node_label: _PrometheusLabel = "instance"
    """Label of the series that names the node: its name or one of its addresses, with or without a port. instance when
    absent."""
    interval: Annotated[Duration, within("5s", "1h")] = Duration("15s")
    """Time between two queries. 15s when absent."""
    time_query: _Query | None = None
    """PromQL that gives for each node the time of its value in Unix seconds, such as timestamp(node_load1). Absent: the
    time of the query, although the server may answer with a sample that is up to 5 minutes older."""
    server: Name = "default"
    """Name of the server in the operator's settings. default when absent."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Refuse blank queries."""
        return (
            FieldCheck(
                rule="self.query.trim() != ''",
                holds=lambda self: bool(self.query.strip()),
                message="must not be blank: write PromQL that gives one series per node",
                field="query",
            ),
            FieldCheck(
                rule="!has(self.timeQuery) || self.timeQuery.trim() != ''",
                holds=lambda self: self.time_query is None or bool(self.time_query.strip()),
                message="must not be blank: write PromQL such as timestamp(node_load1), or leave it out",
                field="timeQuery",
            ),
        )


class NodeMetrics(Params):
    """The usage of a node as kubectl top shows it, from the API metrics.k8s.io."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    resource: Literal["cpu", "memory"]
    """Resource that is measured."""
    unit: Annotated[Literal["Base", "Ratio"], Field(alias="as")] = "Base"
    """Base gives cores or bytes, Ratio the share of the node's capacity, from 0 to 1. Base when absent."""
    interval: Annotated[Duration, within("10s", "10m")] = Duration("30s")
    """Time between two requests. 30s when absent."""


class ConfigMapValues(Params):
    """A value from a ConfigMap in the operator's namespace, with the JSON document {"at": TIME, "values": {NODE: 0.4}}.

    The time, in RFC 3339, is that of all values; a document without it has values of any age.
    """

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: ObjectName
    """Name of the ConfigMap."""
    key: _DataKey = "values.json"
    """Key that holds the document. values.json when absent."""
    key_label: QualifiedKey | None = None
    """Label of the node whose value is looked up in the document, such as node.kubernetes.io/instance-type. Absent: the
    node's name is looked up."""


class DataEntry(Params):
    """A value per node, which expressions read as `data` and its name."""

    name: Identifier
    """Name in expressions, such as load in data.load."""
    node_annotation: NodeAnnotation | None = None
    """Take the value from an annotation of the node."""
    node_label: NodeLabel | None = None
    """Take the value from a label of the node."""
    prometheus: Prometheus | None = None
    """Take the value from Prometheus."""
    node_metrics: NodeMetrics | None = None
    """Take the value from the metrics API, as kubectl top does."""
    config_map: ConfigMapValues | None = None
    """Take the value from a ConfigMap in the operator's namespace."""
    factor: Annotated[float, _Bounded] = 1.0
    """Factor for the value, such as 0.001 to convert millicores to cores. 1 when absent."""
    round: Annotated[float, Field(ge=1e-9, le=1e18)] | None = None
    """Step to which the value is rounded after the factor, half up, such as 0.05. Smaller changes cost nothing.
    Absent: no rounding."""
    default: Annotated[float, _Bounded] | None = None
    """Value for a node that never had one. It does not replace a value that is too old. Absent: a rule that reads the
    value of such a node cannot decide, and its onError applies."""
    default_for: Annotated[Duration, within("0s", "24h")] | None = None
    """Age of a node up to which default applies to a measured value; later the value is missing. 10m when absent."""
    max_age: Annotated[Duration, within("1s", "168h")] | None = None
    """Age after which a value counts as missing, such as 90s, 5m or 1h30m. The source must give the time when the value
    was written. Absent: four times the interval for prometheus, the same but at least 3m for nodeMetrics; other values
    never expire."""

    @property
    def source(self) -> str:
        """Source of the values, as reports name it."""
        if (server := self.prometheus) is not None:
            return f"prometheus {server.server}"
        if (metrics := self.node_metrics) is not None:
            return f"nodeMetrics {metrics.resource}"
        if (document := self.config_map) is not None:
            return f"configMap {document.name}"
        if (annotation := self.node_annotation) is not None:
            return f"nodeAnnotation {annotation.key}"
        return "" if self.node_label is None else f"nodeLabel {self.node_label.key}"

    @property
    def interval_s(self) -> int | None:
        """Seconds between two polls; None for a source that is not polled."""
        source = self.prometheus or self.node_metrics
        return None if source is None else source.interval.seconds

    @property
    def greatest_age_s(self) -> int | None:
        """Greatest age of a value in seconds; None if values never expire."""
        if self.max_age is not None:
            return self.max_age.seconds
        interval_s = self.interval_s
        if interval_s is None:
            return None
        return max(_POLLS_PER_AGE * interval_s, _AGE_OF_NODE_METRICS_S if self.node_metrics else 0)

    @property
    def default_for_s(self) -> int | None:
        """Age of a node in seconds up to which `default` applies; None: at any age."""
        if self.default is None or self.interval_s is None:
            return None
        return 600 if self.default_for is None else self.default_for.seconds

    @property
    def tells_time(self) -> bool:
        """Return whether values can have a time: only a document itself tells whether it has one."""
        return self.node_label is None and _tells_time(self.node_annotation)

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require one source, and allow an age only if the source gives the time."""
        return (
            exactly_one_of("nodeAnnotation", "nodeLabel", "prometheus", "nodeMetrics", "configMap"),
            FieldCheck(
                rule="!has(self.factor) || self.factor != 0.0",
                holds=lambda self: self.factor != 0,
                message="a factor of 0 makes every value 0: leave factor out to take values as they are",
                field="factor",
            ),
            FieldCheck(
                rule="!has(self.maxAge) || !has(self.nodeLabel)",
                holds=lambda self: self.max_age is None or self.node_label is None,
                message="a label does not tell when it was written: leave maxAge out or use a nodeAnnotation",
                field="maxAge",
            ),
            FieldCheck(
                rule="!has(self.maxAge) || !has(self.nodeAnnotation) || has(self.nodeAnnotation.timeKey)"
                " || (has(self.nodeAnnotation.format) && self.nodeAnnotation.format == 'ValueCommaTime')",
                holds=lambda self: self.max_age is None or _tells_time(self.node_annotation),
                message="maxAge needs the time the value was written: give nodeAnnotation.timeKey,"
                " or write the value as ValueCommaTime",
                field="maxAge",
            ),
            *(
                FieldCheck(
                    rule=f"!has(self.maxAge) || !has(self.{source})"
                    f" || duration(self.maxAge) >= (has(self.{source}.interval) ? duration(self.{source}.interval)"
                    f" : duration('{interval}'))",
                    holds=_lasts_until_the_next(source),
                    message=f"maxAge is shorter than the interval of {source}: every value would be stale before the "
                    "next one comes",
                    field="maxAge",
                )
                for source, interval in (("prometheus", "15s"), ("nodeMetrics", "30s"))
            ),
            FieldCheck(
                rule="!has(self.defaultFor) || (has(self.default) && (has(self.prometheus) || has(self.nodeMetrics)))",
                holds=lambda self: self.default_for is None or self.default_for_s is not None,
                message="defaultFor limits the default of prometheus and nodeMetrics: give default, or leave it out",
                field="defaultFor",
            ),
        )


def _lasts_until_the_next(source: str) -> Callable[[DataEntry], bool]:
    def holds(entry: DataEntry) -> bool:
        given = {"prometheus": entry.prometheus, "nodeMetrics": entry.node_metrics}[source]
        return entry.max_age is None or given is None or entry.max_age.seconds >= given.interval.seconds

    return holds


def _tells_time(source: NodeAnnotation | None) -> bool:
    return source is None or source.time_key is not None or source.format == "ValueCommaTime"
