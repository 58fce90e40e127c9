"""Measured values of nodes: for each poll an array by slot, which all policies and evaluators share.

A publication changes the nodes that its readings name and no others. Values are read with the time of the call, so that
none is believed past its age; `expire` says which slots became stale, or stopped having a default, since the last call.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, NamedTuple

from fairlead.api.data import DataEntry
from fairlead.policy.views.polls import ConfigMapPoll, Poll, Reading, poll_of
from fairlead.policy.views.rounding import rounded
from fairlead.strategies.facts import Unknown

NAN: Final = float("nan")
NO_TIME: Final = -1
NEVER: Final = (1 << 63) - 1
AHEAD_NS: Final = 300 * 1_000_000_000
"""Time by which a value may be ahead of our clock; it counts as measured when it is heard, or when this is reached."""
_SECOND: Final = 1_000_000_000
_LATEST: Final = NEVER - (1 << 60)
MISSING: Final = "is missing"
STALE: Final = "is stale"
FUTURE: Final = "has a time in the future"
SEVERAL: Final = "has several values"
NO_NUMBER: Final = "is no number"


class TableKey(NamedTuple):
    """Key of a table: a poll, and how its values are changed before they are stored."""

    poll: Poll
    factor: float
    round: float | None


Source = tuple[TableKey, int | None]
"""Part of a table that a rule reads: its values, or with a lag in seconds the pods that are not in them yet."""


class Published(NamedTuple):
    """Slots that one publication or expiry changed, as a mask by slot."""

    sources: frozenset[Source]
    mask: bytes


@dataclass(slots=True, eq=False)
class MeasuredValues:
    """Table of the values of one poll."""

    key: TableKey
    values: "array[float]" = field(default_factory=lambda: array("d"))
    """NaN where there is none."""
    times: "array[int]" = field(default_factory=lambda: array("q"))
    """Time of each value in nanoseconds; NO_TIME if its source tells none."""
    faults: dict[int, str] = field(default_factory=dict)
    """Reasons why the last poll gave no value for slots that it named."""
    ages: set[int] = field(default_factory=set)
    """Greatest ages that entries allow, in nanoseconds."""
    defaults: set[int] = field(default_factory=set)
    """Ages of nodes up to which entries have a default, in nanoseconds."""
    lags: set[int] = field(default_factory=set)
    """Lags in seconds with which rules ask for pods that are not in the values yet."""
    expires: int = 0
    """Next moment at which a value may become stale or valid; 0: not computed."""
    checked: int = 0

    @property
    def sources(self) -> frozenset[Source]:
        """Return everything that rules read of the table."""
        return frozenset({(self.key, None), *((self.key, lag_s) for lag_s in self.lags)})

    def grow(self, size: int) -> None:
        """Make room for this many slots."""
        if (more := size - len(self.values)) > 0:
            self.values.extend([NAN] * more)
            self.times.extend([NO_TIME] * more)

    def clear(self, slot: int) -> None:
        """Forget the value of a slot: its node is another one now."""
        if slot < len(self.values):
            self.values[slot], self.times[slot] = NAN, NO_TIME
        self.faults.pop(slot, None)
        self.expires = 0

    def take(self, reading: Reading, slots: Mapping[str, int], created: Sequence[int], now: int) -> bytearray:
        """Store a reading, and return a mask of the slots whose value differs for a rule."""
        values, times, faults = self.values, self.times, self.faults
        factor, step = self.key.factor, self.key.round
        age_ns = min(self.ages, default=NEVER)
        one_time = bounded(reading.times) if isinstance(reading.times, int) else NO_TIME
        each = reading.times if isinstance(reading.times, Mapping) else None
        # A value that is looked up by a label, such as the price of an instance type, is not of an earlier node.
        is_of_node = not (isinstance(self.key.poll, ConfigMapPoll) and self.key.poll.key_label)
        changed = bytearray(len(values))
        for name, measured in reading.values.items():
            slot = slots.get(name)
            if slot is None:
                continue
            at = one_time if each is None else bounded(each[name]) if name in each else NO_TIME
            if at != NO_TIME and at < created[slot] and is_of_node:
                continue  # of an earlier node of this name
            if now < at <= now + AHEAD_NS:
                at = now
            value = measured * factor
            if step is not None and isfinite(value):
                value = rounded(value, step)
            if not isfinite(value):
                changed[slot] |= self._put_fault(slot, NO_NUMBER)
                continue
            before = times[slot]
            if value != values[slot] or (before != at and (_is_out(before, age_ns, now) or _is_out(at, age_ns, now))):
                changed[slot] = 1
            values[slot], times[slot] = value, at
            if faults:
                changed[slot] |= faults.pop(slot, None) is not None
        for names, why in ((reading.several, SEVERAL), (reading.no_number, NO_NUMBER)):
            for name in names:
                slot = slots.get(name)
                if slot is not None:
                    changed[slot] |= self._put_fault(slot, why)
        self.expires = 0
        return changed

    def _put_fault(self, slot: int, why: str) -> bool:
        """Note why a slot has no value, and return whether this is new."""
        if self.faults.get(slot) == why:
            return False
        self.values[slot], self.times[slot], self.faults[slot] = NAN, NO_TIME, why
        return True

    def expired(self, created: Sequence[int], now: int) -> bytearray:
        """Return a mask of the slots whose value became stale, or lost its default, since this was last asked."""
        since, self.checked = self.checked, now
        changed = bytearray(len(self.values))
        following = NEVER
        ahead = {at for at in {*self.times} if now < at <= now + AHEAD_NS}
        if ahead:
            for slot, at in enumerate(self.times):
                if at in ahead:
                    self.times[slot], changed[slot] = now, 1
        moments = {at: self._moments(at) for at in {*self.times} if at != NO_TIME}
        for ends in moments.values():
            following = min([following, *(end for end in ends if end > now)])
        due = {at for at, ends in moments.items() if any(since < end <= now for end in ends)}
        if due:
            for slot, at in enumerate(self.times):
                if at in due:
                    changed[slot] = 1
        for limit in self.defaults:
            for slot, value in enumerate(self.values):
                if value != value and slot < len(created):
                    end = created[slot] + limit
                    if since < end <= now:
                        changed[slot] = 1
                    elif end > now:
                        following = min(following, end)
        self.expires = following
        return changed

    def _moments(self, at: int) -> list[int]:
        return [at - AHEAD_NS, *(at + age + 1 for age in self.ages)]


def bounded(at: int) -> int:
    """Return a time that fits into 64 bits: RFC 3339 ends with the year 9999, nanoseconds do with 2262."""
    return min(max(at, 0), _LATEST)


def _is_out(at: int, age_ns: int, now: int) -> bool:
    return at == NO_TIME or now - at > age_ns or at - now > AHEAD_NS


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
            at = table.times[slot]
            if self.greatest_age_ns is not None and (at == NO_TIME or now - at > self.greatest_age_ns):
                return self._unknown[STALE]
            return value if at - now <= AHEAD_NS else self._unknown[FUTURE]
        if (why := table.faults.get(slot)) is not None:
            return self._unknown[why]
        if self._default is None:
            return self._unknown[MISSING]
        if self._default_for is not None and (created is None or now - created >= self._default_for):
            return self._unknown[MISSING]
        return self._default

    def of_stranger(self) -> float | Unknown:
        """Return the value of a node that nobody can have measured: a node of a simulation."""
        return Unknown(f"data {self.name}", MISSING, passes=True) if self._default is None else self._default

    def has_value(self, slot: int) -> bool:
        """Return whether a value was measured for a slot, usable or not."""
        values = self.table.values
        return slot < len(values) and values[slot] == values[slot]

    def time(self, slot: int) -> int | None:
        """Return when the value of a slot was measured."""
        at = self.table.times[slot] if slot < len(self.table.times) else NO_TIME
        return None if at == NO_TIME else at


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
            if (poll := poll_of(entry)) is not None:
                key = TableKey(poll, entry.factor, entry.round)
                table = self.tables.setdefault(key, MeasuredValues(key))
                found.append(MeasuredEntry(entry, key, table))
                self.expires = min(self.expires, table.expires)
        return found

    def keep(self, polls: Iterable[Poll]) -> None:
        """Drop the tables of all other polls."""
        kept = {*polls}
        for key in [key for key in self.tables if key.poll not in kept]:
            del self.tables[key]

    def clear(self, slot: int) -> None:
        """Forget what was measured of a slot."""
        for table in self.tables.values():
            table.clear(slot)
        self.expires = 0
        self.version += 1

    def publish(
        self, readings: Mapping[Poll, Reading], slots: Mapping[str, int], created: Sequence[int], now: int
    ) -> Iterator[tuple[MeasuredValues, "array[int]", bytearray]]:
        """Store readings; yield each table, the times before, and a mask of the slots whose value differs."""
        for key, table in self.tables.items():
            if (reading := readings.get(key.poll)) is not None:
                table.grow(len(created))
                self.version += 1
                before = table.times[:]
                yield table, before, table.take(reading, slots, created, now)
        self.expires = 0

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
