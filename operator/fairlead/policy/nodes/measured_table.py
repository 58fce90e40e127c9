"""Measured values of nodes: a table a poll, an array by slot, which all policies and evaluators share.

A publication changes the nodes that its readings name; that of a document also those that it no longer names. Values
are read with the time of the call, so that none is believed past its age; `expire` says which slots became stale, or
stopped having a default, since the last call.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, NamedTuple

from fairlead.api.data import DataEntry
from fairlead.cel.functions.quantity import round_to_step
from fairlead.cooperative import Steps, finish
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.polls import Poll, Reading, poll_of
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import Reads, UnmeasuredRead
from fairlead.time_units import SECOND_NS

NAN: Final = float("nan")
NO_TIME: Final = -1
NEVER: Final = (1 << 63) - 1
AHEAD_NS: Final = 300 * SECOND_NS
"""Time by which a value may be ahead of our clock; it counts as measured when it is heard, or when this is reached."""
_SLICE: Final = 1000  # values between two pauses: a millisecond
_NODES_SLICE: Final = 500  # nodes between two pauses, where the pods on each are looked at
_LATEST: Final = NEVER - (1 << 60)
MISSING: Final = "is missing"
STALE: Final = "is stale"
FUTURE: Final = "has a time in the future"
SEVERAL: Final = "has several values"
NO_NUMBER: Final = "is not a number"


class TableKey(NamedTuple):
    """Key of a table: a poll, and how its values are changed before they are stored."""

    poll: Poll
    factor: float
    round: float | None

    def changed(self, measured: float) -> float:
        """Return a value as it is stored; an infinite one is not a number."""
        value = measured * self.factor
        return round_to_step(value, self.round) if self.round is not None and isfinite(value) else value


Source = tuple[TableKey | TableOfRule, int | None]
"""Part of a table that a rule reads: its values, or with a lag in seconds the pods that are not in them yet."""


class Published(NamedTuple):
    """Slots that one publication or expiry changed, as a mask by slot."""

    sources: frozenset[Source]
    mask: bytes


@dataclass(slots=True, eq=False)
class TableContent:
    """Content of a table by slot, which a publication replaces in one step."""

    values: "array[float]" = field(default_factory=lambda: array("d"))
    """NaN where there is none."""
    times: "array[int]" = field(default_factory=lambda: array("q"))
    """Time of each value in nanoseconds; NO_TIME if its source tells none."""
    faults: dict[int, str] = field(default_factory=dict)
    """Reasons why the last poll gave no value for slots that it named."""
    by_label: Mapping[str, float] = field(default_factory=dict)
    """Values by the value of a label, as they came, for nodes that have no slot; NaN for one that is not a number."""
    by_label_at: int = NO_TIME
    checked: int = 0
    """Time of the last search for values that became stale."""
    expires: int = 0
    """Next moment at which a value may become stale or valid; 0: not computed."""

    def grow(self, size: int) -> None:
        """Make room for this many slots."""
        if (more := size - len(self.values)) > 0:
            self.values.extend([NAN] * more)
            self.times.extend([NO_TIME] * more)

    def clear(self, slot: int) -> None:
        """Forget the value of a slot."""
        if slot < len(self.values):
            self.values[slot], self.times[slot] = NAN, NO_TIME
        self.faults.pop(slot, None)


@dataclass(slots=True, eq=False)
class _Prepared:
    """Content of a table once a publication is complete."""

    content: TableContent
    mask: bytearray
    """Slots whose value differs for a rule."""
    is_cleared: bool = False
    """Whether a slot got another node meanwhile."""

    def grow(self, size: int) -> None:
        """Make room for this many slots."""
        self.content.grow(size)
        self.mask.extend(bytes(max(0, size - len(self.mask))))

    def clear(self, slot: int) -> None:
        """Forget the value of a slot, whose node is another one now."""
        self.content.clear(slot)
        self.content.expires, self.is_cleared = 0, True
        if slot < len(self.mask):
            self.mask[slot] = 1

    def put_fault(self, slot: int, why: str) -> None:
        """Note why a slot has no value."""
        if self.content.faults.get(slot) != why:
            self.content.clear(slot)
            self.content.faults[slot], self.mask[slot] = why, 1


@dataclass(slots=True, eq=False)
class MeasuredValues:
    """Table of the values of one poll.

    A reading is prepared beside what rules see, with pauses, and seen in one step.
    """

    key: TableKey
    content: TableContent = field(default_factory=TableContent)
    ages: set[int] = field(default_factory=set)
    """Greatest ages that entries allow, in nanoseconds."""
    defaults: set[int] = field(default_factory=set)
    """Ages of nodes up to which entries have a default, in nanoseconds."""
    lags: set[int] = field(default_factory=set)
    """Lags in seconds with which rules ask for pods that are not in the values yet."""
    is_new: bool = True
    """Whether no reading was ever stored."""
    _prepared: _Prepared | None = None

    @property
    def sources(self) -> frozenset[Source]:
        """Return everything that rules read of the table."""
        return frozenset({(self.key, None), *((self.key, lag_s) for lag_s in self.lags)})

    def clear(self, slot: int) -> None:
        """Forget the value of a slot: its node is another one now."""
        self.content.clear(slot)
        if self._prepared is not None:
            self._prepared.clear(slot)
        if self.defaults:  # the node may be the next to lose one
            self.content.expires = 0

    def prepare(
        self,
        reading: Reading,
        slots: Mapping[str, int],
        created: Sequence[int],
        now: int,
        names: Collection[str] | None = None,
    ) -> Steps[None]:
        """Prepare what `commit` stores: a reading, or what it says of these names."""
        content = self.content
        content.grow(len(created))
        one_time = bounded(reading.times) if isinstance(reading.times, int) else NO_TIME
        following = TableContent(
            content.values[:], content.times[:], content.faults.copy(), reading.by_label, one_time, now
        )
        prepared = self._prepared = _Prepared(following, bytearray(len(content.values)))
        faults, mask = following.faults, prepared.mask
        # Rules may have heard of the value before when it was still ahead.
        earliest = max(0, now - min(self.ages, default=NEVER))
        latest_before, latest = content.checked + AHEAD_NS, now + AHEAD_NS
        each = reading.times if isinstance(reading.times, Mapping) else None
        is_whole = self.key.poll.is_whole
        # A value that is looked up by a label, such as the price of an instance type, is not of an earlier node.
        # Nodes say in whole seconds when they were made.
        is_of_node, second = self.key.poll.key_label is None, 0 if is_whole else SECOND_NS
        given = reading.values
        if names is not None:
            given = {name: given[name] for name in names if name in given}
        for position, (name, measured) in enumerate(given.items(), start=1):
            if position % _SLICE == 0:
                yield
            slot = slots.get(name)
            if slot is None or slot >= len(mask):  # one that joins meanwhile is given what was measured later
                continue
            at = one_time if each is None else bounded(each[name]) if name in each else NO_TIME
            if at != NO_TIME and is_of_node and at < created[slot] + second:
                continue  # of an earlier node of this name
            if now < at <= now + AHEAD_NS:
                at = now
            value = self.key.changed(measured)
            if not isfinite(value):
                prepared.put_fault(slot, NO_NUMBER)
                continue
            before = following.times[slot]
            if value != following.values[slot] or (
                before != at and not (earliest <= before <= latest_before and earliest <= at <= latest)
            ):
                mask[slot] = 1
            following.values[slot], following.times[slot] = value, at
            if faults and faults.pop(slot, None) is not None:
                mask[slot] = 1
        for named, why in ((reading.several, SEVERAL), (reading.no_number, NO_NUMBER)):
            for name in named if names is None else named & {*names}:
                slot = slots.get(name)
                if slot is not None and slot < len(mask):
                    prepared.put_fault(slot, why)
        if names is None and (faults or is_whole):
            yield
            _forget_unnamed(reading, slots, prepared, is_whole=is_whole)
        yield
        due = yield from self._due(following, mask, created, content.checked, now)
        following.expires = 0 if prepared.is_cleared else due

    def prepared_times(self) -> "array[int]":
        """Return the times that `commit` will store."""
        return (self.content if self._prepared is None else self._prepared.content).times

    def drop(self) -> None:
        """Forget what was prepared."""
        self._prepared = None

    def commit(self) -> bytearray:
        """Store what was prepared, and return a mask of the slots whose value differs for a rule."""
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            return bytearray(len(self.content.values))
        prepared.grow(len(self.content.values))
        self.content, self.is_new = prepared.content, False
        return prepared.mask

    def expired(self, created: Sequence[int], now: int) -> bytearray:
        """Return a mask of the slots whose value became stale, or lost its default, since this was last asked."""
        content = self.content
        changed = bytearray(len(content.values))
        content.expires = finish(self._due(content, changed, created, content.checked, now))
        content.checked = now
        if self._prepared is not None:
            # Rules have heard that these changed, and would not hear that they change back.
            self._prepared.grow(len(changed))
            for slot in [slot for slot, is_changed in enumerate(changed) if is_changed]:
                self._prepared.mask[slot] = 1
        return changed

    def _due(
        self, content: TableContent, changed: bytearray, created: Sequence[int], since: int, now: int
    ) -> Steps[int]:
        """Mark what became stale, or lost its default, since a moment; return when the next one does."""
        values, times = content.values, content.times
        following = NEVER
        distinct = {*times} - {NO_TIME}
        ahead = {at for at in distinct if now < at <= now + AHEAD_NS}
        if ahead:
            for slot, at in enumerate(times):
                if at in ahead:
                    times[slot], changed[slot] = now, 1
            distinct = (distinct - ahead) | {now}
        ages, due = sorted(self.ages), set[int]()
        for position, at in enumerate(distinct, start=1):
            if position % _SLICE == 0:
                yield
            # It becomes valid at at - AHEAD_NS, and stale one nanosecond after each age.
            ended = bisect_left(ages, now - at)
            if ended < len(ages):
                following = min(following, at + ages[ended] + 1)
            if ended > bisect_left(ages, since - at) or since < at - AHEAD_NS <= now:
                due.add(at)
            if at - AHEAD_NS > now:
                following = min(following, at - AHEAD_NS)
        if due:
            for slot, at in enumerate(times):
                if at in due:
                    changed[slot] = 1
        if limits := sorted(self.defaults):
            for slot, value in enumerate(values):
                if slot % _SLICE == 0:
                    yield
                if value != value and slot < len(created):
                    at = created[slot]
                    ended = bisect_right(limits, now - at)
                    if ended > bisect_right(limits, since - at):
                        changed[slot] = 1
                    if ended < len(limits):
                        following = min(following, at + limits[ended])
        return following


def _forget_unnamed(reading: Reading, slots: Mapping[str, int], prepared: _Prepared, *, is_whole: bool) -> None:
    """Forget faults of slots that a reading does not name; one that is whole, as a document is, has all values."""
    named = {slots.get(name) for names in (reading.values, reading.several, reading.no_number) for name in names}
    content, mask = prepared.content, prepared.mask
    gone = [slot for slot in content.faults if slot not in named]
    if is_whole:
        gone += [slot for slot, value in enumerate(content.values) if value == value and slot not in named]
    for slot in gone:
        content.clear(slot)
        mask[slot] = 1


def bounded(at: int) -> int:
    """Return a time that fits into 64 bits: RFC 3339 ends with the year 9999, nanoseconds do with 2262."""
    return min(max(at, 0), _LATEST)


class MeasuredEntry:
    """Entry of a policy's data with its table."""

    __slots__ = ("_default", "_default_for", "_unknown", "greatest_age_ns", "key", "name", "table")

    def __init__(self, entry: DataEntry, key: TableKey, table: MeasuredValues) -> None:
        self.name: Final = entry.name
        self.key: Final = key
        self.table: Final = table
        age_s, default_for_s = entry.greatest_age_s, entry.default_for_s
        self.greatest_age_ns: Final = None if age_s is None else age_s * SECOND_NS
        self._default = entry.default
        self._default_for = None if default_for_s is None else default_for_s * SECOND_NS
        subject = f"data {entry.name}"
        self._unknown = {why: Unknown(subject, why) for why in (MISSING, STALE, FUTURE, SEVERAL, NO_NUMBER)}
        limits = [(table.ages, self.greatest_age_ns), (table.defaults, self._default_for)]
        for known, limit in limits:
            if limit is not None and limit not in known:
                known.add(limit)
                table.content.expires = 0

    def read(self, slot: int, created: int | None, now: int) -> float | Unknown:
        """Return the value of a slot, or why there is none."""
        content = self.table.content
        value = content.values[slot] if slot < len(content.values) else NAN
        if value == value:
            return self._usable(value, content.times[slot], now)
        if (why := content.faults.get(slot)) is not None:
            return self._unknown[why]
        if self._default is None:
            return self._unknown[MISSING]
        if self._default_for is not None and (created is None or now - created >= self._default_for):
            return self._unknown[MISSING]
        return self._default

    def for_unmeasured_node(self, labels: Mapping[str, str], now: int) -> float | Unknown:
        """Return the value of a node of a simulation, which no source has measured, with these labels."""
        content, poll = self.table.content, self.key.poll
        if poll.key_label is not None:
            measured = content.by_label.get(labels.get(poll.key_label, ""))
            if measured is not None:
                value = self.key.changed(measured)
                return self._usable(value, content.by_label_at, now) if isfinite(value) else self._unknown[NO_NUMBER]
        if self._default is not None:
            return self._default
        # A poll will find the node when it exists; a document would name it already.
        return self._unknown[MISSING] if poll.is_whole else Unknown(f"data {self.name}", MISSING, passes=True)

    def _usable(self, value: float, at: int, now: int) -> float | Unknown:
        if self.greatest_age_ns is not None and (at == NO_TIME or now - at > self.greatest_age_ns):
            return self._unknown[STALE]
        return value if at - now <= AHEAD_NS else self._unknown[FUTURE]

    def has_value(self, slot: int) -> bool:
        """Return whether a value was measured for a slot, usable or not."""
        values = self.table.content.values
        return slot < len(values) and values[slot] == values[slot]

    def time(self, slot: int) -> int | None:
        """Return when the value of a slot was measured."""
        times = self.table.content.times
        at = times[slot] if slot < len(times) else NO_TIME
        return None if at == NO_TIME else at


def table_key(entry: DataEntry) -> TableKey | None:
    """Return the key of the table that an entry reads; None if it is not measured."""
    poll = poll_of(entry)
    return None if poll is None else TableKey(poll, entry.factor, entry.round)


class Measurements:
    """All tables. `created` has the creation time of the node in each slot, NO_TIME if it is not known."""

    def __init__(self) -> None:
        self.tables: Final[dict[TableKey, MeasuredValues]] = {}
        self.expires = NEVER
        """Next moment at which a value may become stale or valid; 0: not computed."""
        self.checked = 0
        """When that was computed: from then until `expires`, values change by publications alone."""
        self.version = 0
        """Number of changes so far."""
        self.unmeasured: Final[dict[str, set[UnmeasuredRead]]] = {}
        """Entries of which rules read the pods that are not in them yet, by policy: all its rules share its data."""

    def entries(self, entries: Iterable[DataEntry]) -> list[MeasuredEntry]:
        """Return the measured ones of a policy's entries, with their tables."""
        found = list[MeasuredEntry]()
        for entry in entries:
            if (key := table_key(entry)) is not None:
                table = self.tables.setdefault(key, MeasuredValues(key))
                found.append(MeasuredEntry(entry, key, table))
                self.expires = min(self.expires, table.content.expires)
        return found

    def keep(self, wanted: Iterable[tuple[Iterable[DataEntry], Reads]]) -> None:
        """Drop the tables, ages and lags that none of these entries has, which are read as their policies read them."""
        kept = dict[TableKey, MeasuredValues]()
        for entries, reads in wanted:
            for entry in entries:
                if (key := table_key(entry)) is None or (table := self.tables.get(key)) is None:
                    continue
                if key not in kept:
                    kept[key] = table
                    table.ages, table.defaults, table.lags = set(), set(), set()
                MeasuredEntry(entry, key, table)
                table.lags |= {lag_s for name, lag_s in reads.unmeasured if name == entry.name}
        for key in self.tables.keys() - kept.keys():
            del self.tables[key]

    def clear(self, slot: int) -> None:
        """Forget what was measured of a slot."""
        for table in self.tables.values():
            table.clear(slot)
            self.expires = 0
        self.version += 1

    def publication(
        self,
        readings: Mapping[Poll, Reading],
        slots: Mapping[str, int],
        views: Sequence[NodeView | None],
        created: Sequence[int],
        now: int,
        names: Collection[str] | None = None,
    ) -> Steps[list[Published]]:
        """Store readings, or what they say of some names: prepared with pauses, then all at once; return what changed.

        A table that has no reading yet takes all of it. Nodes, which are given by slot, may join meanwhile.
        """
        prepared, placed = list[MeasuredValues](), dict[Source, bytes]()
        try:
            for table in [*self.tables.values()]:
                reading = readings.get(table.key.poll)
                if reading is not None and (names is None or names or table.is_new):
                    prepared.append(table)
                    yield from table.prepare(reading, slots, created, now, None if table.is_new else names)
                    yield
            for table in prepared:
                for lag_s in [*table.lags]:
                    mask = yield from _placed_meanwhile(views, table.content.times, table.prepared_times(), lag_s)
                    placed[table.key, lag_s] = mask
        except BaseException:
            for table in prepared:
                table.drop()
            raise
        found = list[Published]()
        for table in prepared:
            if self.tables.get(table.key) is not table:
                continue  # no policy reads it any more
            before, changed = table.content.times, table.commit()
            self.version += 1
            if 1 in changed:
                found.append(Published(table.sources, bytes(changed)))
            for lag_s in table.lags:
                lag = table.key, lag_s
                if lag not in placed:  # asked for since
                    placed[lag] = finish(_placed_meanwhile(views, before, table.content.times, lag_s))
                if 1 in placed[lag]:
                    found.append(Published(frozenset({lag}), placed[lag]))
        self.expires = min((table.content.expires for table in self.tables.values()), default=NEVER)
        self.checked = max(self.checked, now)
        return found

    def expire(self, created: Sequence[int], now: int) -> list[Published]:
        """Return which slots changed because time has passed."""
        found = list[Published]()
        self.expires, self.checked = NEVER, now
        for table in self.tables.values():
            table.content.grow(len(created))
            if now >= table.content.expires:
                mask = table.expired(created, now)
                if 1 in mask:
                    self.version += 1
                    found.append(Published(table.sources, bytes(mask)))
            self.expires = min(self.expires, table.content.expires)
        return found


def _placed_meanwhile(
    views: Sequence[NodeView | None], before: "array[int]", after: "array[int]", lag_s: int
) -> Steps[bytes]:
    """Return a mask of the slots on which pods were placed that were not in the values, and now are."""
    mask, lag_ns = bytearray(len(after)), lag_s * SECOND_NS
    for slot, (old, new) in enumerate(zip(before, after)):  # noqa: B905 - nodes join meanwhile
        if slot % _NODES_SLICE == 0:
            yield
        view = views[slot]
        if old != new and view is not None and view.placed_between(old - lag_ns, new - lag_ns):
            mask[slot] = 1
    return bytes(mask)
