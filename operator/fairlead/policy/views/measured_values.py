"""Table of the measured values of one poll: an array by slot, which all policies and evaluators share."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, NamedTuple

from fairlead.cel.functions.quantity import rounded
from fairlead.policy.views.polls import ConfigMapPoll, Poll, Reading

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

    def changed(self, measured: float) -> float:
        """Return a value as it is stored; an infinite one is no number."""
        value = measured * self.factor
        return rounded(value, self.round) if self.round is not None and isfinite(value) else value


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
    by_label: Mapping[str, float] = field(default_factory=dict)
    """Values by the value of a label, as they came, for nodes that have no slot; NaN for one that is no number."""
    by_label_at: int = NO_TIME
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
        age_ns = min(self.ages, default=NEVER)
        one_time = bounded(reading.times) if isinstance(reading.times, int) else NO_TIME
        each = reading.times if isinstance(reading.times, Mapping) else None
        document = self.key.poll if isinstance(self.key.poll, ConfigMapPoll) else None
        # A value that is looked up by a label, such as the price of an instance type, is not of an earlier node.
        # Nodes say in whole seconds when they were made.
        is_of_node, second = document is None or document.key_label is None, _SECOND if document is None else 0
        changed = bytearray(len(values))
        for name, measured in reading.values.items():
            slot = slots.get(name)
            if slot is None:
                continue
            at = one_time if each is None else bounded(each[name]) if name in each else NO_TIME
            if at != NO_TIME and is_of_node and at < created[slot] + second:
                continue  # of an earlier node of this name
            if now < at <= now + AHEAD_NS:
                at = now
            value = self.key.changed(measured)
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
        if faults or document is not None:
            self._forget_unnamed(reading, slots, changed, is_whole=document is not None)
        self.by_label, self.by_label_at = reading.by_label, one_time
        self.expires = 0
        return changed

    def _forget_unnamed(
        self, reading: Reading, slots: Mapping[str, int], changed: bytearray, *, is_whole: bool
    ) -> None:
        """Forget faults of slots that a reading does not name; one that is whole, as a document is, has all values."""
        named = {slots.get(name) for names in (reading.values, reading.several, reading.no_number) for name in names}
        for slot in [slot for slot in self.faults if slot not in named]:
            del self.faults[slot]
            changed[slot] = 1
        if is_whole:
            for slot, value in enumerate(self.values):
                if value == value and slot not in named:
                    self.values[slot], self.times[slot], changed[slot] = NAN, NO_TIME, 1

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
