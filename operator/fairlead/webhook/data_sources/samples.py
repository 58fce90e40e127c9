"""Samples of a reply of Prometheus by node, and what the owner of the query is told of them. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from fairlead.policy.nodes.polls import Reading
from fairlead.time_units import SECOND_NS

NodeOf = Callable[[str], str | None]
"""Returns the name of the node that the value of a label names, or None."""
_LISTED_MAX: Final = 8
TEXT_MAX: Final = 300
"""Length of a server's text in messages."""
_SHORT_MAX: Final = 60
_LIKELY: Final = (
    "node",
    "instance",
    "nodename",
    "kubernetes_node",
    "exported_instance",
    "Hostname",
    "hostname",
    "host",
)
_LATEST_S: Final = 1e11  # the year 5138; what is later is no time


@dataclass(slots=True, eq=False)
class NodeSamples:
    """Samples of one reply, by node."""

    label: str
    values: dict[str, float] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)
    no_number: set[str] = field(default_factory=set)
    series: int = 0
    unnamed: int = 0
    stranger: str = ""
    """Value of the label of one series that names no node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the first series, if no series names a node."""
    warnings: Collection[str] = ()
    """The first few."""

    def add(self, series: Collection[Any], node_of: NodeOf) -> None:
        """Add series."""
        values, no_number, several = self.values, self.no_number, self.several
        for one in series:
            label = one.metric.label
            node = node_of(label)
            if node is None:
                self.stranger = self.stranger or label[:TEXT_MAX]
                self.unnamed += 1
            elif node in values or node in no_number or node in several:
                values.pop(node, None)
                no_number.discard(node)
                several.add(node)
            elif (number := _number(one.value)) is None:
                no_number.add(node)
            else:
                values[node] = number
        self.series += len(series)

    @property
    def named(self) -> int:
        """Number of series that name a node."""
        return self.series - self.unnamed

    def note(self, node_of: NodeOf) -> str:
        """Return advice for the owner of the query; "" if there is none."""
        said = [f"the server warns: {one_line(one, TEXT_MAX)}" for one in self.warnings]
        if not self.series:
            said.append("the query gives no series")
        elif not self.named:
            said.append(f"of {self.series} series none names a node by label {self.label}; {self._has(node_of)}")
        elif self.named < self.series:
            such = f", such as {one_line(self.stranger)}" if self.stranger else f": they have no label {self.label}"
            said.append(
                f"of {self.series} series {self.named} name a node by label {self.label}; the others name none{such}"
            )
        if self.several:
            said.append(
                f"{_of(self.several, 'has', 'have')} several series: aggregate them in the query, such as"
                f" max by ({self.label}) (...)"
            )
        return "; ".join(said)

    def _has(self, node_of: NodeOf) -> str:
        """Return which labels the series have, with the value of the one that names nodes, or is most likely to."""
        labels = {name: value for name, value in self.labels.items() if name != "__name__"}
        if not labels:
            return f"they have no labels: aggregate them in the query by node, such as max by ({self.label}) (...)"
        names = [name for name, value in labels.items() if node_of(value) is not None]
        likely = (*names, self.label, *_LIKELY, *sorted(labels))
        first = next(name for name in likely if name in labels)
        rest = sorted(labels.keys() - {first})
        text = ", ".join([f"{first} ({one_line(labels[first])})", *rest[: _LISTED_MAX - 1]])
        text += f" and {more} more" if (more := len(rest) - _LISTED_MAX + 1) > 0 else ""
        return f"they have {text}" + (f": set nodeLabel to {first}" if names else "")


def reading(samples: NodeSamples, times: NodeSamples | None, sent: int, node_of: NodeOf) -> Reading:
    """Return the result of a poll. `times` are those of a time query; without one it is `sent`, in nanoseconds."""
    note = samples.note(node_of)
    if times is None:
        return Reading(samples.values, sent, frozenset(samples.several), frozenset(samples.no_number), note)
    at = {node: int(time * SECOND_NS) for node, time in times.values.items() if 0 < time < _LATEST_S}
    several = frozenset(samples.several | times.several)
    values = {node: value for node, value in samples.values.items() if node in at}
    untimed = {node for node in samples.values if node not in at and node not in several}
    said = [note] if note else []
    if of_times := times.note(node_of):
        said.append(f"timeQuery: {of_times}")
    if untimed:
        said.append(f"{_of(untimed, 'has', 'have')} no time from timeQuery, so that the value does not count")
    known = {node: at[node] for node in values}
    return Reading(values, known, several, frozenset(samples.no_number), "; ".join(said))


def _number(value: tuple[float, str] | None) -> float | None:
    """Return a finite number; None for anything else."""
    if value is None:
        return None
    try:
        number = float(value[1])
    except ValueError:
        return None
    return number if isfinite(number) else None


def _of(nodes: Collection[str], has: str, have: str) -> str:
    """Return how many nodes have something, with one of them."""
    one = min(nodes)
    return f"node {one} {has}" if len(nodes) == 1 else f"{len(nodes)} nodes, such as {one}, {have}"


def one_line(text: str, most: int = _SHORT_MAX) -> str:
    """Return text of others for a message: one line, never long."""
    shown = " ".join(text[: most + 1].split())
    shown = "".join(one if one.isprintable() else "?" for one in shown)
    return shown if len(text) <= most else f"{shown[:most]}..."
