"""The nodes as rules see them, and a journal of their changes.

Owned by one thread. A cache of results that were computed from nodes stores its position in the journal, and so learns
later what has changed since. A change that none of them was computed from, such as most heartbeats, is no entry. What
is measured of all nodes changes at once: that is one entry, with a mask by slot.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from fairlead.api.data import DataEntry
from fairlead.cooperative import Steps, finish
from fairlead.learned.pairs import Pairs
from fairlead.policy.nodes.journal import Journal, JournalEntry
from fairlead.policy.nodes.kept_system import KeptSystem, LearnedDemands, nothing_learned
from fairlead.policy.nodes.learned_tables import LearnedTables, NodesByKey, TableOfRule
from fairlead.policy.nodes.measured_table import NO_TIME, Measurements, Published, Source, bounded
from fairlead.policy.nodes.nodes_with_data import NodesWithData, measured
from fairlead.policy.nodes.polls import Poll, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.reads import EVERY, NodeChange, Path, Reads, SystemRead, TopologyRead

if TYPE_CHECKING:
    from fairlead.policy.nodes.kept_topology import KeptTopology

_READ_MAX: Final = 4096
"""Paths that are known to be read; beyond them any change is noted."""
_CHANGES_MAX: Final = 256
"""Sets of paths of which it is kept whether they are read."""
_NO_DATA: Final = Data()


@dataclass(slots=True)
class Nodes:
    """All nodes, each with a slot of its own for as long as it exists."""

    slots: dict[str, int] = field(default_factory=dict)
    views: list[NodeView | None] = field(default_factory=list)
    data: dict[str, list[Data | None]] = field(default_factory=dict)  # by policy, then by slot
    journal: Journal = field(default_factory=Journal)
    removals: int = 0  # number of nodes removed so far
    measurements: Measurements = field(default_factory=Measurements)
    systems: "WeakValueDictionary[SystemRead, KeptSystem]" = field(default_factory=WeakValueDictionary)
    topologies: "WeakValueDictionary[TopologyRead, KeptTopology]" = field(default_factory=WeakValueDictionary)
    """Systems and topologies that some rule reads."""
    learned_demands: LearnedDemands = nothing_learned
    learned: LearnedTables = field(default_factory=LearnedTables)
    _by_key: NodesByKey = field(default_factory=NodesByKey)
    _created: "array[int]" = field(default_factory=lambda: array("q"))
    _joined: set[str] = field(default_factory=set)
    _unused: list[int] = field(default_factory=list)
    _read: set[Path] = field(default_factory=set)
    """Fields of nodes that any cached result was computed from; one that is read no longer stays."""
    _above_read: set[Path] = field(default_factory=set)
    """Fields that include one of these."""
    _are_read: dict[frozenset[Path], bool] = field(default_factory=dict)
    """Answers of `_any_is_read` for fields that changed together lately: most changes are of the same few."""
    _with_data: "WeakValueDictionary[tuple[object, ...], NodesWithData]" = field(default_factory=WeakValueDictionary)
    """Views that some rule uses, by the policy, its entries and their tables."""

    @property
    def home(self) -> "Nodes":
        """Return the nodes of the cluster, of which systems are."""
        return self

    @property
    def head(self) -> int:
        """Return the position after the journal's last entry."""
        return self.journal.head

    @property
    def in_use(self) -> bytes:
        """Return a mask of the slots that have a node."""
        return bytes([view is not None for view in self.views]) if self._unused else b"\1" * len(self.views)

    def put(self, view: NodeView, change: NodeChange | None = None) -> None:
        """Add a node, or replace it; `change` says what differs, None stands for everything."""
        slot = self.slots.get(view.name)
        if slot is None:
            change = None
            slot = self._unused.pop() if self._unused else len(self.views)
            if slot == len(self.views):
                self.views.append(None)
                self._created.append(NO_TIME)
            self.slots[view.name] = slot
        if change is None:  # it may be another node of the same name
            self._created[slot] = NO_TIME if view.created is None else bounded(view.created)
            self._forget_measured(slot, view.name)
            self._by_key.note(slot, view)
        self.views[slot] = view
        if change is None or self._is_read(change):
            self.journal.append(JournalEntry(slot, change))

    def note_reads(self, reads: Iterable[Reads]) -> None:
        """Note what results will be computed from, before they are: from now on its changes are in the journal."""
        for path in {path for one in reads for path in one.node} - self._read:
            self._read.add(path)
            self._above_read.update(path[:size] for size in range(len(path)))
            self._are_read.clear()

    def remove(self, name: str) -> None:
        """Remove a node, if it is known."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        self.removals += 1
        self._by_key.note(slot, None)
        self._joined.discard(name)
        self.views[slot] = None
        for values in self.data.values():
            if slot < len(values):
                values[slot] = None
        self._unused.append(slot)
        self.journal.append(JournalEntry(slot, None))

    def put_data(
        self, policy: str, slot: int, data: Data, changed: frozenset[str], timed: frozenset[str] = frozenset()
    ) -> None:
        """Store a policy's data on a node; `changed` names the entries that differ, `timed` those measured anew."""
        values = self.data.setdefault(policy, [])
        values.extend([None] * (slot + 1 - len(values)))
        is_new, values[slot] = values[slot] is None, data
        if is_new or changed or timed:
            self.journal.append(JournalEntry(slot, NodeChange(data=changed, timed=timed), policy))

    def data_of(self, policy: str, slot: int) -> Data | None:
        """Return a policy's data on the node in a slot; None if it was not computed."""
        values = self.data.get(policy, ())
        return values[slot] if slot < len(values) else None

    def publish(self, readings: Mapping[Poll, Reading], now: int) -> None:
        """Store what was measured of the nodes, in one step."""
        finish(self.publication(readings, now))

    def publication(
        self, readings: Mapping[Poll, Reading], now: int, names: Collection[str] | None = None
    ) -> Steps[None]:
        """Store what was measured of the nodes, or of some: prepared with pauses, and then seen all at once.

        Only one may be in progress.
        """
        slots, views, created = self.slots, self.views, self._created
        changes = yield from self.measurements.publication(readings, slots, views, created, now, names)
        for published in changes:
            self.journal.append(published)

    def keep_keys(self) -> Steps[None]:
        """Prepare for what rules learn of nodes: with pauses, before the first of it is put."""
        return self._by_key.keep(self.views)

    def put_learned(self, rule: TableOfRule, number: int, pairs: Pairs | None) -> None:
        """Store a part of what a rule has learned; None for one that cannot be read."""
        table = self.learned.tables.get(rule)
        if table is None:
            return
        nodes = table.put(number, pairs)
        if nodes is None:
            mask = b"\1" * len(self.views)
        elif nodes:
            mask = self._by_key.mask(nodes, self.views)
        else:
            return
        self.journal.append(Published(frozenset({(rule, None)}), mask))

    def take_joined(self) -> Collection[str]:
        """Return the nodes that have joined, or are other ones now, since this was last called."""
        joined, self._joined = self._joined, set()
        return joined

    @property
    def has_joined(self) -> bool:
        """Return whether `take_joined` would return any."""
        return bool(self._joined)

    def expire(self, now: int) -> None:
        """Note which measured values became stale, or lost their default, since the last call."""
        if now >= self.measurements.expires:
            for published in self.measurements.expire(self._created, now):
                self.journal.append(published)

    def measure(self, entries: Iterable[DataEntry]) -> None:
        """Make room for what is measured for these entries; a publication stores nothing else."""
        self.measurements.entries(entries)

    def sources(self, entries: Iterable[DataEntry], reads: Reads) -> frozenset[Source]:
        """Return the measurements that a rule reads of these entries, and note how it asks for what is not in them."""
        found = set[Source]()
        for entry in self.measurements.entries(entries):
            if entry.name in reads.data or EVERY in reads.data:
                found.add((entry.key, None))
            lags = {lag_s for name, lag_s in reads.unmeasured if name == entry.name}
            entry.table.lags |= lags
            found |= {(entry.key, lag_s) for lag_s in lags}
        return frozenset(found)

    def seen_by(self, policy: str, entries: Sequence[DataEntry]) -> Callable[[int, int], NodeView | None]:
        """Return a function from slot and time to node, with these entries of a policy's data."""
        views = self.views
        if not entries:
            return lambda slot, _now: views[slot]
        values = self.data.setdefault(policy, [])
        found = self.measurements.entries(entries)
        key = (policy, *entries, *(id(entry.table) for entry in found))
        shared = self._with_data.get(key)
        if shared is None:
            shared = self._with_data[key] = NodesWithData(views, values, found, self.measurements)
        return shared.view

    def with_measured(self, view: NodeView, entries: Iterable[DataEntry], now: int) -> NodeView:
        """Return a node whose data has what is measured of it, too."""
        found = self.measurements.entries(entries)
        if not found:
            return view
        return view.with_data(measured(found, view.data, self.home_slot(view), view, now))

    def view_of(self, name: str) -> NodeView | None:
        """Return the node of a name, without data; None if it is unknown."""
        slot = self.slots.get(name)
        return None if slot is None else self.views[slot]

    def home_slot(self, view: NodeView) -> int:
        """Return the slot that a node has in the cluster, also in the tables of measured values; -1 if it has none."""
        return self.slots.get(view.name, -1)

    def since(self, position: int) -> Iterator[JournalEntry | Published] | None:
        """Return the journal's entries from a position on; None if some of these are dropped already."""
        return self.journal.since(position)

    def _is_read(self, change: NodeChange) -> bool:
        """Return whether a cached result may have been computed from what changed."""
        return len(self._read) > _READ_MAX or change != NodeChange(node=change.node) or self._any_is_read(change.node)

    def _any_is_read(self, paths: frozenset[Path]) -> bool:
        """Return whether a cached result may have been computed from one of these fields."""
        found = self._are_read.get(paths)
        if found is None:
            if len(self._are_read) >= _CHANGES_MAX:
                self._are_read.clear()
            read, above = self._read, self._above_read
            found = self._are_read[paths] = any(
                path in above or any(path[:size] in read for size in range(len(path) + 1)) for path in paths
            )
        return found

    def _forget_measured(self, slot: int, name: str) -> None:
        """Forget what was measured of a slot, which has another node now."""
        self.measurements.clear(slot)
        self._joined.add(name)


class RequestNodes(Nodes):
    """Nodes that a request brings: one that the cluster has, too, is measured there, another one is not measured."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: Nodes) -> None:
        super().__init__(
            measurements=cluster.measurements, learned=cluster.learned, learned_demands=cluster.learned_demands
        )
        self._cluster = cluster

    @property
    def home(self) -> Nodes:
        """Return the nodes of the cluster."""
        return self._cluster.home

    def expire(self, now: int) -> None:
        """Change nothing: a request is of one moment."""

    def seen_by(self, policy: str, entries: Sequence[DataEntry]) -> Callable[[int, int], NodeView | None]:
        """Return a function from slot and time to node, with these entries of a policy's data."""
        if not entries:
            return super().seen_by(policy, entries)
        values = self.data.setdefault(policy, [])
        found = self.measurements.entries(entries)

        def view(slot: int, now: int) -> NodeView | None:
            held = self.views[slot]
            if held is None:
                return None
            data = values[slot] if slot < len(values) else None
            data = _NO_DATA if data is None else data
            return held.with_data(measured(found, data, self.home_slot(held), held, now) if found else data)

        return view

    def _forget_measured(self, slot: int, name: str) -> None:
        """Forget nothing: its slots are not those of the tables."""

    def home_slot(self, view: NodeView) -> int:
        """Return the slot that the same node has in the cluster; -1 if the cluster does not have it."""
        slot = self._cluster.slots.get(view.name, -1)
        known = self._cluster.views[slot] if slot >= 0 else None
        return -1 if known is None or known.uid != view.uid else slot
