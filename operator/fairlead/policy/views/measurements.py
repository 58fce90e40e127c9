"""Measured values of nodes, and the entries of policies that read them.

A publication changes the nodes that its readings name; that of a document also those that it no longer names. Values
are read with the time of the call, so that none is believed past its age; `expire` says which slots became stale, or
stopped having a default, since the last call.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from fairlead.api.data import DataEntry
from fairlead.cooperative import Steps
from fairlead.policy.views.measured_values import (
    AHEAD_NS,
    FUTURE,
    MISSING,
    NAN,
    NEVER,
    NO_NUMBER,
    NO_TIME,
    SEVERAL,
    STALE,
    MeasuredValues,
    Published,
    TableKey,
)
from fairlead.policy.views.polls import ConfigMapPoll, Poll, Reading, poll_of
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import Reads

_SECOND: Final = 1_000_000_000


class MeasuredEntry:
    """Entry of a policy's data with its table."""

    __slots__ = ("_default", "_default_for", "_unknown", "greatest_age_ns", "key", "name", "table")

    def __init__(self, entry: DataEntry, key: TableKey, table: MeasuredValues) -> None:
        self.name: Final = entry.name
        self.key: Final = key
        self.table: Final = table
        age_s, default_for_s = entry.greatest_age_s, entry.default_for_s
        self.greatest_age_ns: Final = None if age_s is None else age_s * _SECOND
        self._default = entry.default
        self._default_for = None if default_for_s is None else default_for_s * _SECOND
        subject = f"data {entry.name}"
        self._unknown = {why: Unknown(subject, why) for why in (MISSING, STALE, FUTURE, SEVERAL, NO_NUMBER)}
        limits = [(table.ages, self.greatest_age_ns), (table.defaults, self._default_for)]
        for known, limit in limits:
            if limit is not None and limit not in known:
                known.add(limit)
                table.expires = 0

    def read(self, slot: int, created: int | None, now: int) -> float | Unknown:
        """Return the value of a slot, or why there is none."""
        table = self.table
        value = table.values[slot] if slot < len(table.values) else NAN
        if value == value:
            return self._usable(value, table.times[slot], now)
        if (why := table.faults.get(slot)) is not None:
            return self._unknown[why]
        if self._default is None:
            return self._unknown[MISSING]
        if self._default_for is not None and (created is None or now - created >= self._default_for):
            return self._unknown[MISSING]
        return self._default

    def of_stranger(self, labels: Mapping[str, str], now: int) -> float | Unknown:
        """Return the value of a node of a simulation, which no source has measured, with these labels."""
        table, poll = self.table, self.key.poll
        document = poll if isinstance(poll, ConfigMapPoll) else None
        if document is not None and document.key_label is not None:
            measured = table.by_label.get(labels.get(document.key_label, ""))
            if measured is not None:
                value = self.key.changed(measured)
                return self._usable(value, table.by_label_at, now) if isfinite(value) else self._unknown[NO_NUMBER]
        if self._default is not None:
            return self._default
        # A poll will find the node when it exists; a document would name it already.
        return self._unknown[MISSING] if document is not None else Unknown(f"data {self.name}", MISSING, passes=True)

    def _usable(self, value: float, at: int, now: int) -> float | Unknown:
        if self.greatest_age_ns is not None and (at == NO_TIME or now - at > self.greatest_age_ns):
            return self._unknown[STALE]
        return value if at - now <= AHEAD_NS else self._unknown[FUTURE]

    def has_value(self, slot: int) -> bool:
        """Return whether a value was measured for a slot, usable or not."""
        values = self.table.values
        return slot < len(values) and values[slot] == values[slot]

    def time(self, slot: int) -> int | None:
        """Return when the value of a slot was measured."""
        at = self.table.times[slot] if slot < len(self.table.times) else NO_TIME
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

    def entries(self, entries: Iterable[DataEntry]) -> list[MeasuredEntry]:
        """Return the measured ones of a policy's entries, with their tables."""
        found = list[MeasuredEntry]()
        for entry in entries:
            if (key := table_key(entry)) is not None:
                table = self.tables.setdefault(key, MeasuredValues(key))
                found.append(MeasuredEntry(entry, key, table))
                self.expires = min(self.expires, table.expires)
        return found

    def keep(self, asked: Iterable[tuple[Iterable[DataEntry], Reads]]) -> None:
        """Drop the tables, ages and lags that none of these entries has, which are read as their policies read them."""
        kept = dict[TableKey, MeasuredValues]()
        for entries, reads in asked:
            for entry in entries:
                if (key := table_key(entry)) is None or (table := self.tables.get(key)) is None:
                    continue
                if key not in kept:
                    kept[key] = table
                    table.ages, table.defaults, table.lags = set(), set(), set()
                MeasuredEntry(entry, key, table)
                table.lags |= {lag_s for name, lag_s in reads.fresh if name == entry.name}
        for key in self.tables.keys() - kept.keys():
            del self.tables[key]

    def clear(self, slot: int) -> None:
        """Forget what was measured of a slot."""
        for table in self.tables.values():
            table.clear(slot)
        self.expires = 0
        self.version += 1

    def prepare(
        self,
        readings: Mapping[Poll, Reading],
        slots: Mapping[str, int],
        created: Sequence[int],
        now: int,
        names: Collection[str] | None = None,
    ) -> Steps[list[MeasuredValues]]:
        """Prepare tables for readings, or for what they say of some names, and return these tables.

        A table that has no reading yet takes all of it.
        """
        prepared = list[MeasuredValues]()
        try:
            for table in [*self.tables.values()]:
                reading = readings.get(table.key.poll)
                if reading is not None and (names is None or names or table.is_new):
                    prepared.append(table)
                    yield from table.prepare(reading, slots, created, now, None if table.is_new else names)
                    yield
        except BaseException:
            for table in prepared:
                table.drop()
            raise
        return prepared

    def commit(self, prepared: Iterable[MeasuredValues], now: int) -> Iterator[tuple[MeasuredValues, bytearray]]:
        """Store what was prepared; yield each table and a mask of the slots whose value differs."""
        for table in prepared:
            self.version += 1
            yield table, table.commit()
        self.expires = min((table.expires for table in self.tables.values()), default=NEVER)
        self.checked = max(self.checked, now)

    def expire(self, created: Sequence[int], now: int) -> list[Published]:
        """Return which slots changed because time has passed."""
        found = list[Published]()
        self.expires, self.checked = NEVER, now
        for table in self.tables.values():
            table.grow(len(created))
            if now >= table.expires:
                mask = table.expired(created, now)
                if 1 in mask:
                    self.version += 1
                    found.append(Published(table.sources, bytes(mask)))
            self.expires = min(self.expires, table.expires)
        return found
