"""Decisions that are kept: those that left a pod without a node, those with an effect of shadow, and a sample. Pure.

In a burst, a single ring would hold the last seconds only. So the last attempt of each pod that waits has a ring of its
own, and of the others one a second is kept. The oldest go first; all together are limited in bytes.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead.time_units import SECOND_NS
from fairlead.webhook.decisions.decision_record import BestNode, DecisionRecord, Effect, with_second_entry

BYTES: Final = 8 << 20
WAITING: Final = 512
PLACED: Final = 1_024
EFFECTS: Final = 32
"""For each policy."""
RECENT: Final = 256
"""Decisions that may still be kept, because what came of them is not known yet."""
SAMPLE_NS: Final = SECOND_NS


@dataclass(slots=True, eq=False)
class _Ring:
    """Records by the UID of their pod, the oldest first."""

    entries: int
    size: int = 0
    records: OrderedDict[str, DecisionRecord] = field(default_factory=OrderedDict)

    def put(self, record: DecisionRecord) -> None:
        """Add a record as the newest one, in place of one of the same pod."""
        records, uid = self.records, record.uid
        if uid in records:
            self.take(uid)
        records[uid] = record
        self.size += record.size
        if len(records) > self.entries:
            self.drop_oldest()

    def take(self, uid: str) -> DecisionRecord | None:
        """Return the record of a pod, and keep it no longer."""
        found = self.records.pop(uid, None)
        if found is not None:
            self.size -= found.size
        return found

    def drop_oldest(self) -> None:
        """Forget the oldest record."""
        _, record = self.records.popitem(last=False)
        self.size -= record.size


@dataclass(slots=True, eq=False)
class KeptDecisions:
    """Records in rings. Owned by one thread."""

    limit: int = BYTES
    _waiting: _Ring = field(default_factory=lambda: _Ring(WAITING))
    _placed: _Ring = field(default_factory=lambda: _Ring(PLACED))
    _recent: _Ring = field(default_factory=lambda: _Ring(RECENT))
    _effects: dict[str, _Ring] = field(default_factory=dict)
    _effects_size: int = 0
    _sampled_ns: int = -SAMPLE_NS

    def add(self, record: DecisionRecord) -> None:
        """Add the last attempt of a pod. It is kept if a policy has decided, or once it is known that one has."""
        before = self._waiting.records.get(record.uid)
        if before is not None:
            record.attempts = before.attempts + 1
        self._recent.put(record)
        if record.is_decided:
            self._keep(record)
        self._limit()

    def add_second_entry(self, second: DecisionRecord) -> bool:
        """Add what the scheduler's other entry said of the nodes that the first one left; return whether it decided."""
        record = self._recent.records.get(second.uid)
        if record is None or record.has_second:
            self.add(second)
            return second.is_decided
        was_decided, rings = record.is_decided, [ring for ring in self._rings if record.uid in ring.records]
        for ring in rings:  # its size changes
            ring.take(record.uid)
        with_second_entry(record, second)
        for ring in rings:
            ring.put(record)
        if record.effects:
            self._count_effects()
        if record.leaves_no_node or (record.is_decided and not was_decided):
            self._placed.take(record.uid)
            self._keep(record)
        elif self._waiting.records.get(record.uid) is record:
            self._keep(record)
        self._limit()
        return second.is_decided

    def add_points(self, scored: DecisionRecord, best: tuple[BestNode, ...]) -> bool:
        """Add the call for points that follows, with the best nodes; return whether it alone made it a decision."""
        record = self._recent.records.get(scored.uid)
        if record is None or record.is_scored:
            record = scored
            self.add(record)
            is_new = True
        else:
            is_new = not record.is_decided
            if is_new:
                record.candidates = record.passed = scored.candidates
                record.policies, record.is_decided = scored.policies, True
                self._keep(record)
        record.best, record.is_scored = best, True
        self._limit()
        return is_new

    def set_node(self, uid: str, node: str) -> None:
        """Add the node that a pod went to."""
        for record in self._of(uid):
            record.node = node
        if (waited := self._waiting.take(uid)) is not None:
            self._placed.put(waited)
            self._limit()

    def add_effect(self, uid: str, effect: Effect) -> None:
        """Keep the decision about a pod on which the rules in shadow of a policy would have had an effect."""
        record = next(self._of(uid), None)
        if record is None:
            return
        others = [one for one in record.effects if one.policy != effect.policy]
        for one in record.effects:
            effect = effect.beside(one) if one.policy == effect.policy else effect
        record.effects = (*others, effect)
        self._effects.setdefault(effect.policy, _Ring(EFFECTS)).put(record)
        self._count_effects()
        self._limit()

    def retain_policies(self, names: frozenset[str]) -> None:
        """Forget the effects of other policies."""
        for name in self._effects.keys() - names:
            self._effects_size -= self._effects.pop(name).size

    @property
    def size(self) -> int:
        """Return the bytes of all rings."""
        return self._waiting.size + self._placed.size + self._recent.size + self._effects_size

    @property
    def records(self) -> list[DecisionRecord]:
        """Return what is kept, each record once, the newest first; recent ones only if they are kept otherwise."""
        rings = (self._waiting, self._placed, *self._effects.values())
        found = {id(record): record for ring in rings for record in ring.records.values()}
        return sorted(found.values(), key=lambda record: record.time_ns, reverse=True)

    @property
    def _rings(self) -> Iterator[_Ring]:
        yield self._placed
        yield self._recent
        yield from self._effects.values()
        yield self._waiting

    def _of(self, uid: str) -> Iterator[DecisionRecord]:
        """Yield the records of a pod, those of its last attempt first."""
        for ring in (self._waiting, self._recent, self._placed, *self._effects.values()):
            if (record := ring.records.get(uid)) is not None:
                yield record

    def _keep(self, record: DecisionRecord) -> None:
        waited = self._waiting.take(record.uid) is not None
        if record.leaves_no_node:
            self._waiting.put(record)
        elif waited or self._is_due(record.time_ns):
            self._placed.put(record)

    def _is_due(self, now_ns: int) -> bool:
        if 0 <= now_ns - self._sampled_ns < SAMPLE_NS:
            return False
        self._sampled_ns = now_ns
        return True

    def _count_effects(self) -> None:
        self._effects_size = sum(ring.size for ring in self._effects.values())

    def _limit(self) -> None:
        """Drop the oldest records of a ring after the other, those of waiting pods last, until all fit."""
        if self.size <= self.limit:
            return
        for ring in self._rings:
            while ring.records and self.size > self.limit:
                ring.drop_oldest()
                self._count_effects()
