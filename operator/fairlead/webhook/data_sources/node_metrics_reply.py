"""Replies of the metrics API, read for polls. Pure.

A reply for 5000 nodes is three megabytes. It is decoded and read in pieces, so that calls are answered in between.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Final

import msgspec

from fairlead.cel.functions.quantity import to_float
from fairlead.cooperative import Steps
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, PollError, Reading, decode_fault
from fairlead.webhook.data_sources.samples import one_line

_SLICE: Final = 50  # nodes between two pauses; to read the capacity of a node for the first time takes 30 us
_NO_NODES: Final = (
    "the metrics API serves no nodes: metrics-server has just started, or cannot reach the kubelets; see its log"
)
# A reply repeats what the metrics API has not measured again since the last poll. Enough for 8000 nodes.
_amount: Final = lru_cache(maxsize=1 << 14)(to_float)
_moment: Final = lru_cache(maxsize=1 << 10)(moment)


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str


class _NodeMetrics(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    usage: dict[str, str]
    timestamp: str | None = None


class _NodeMetricsList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None  # Go writes null for an empty list


_decode_list: Final = msgspec.json.Decoder(_NodeMetricsList).decode
_decode: Final = msgspec.json.Decoder(_NodeMetrics).decode


@dataclass(slots=True, eq=False)
class _Column:
    """Values of one poll."""

    poll: NodeMetricsPoll
    nodes: Nodes
    values: dict[str, float] = field(default_factory=dict)
    no_number: set[str] = field(default_factory=set)

    def add(self, name: str, text: str) -> None:
        """Add what a node uses; a ratio only for a node whose capacity is known."""
        amount = _amount(text)
        if amount is not None and self.poll.unit == "Ratio":
            view = self.nodes.view_of(name)
            capacity = None if view is None else view.capacity.get(self.poll.resource)
            if capacity is None:
                return
            amount = amount / capacity if capacity > 0 else None
        if amount is None or not isfinite(amount):
            self.no_number.add(name)
        else:
            self.values[name] = amount


def node_metrics_readings(
    body: bytes, polls: Iterable[NodeMetricsPoll], nodes: Nodes
) -> Steps[dict[NodeMetricsPoll, Reading]]:
    """Read a NodeMetricsList for several polls. Raises PollError."""
    columns = [_Column(poll, nodes) for poll in polls]
    times: dict[str, int] = {}
    untimed = ""
    count = 0
    for one in _decoded(body):
        if one is None:
            yield
            continue
        count += 1
        name, at = one.metadata.name, _moment(one.timestamp or "")
        if at is None:
            untimed = name
            continue
        times[name] = at
        for column in columns:
            if (text := one.usage.get(column.poll.resource)) is not None:
                column.add(name, text)
    note = _NO_NODES if not count else ""
    if untimed:
        note = f"the metrics API gives no time for node {one_line(untimed)}: its values are not used"
    return {one.poll: Reading(one.values, times, no_number=frozenset(one.no_number), note=note) for one in columns}


def _decoded(body: bytes) -> Iterator[_NodeMetrics | None]:
    """Yield the objects of a list, and None for each pause."""
    try:
        items = _decode_list(body).items or []
        for at, raw in enumerate(items):
            if at % _SLICE == 0:
                yield None
            yield _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PollError(
            f"the metrics API sent no NodeMetricsList: {decode_fault(error)}; see what serves it:"
            " kubectl get apiservice v1beta1.metrics.k8s.io"
        ) from error
