"""Nodes of the page: what is free, the labels that rules read, measured values with their age, and granted devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cli.ui.shown_pods import ShownPods
from fairlead.mirror.device_report import node_report
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.views.node_view import NodeView
from fairlead.simulation.scheduler_filters import amount
from fairlead.simulation.simulation import Simulation
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import EVERY, LABELS, Reads
from fairlead.time_units import age_text

ROWS_MAX: Final = 40
_ALWAYS: Final = ("cpu", "memory")
_LABELS_MAX: Final = 6
_ENTRIES_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A resource of a node."""

    free: str
    total: str
    percent_used: int
    """Percent of the total that pods request; -1 if the node has none of the resource."""


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A measured value of a node."""

    text: str
    """The value, or why there is none."""
    is_missing: bool
    age: str = ""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node."""

    name: str
    labels: Sequence[str]
    capacities: Sequence[NodeRoom]
    measured: Sequence[MeasuredCell]
    devices: Sequence[str]
    pods: int
    is_cordoned: bool


@dataclass(frozen=True, slots=True)
class NodeTable:
    """The nodes, by what rules read of them."""

    labels: Sequence[str]
    resources: Sequence[str]
    entries: Sequence[str]
    """Measured entries, as policy/entry."""
    has_devices: bool
    rows: Sequence[NodeRow]
    more: int


def node_table(shown: ShownPods) -> NodeTable:
    """Return the nodes in the order of their names."""
    simulation, policies = shown.simulation, [each for each in shown.policies if each.evaluated]
    labels = _labels(policies)
    resources = [*_ALWAYS, *_resources(policies)]
    entries = [(each, entry.name) for each in policies for entry in each.data][:_ENTRIES_MAX]
    names = sorted(simulation.names)
    rows = [
        _row(simulation, view, labels, resources, entries)
        for name in names[:ROWS_MAX]
        if (view := simulation.mirror.nodes.view_of(name)) is not None
    ]
    return NodeTable(
        labels,
        resources,
        [f"{policy.name}/{entry}" for policy, entry in entries],
        any(row.devices for row in rows),
        rows,
        max(0, len(names) - ROWS_MAX),
    )


def _labels(policies: Sequence[CompiledPolicy]) -> list[str]:
    """Return the labels of nodes that rules read by name."""
    paths = (path for policy in policies for reads in _reads(policy) for path in reads.node)
    found = dict.fromkeys(
        path[len(LABELS)] for path in paths if path[: len(LABELS)] == LABELS and len(path) > len(LABELS)
    )
    return [*found][:_LABELS_MAX]


def _resources(policies: Sequence[CompiledPolicy]) -> list[str]:
    """Return the other resources that rules read."""
    every = (name for policy in policies for reads in _reads(policy) for name in (*reads.free, *reads.allocatable))
    return sorted({name for name in every if name not in (*_ALWAYS, "pods", EVERY)})


def _reads(policy: CompiledPolicy) -> Iterator[Reads]:
    yield policy.reads
    if policy.shadow is not None:
        yield policy.shadow.reads


def _row(
    simulation: Simulation,
    view: NodeView,
    labels: Sequence[str],
    resources: Sequence[str],
    entries: Sequence[tuple[CompiledPolicy, str]],
) -> NodeRow:
    report = node_report(
        view, simulation.mirror.placed_on(view.name), simulation.ledgers.get(view.name), simulation.shares
    )
    totals = () if report is None else report["totals"]
    return NodeRow(
        view.name,
        [view.labels.get(label, "") for label in labels],
        [_capacity(view, resource) for resource in resources],
        [_measured(simulation, view, policy, entry) for policy, entry in entries],
        [f"{each['resource']}: {each['granted']:,} of {each['capacity']:,} granted" for each in totals],
        len(view.pods),
        bool(view.node.spec.unschedulable),
    )


def _capacity(view: NodeView, resource: str) -> NodeRoom:
    total, free = view.allocatable.get(resource, 0.0), view.free.get(resource, 0.0)
    used = round(100 * (1 - free / total)) if total else -1
    return NodeRoom(amount(resource, free), amount(resource, total), min(100, max(0, used)) if total else -1)


def _measured(simulation: Simulation, view: NodeView, policy: CompiledPolicy, entry: str) -> MeasuredCell:
    data = with_data(view, policy.data, simulation.now, simulation.mirror.nodes).data
    value, at = data(entry), data.times.get(entry)
    if isinstance(value, Unknown):
        return MeasuredCell(str(value), is_missing=True)
    return MeasuredCell(f"{value:.6g}", is_missing=False, age="" if at is None else age_text(simulation.now - at))
