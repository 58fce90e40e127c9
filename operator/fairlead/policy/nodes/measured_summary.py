"""Summary of what is measured for an entry of a policy's data: how old it is, and which nodes lack it. Pure.

It is computed on request, from the times of the values: values grow stale without any event.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import nsmallest
from typing import Final, NamedTuple

from fairlead.policy.nodes.measured_table import FUTURE, MISSING, NO_NUMBER, NO_TIME, SEVERAL, STALE, MeasuredEntry
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.facts import Unknown
from fairlead.time_units import SECOND_NS, age_text

NAMES: Final = 5
"""Nodes that a summary names for each fault."""
YOUNG_NS: Final = 600 * SECOND_NS
"""Age of a node up to which a missing value is no surprise: its exporter starts, and is scraped, after it joined."""
FAULTS: Final = (STALE, FUTURE, MISSING, SEVERAL, NO_NUMBER)


class FaultyNodes(NamedTuple):
    """Nodes without a usable value, for one reason."""

    why: str
    nodes: int
    names: tuple[str, ...]
    """A few of them: the oldest values first, with their age; of nodes without a value those that joined first."""


class MeasuredSummary(NamedTuple):
    """Summary of one entry over the nodes that count: all but those that have no value and need none."""

    nodes: int
    with_value: int
    on_default: int
    young: int
    """Nodes without a value that joined a moment ago; they are among those without a value."""
    oldest_s: int | None
    """Age of the oldest value, also of values that are too old to be used; None if no value tells its time."""
    median_s: int | None
    faults: tuple[FaultyNodes, ...]


class ReportedValue(NamedTuple):
    """Value of one node, or why there is no usable one."""

    name: str
    value: float | None
    at: int | None
    """Time of the value in nanoseconds, also of one that is not usable; None if it tells none."""
    fault: str
    is_default: bool


def node_values(entry: MeasuredEntry, nodes: Nodes, now: int) -> Iterator[ReportedValue]:
    """Yield what is measured of each node."""
    for name, slot in nodes.slots.items():
        view = nodes.views[slot]
        found = entry.read(slot, None if view is None else view.created, now)
        if isinstance(found, Unknown):
            yield ReportedValue(name, None, entry.time(slot), found.why, is_default=False)
        else:
            yield ReportedValue(name, found, entry.time(slot), "", is_default=not entry.has_value(slot))


Usable = Callable[[NodeView, int], bool]
"""Reports whether pods of a policy may use a node at all."""


def summarize(entry: MeasuredEntry, nodes: Nodes, now: int, usable: Usable | None = None) -> MeasuredSummary:
    """Return the summary of an entry; `usable` is asked about nodes without a value, None stands for all nodes."""
    content, ages = entry.table.content, list[int]()
    values, times, size = content.values, content.times, len(content.values)
    earliest = None if entry.greatest_age_ns is None else now - entry.greatest_age_ns
    fresh = on_default = young = unneeded = 0
    stale = list[tuple[int, str]]()
    others: dict[str, list[tuple[int, str]]] = {STALE: stale}
    for name, slot in nodes.slots.items():
        if slot < size and (at := times[slot]) != NO_TIME:
            ages.append(now - at)
            if at <= now and values[slot] == values[slot]:  # nearly all nodes: the rest takes ten times as long
                if earliest is None or earliest <= at:
                    fresh += 1
                    continue
                if usable is None or (old := nodes.views[slot]) is None or usable(old, now):
                    stale.append((at, name))
                else:
                    unneeded += 1
                continue
        view = nodes.views[slot]
        created = None if view is None else view.created
        found = entry.read(slot, created, now)
        if not isinstance(found, Unknown):
            fresh, on_default = (fresh + 1, on_default) if entry.has_value(slot) else (fresh, on_default + 1)
            continue
        if usable is not None and view is not None and not usable(view, now):
            unneeded += 1
            continue
        since = entry.time(slot)
        if found.why == MISSING:
            since = created
            young += created is not None and now - created < YOUNG_NS
        others.setdefault(found.why, []).append((now if since is None else since, name))
    ages.sort()
    return MeasuredSummary(
        nodes=len(nodes.slots) - unneeded,
        with_value=fresh,
        on_default=on_default,
        young=young,
        oldest_s=max(0, ages[-1] // SECOND_NS) if ages else None,
        median_s=max(0, ages[(len(ages) - 1) // 2] // SECOND_NS) if ages else None,
        faults=tuple(_faults(others, now)),
    )


def _faults(others: Mapping[str, list[tuple[int, str]]], now: int) -> Iterator[FaultyNodes]:
    for why in FAULTS:
        if found := others.get(why):
            first = nsmallest(NAMES, found)
            names = [name if why not in (STALE, FUTURE) or at == now else _aged(name, now - at) for at, name in first]
            yield FaultyNodes(why, len(found), tuple(names))


def _aged(name: str, age_ns: int) -> str:
    return f"{name} {age_text(age_ns)}" if age_ns >= 0 else f"{name} {age_text(-age_ns)} ahead"
