"""Nodes with a policy's data, made once and shared by all rules and classes of pods that read the same entries.

A view is used again while the node and its annotated data are the same objects, nothing was published or expired, and
the time of the call is one for which `Measurements.expire` has found that no value changes.
"""

from collections.abc import Iterable, Sequence

from fairlead.policy.nodes.measured_table import MeasuredEntry, Measurements
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.facts import Unknown

_NO_DATA = Data()
_Held = tuple[NodeView, Data | None, int, NodeView]
"""Node, its annotated data, version of the measurements, and the view that was made of these."""


class NodesWithData:
    """Nodes with some entries of a policy's data."""

    __slots__ = ("__weakref__", "_annotated", "_found", "_held", "_measurements", "_views")

    def __init__(
        self,
        views: Sequence[NodeView | None],
        annotated: Sequence[Data | None],
        measured_entries: Sequence[MeasuredEntry],
        measurements: Measurements,
    ) -> None:
        """Take nodes and their annotated data by slot: both change."""
        self._views = views
        self._annotated = annotated
        self._found = measured_entries
        self._measurements = measurements
        self._held: list[_Held | None] = []

    def view(self, slot: int, now: int) -> NodeView | None:
        """Return the node in a slot at a time."""
        node = self._views[slot]
        if node is None:
            return None
        data = self._annotated[slot] if slot < len(self._annotated) else None
        measurements = self._measurements
        is_steady = measurements.checked <= now < measurements.expires
        if is_steady and slot < len(self._held) and (held := self._held[slot]) is not None:
            of_node, of_data, version, view = held
            if of_node is node and of_data is data and version == measurements.version:
                return view
        seen = _NO_DATA if data is None else data
        view = node.with_data(measured(self._found, seen, slot, node, now) if self._found else seen)
        if is_steady:
            if slot >= len(self._held):
                self._held.extend([None] * (len(self._views) - len(self._held)))
            self._held[slot] = (node, data, measurements.version, view)
        return view


def measured(measured_entries: Iterable[MeasuredEntry], data: Data, slot: int, view: NodeView, now: int) -> Data:
    """Return data with what is measured of the node in a slot; a slot below 0 is that of an unmeasurable node."""
    values, missing, times = dict[str, float](data), {**data.missing}, {**data.times}
    created = view.created
    for entry in measured_entries:
        value = entry.for_unmeasured_node(view.labels, now) if slot < 0 else entry.read(slot, created, now)
        if isinstance(value, Unknown):
            missing[entry.name] = value
        else:
            values[entry.name] = value
            if slot >= 0 and (at := entry.time(slot)) is not None:
                times[entry.name] = at
    return Data(values, missing, times)
