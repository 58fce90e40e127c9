"""Data entries: values per node that rules read, with their source and greatest age."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import Check, Params, exactly_one_of
from fairlead.api.values import Duration, Identifier, QualifiedKey, within

_Bounded = Field(ge=-1e18, le=1e18)


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
    def checks(cls) -> tuple[Check, ...]:
        """Allow at most one source of the time."""
        return (
            Check(
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


class DataEntry(Params):
    """A value per node, which expressions read as `data` and its name."""

    name: Identifier
    """Name in expressions, such as load in data.load."""
    node_annotation: NodeAnnotation | None = None
    """Take the value from an annotation of the node."""
    node_label: NodeLabel | None = None
    """Take the value from a label of the node."""
    factor: Annotated[float, _Bounded] = 1.0
    """Factor for the value, such as 0.001 to convert millicores to cores. 1 when absent."""
    default: Annotated[float, _Bounded] | None = None
    """Value for a node that has none, never for one whose value is too old. Absent: a rule that reads the value of such
    a node cannot decide, and its onError applies."""
    max_age: Annotated[Duration, within("1s", "168h")] | None = None
    """Age after which a value counts as missing, such as 90s, 5m or 1h30m. The source must give the time when the value
    was written. Absent: values never expire."""

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """Require one source, and allow an age only if the source gives the time."""
        return (
            exactly_one_of("nodeAnnotation", "nodeLabel"),
            Check(
                rule="!has(self.factor) || self.factor != 0.0",
                holds=lambda self: self.factor != 0,
                message="a factor of 0 makes every value 0: leave factor out to take values as they are",
                field="factor",
            ),
            Check(
                rule="!has(self.maxAge) || !has(self.nodeLabel)",
                holds=lambda self: self.max_age is None or self.node_label is None,
                message="a label does not tell when it was written: leave maxAge out or use a nodeAnnotation",
                field="maxAge",
            ),
            Check(
                rule="!has(self.maxAge) || !has(self.nodeAnnotation) || has(self.nodeAnnotation.timeKey)"
                " || (has(self.nodeAnnotation.format) && self.nodeAnnotation.format == 'ValueCommaTime')",
                holds=lambda self: self.max_age is None or _tells_time(self.node_annotation),
                message="maxAge needs the time the value was written: give nodeAnnotation.timeKey,"
                " or write the value as ValueCommaTime",
                field="maxAge",
            ),
        )


def _tells_time(source: NodeAnnotation | None) -> bool:
    return source is None or source.time_key is not None or source.format == "ValueCommaTime"
