"""Observations of the leader that are not published yet, and the writes that publish them.

Observations are kept until a write that has them was accepted: one that is refused, or whose answer is lost, is made
again from the newest published state, in which everything counts once. Nothing here asks anybody: the caller sends what
`writes` returns, and tells what came of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fairlead.cooperative import Steps, finish
from fairlead.learned.content import Written, encode_demands, encode_pairs
from fairlead.learned.demands import NO_DEMANDS, Arrival, Demands, amount, unite
from fairlead.learned.pair import Observation
from fairlead.learned.pairs import NO_PAIRS, SHARDS, Key, Meaning, Pairs, bound, merge, shard_of
from fairlead.learned.published import LearnedState, LearningRule, Publication, config_map, names_of
from fairlead.resource_versions import is_newer

PENDING_MAX: Final = 500_000
_Pending: TypeAlias = dict[Key, dict[str, Observation]]


class StateWrite(Struct, frozen=True):
    """Write of a ConfigMap, which replaces one version of it or creates it."""

    number: int
    before: LearnedState | None
    config_map: Mapping[str, Any]
    written: Written
    has: Mapping[Any, Iterable[str]]
    """Observations that were pending when it was made: ids of outcomes by pair, or pods."""
    late: int = 0
    """Late outcomes among these..."""
    untold: int = 0
    """...and of before, which no write has told."""


class Versions:
    """Newest known versions of the ConfigMaps of a rule."""

    def __init__(self, rule: LearningRule) -> None:
        self.rule = rule
        self.is_listed = False
        """True once all were listed; nothing is written before."""
        self.known: dict[int, LearnedState] = {}
        self._taken: set[str] = set()
        self._refused: set[int] = set()

    def show_taken(self, name: str) -> None:
        """Take note of a ConfigMap that does not say whose it is: it is left alone."""
        self._taken.add(name)

    def show(self, state: LearnedState) -> None:
        """Take a version that a watch, a read or a write has shown; an older one than is known tells nothing."""
        if (state.rule.policy, state.rule.name) != (self.rule.policy, self.rule.name):
            self._taken.add(state.name)
            return
        known = self.known.get(state.number)
        if known is None or is_newer(state.rv, known.rv):
            self.known[state.number] = state
            self._refused.discard(state.number)

    def remove(self, number: int, rv: str) -> None:
        """Take note that a ConfigMap is gone, which has the version of its end."""
        known = self.known.get(number)
        if known is not None and not is_newer(known.rv, rv):
            del self.known[number]
        self._refused.discard(number)

    def refuse(self, number: int) -> None:
        """Take note that a write was refused, or may have been: the ConfigMap has to be read."""
        self._refused.add(number)

    def was_read(self, number: int, state: LearnedState | None) -> None:
        """Take what a read has shown that began after a write was refused; None if this rule has no such ConfigMap."""
        self.known.pop(number, None)
        if state is not None:
            self.show(state)
        self._refused.discard(number)

    @property
    def to_read(self) -> frozenset[int]:
        """Return the numbers of those that have to be read before they are written again."""
        return frozenset(self._refused)

    def may_write(self, number: int) -> bool:
        """Return whether one may be written: not what a newer generation or Fairlead wrote, or what is unreadable."""
        found = self.known.get(number)
        if not self.is_listed or number in self._refused:
            return False
        if found is None:
            return not self._taken.issuperset(names_of(self.rule, number))
        is_newer_policy = found.rule.uid == self.rule.uid and found.rule.generation > self.rule.generation
        return not (found.document.fault or is_newer_policy)

    def is_left_alone(self, number: int) -> bool:
        """Return whether one cannot be read, so that nothing can be added to it."""
        found = self.known.get(number)
        return found is not None and bool(found.document.fault)

    def content(self, number: int) -> Any:
        """Return what one says for this rule; None if there is nothing."""
        found = self.known.get(number)
        return found.document.value if found is not None and found.rule.identity == self.rule.identity else None

    def is_of_another(self, number: int) -> bool:
        """Return whether what one says means nothing to this rule."""
        found = self.known.get(number)
        return found is not None and found.rule.identity != self.rule.identity

    def write(
        self,
        number: int,
        written: Written,
        has: Mapping[Any, Iterable[str]],
        now: int,
        *,
        late: int = 0,
        untold: int = 0,
    ) -> StateWrite:
        """Return a write of what was written in place of what is known."""
        found = self.known.get(number)
        plain, longer = names_of(self.rule, number)
        name = found.name if found is not None else longer if plain in self._taken else plain
        told = 0 if found is None or self.is_of_another(number) else found.publication.late
        made = config_map(self.rule, name, written.data, Publication(now, told + untold + late))
        return StateWrite(number, found, made, written, has, late, untold)


class PairLearner:
    """Learner of outcomes: pairs of types and nodes, in shards."""

    def __init__(self, rule: LearningRule, meaning: Meaning) -> None:
        self.versions, self.meaning = Versions(rule), meaning
        self.late = 0
        """Outcomes that came too late to be counted, or for which there was no room."""
        self.pending = 0
        """Outcomes that are not published."""
        self._pending: dict[int, _Pending] = {}
        self._untold: Counter[int] = Counter()
        """Late outcomes that no write has told, by shard."""
        self._is_listing = False

    def take_late(self) -> int:
        """Return how many outcomes came late since this was asked last."""
        late, self.late = self.late, 0
        return late

    def begin_list(self) -> None:
        """Publish nothing until a list has been counted: it is in the order of names. It may begin again."""
        self._is_listing = True

    def end_list(self) -> None:
        """Publish again."""
        self._is_listing = False

    def observe(self, outcome: Observation) -> None:
        """Keep an outcome for the next write."""
        key = outcome.type, outcome.node
        number = shard_of(key)
        if outcome.id in self._pending.get(number, {}).get(key, ()):
            return
        if self.pending >= PENDING_MAX or self.versions.is_left_alone(number):
            self._note_late(number, not outcome.listed)
            return
        self._pending.setdefault(number, {}).setdefault(key, {})[outcome.id] = outcome
        self.pending += 1

    def pairs(self, number: int) -> Pairs:
        """Return the published pairs of a shard."""
        return self.versions.content(number) or NO_PAIRS

    def writes(self, now: int) -> list[StateWrite]:
        """Return the writes by which everything is published that is pending."""
        return finish(self.write_steps(now))

    def write_steps(self, now: int) -> Steps[list[StateWrite]]:
        """Compute `writes` with pauses. What is observed, or shown by a watch, meanwhile is for the next time."""
        versions = self.versions
        if self._is_listing:
            return []
        known = [versions.known.get(number) for number in range(SHARDS)]
        before = [self.pairs(number) for number in range(SHARDS)]
        after, late = list(before), dict[int, int]()
        # All at once: a list that begins meanwhile may be in none of the shards.
        pending = {
            number: {key: [*ids.values()] for key, ids in pairs.items()}
            for number, pairs in self._pending.items()
            if versions.may_write(number)
        }
        for number, outcomes in pending.items():
            merged = merge(before[number], outcomes, self.meaning, now)
            late[number] = merged.late
            if merged.counted:
                after[number] = merged.pairs
            yield
        after = yield from bound(after, self.meaning, now)
        found: list[StateWrite] = []
        for number in range(SHARDS):
            if not versions.may_write(number) or versions.known.get(number) is not known[number]:
                continue
            written = None
            if after[number] is not before[number] or versions.is_of_another(number):
                written = encode_pairs(after[number], self.meaning, now)
            counted = {key: [one.id for one in each] for key, each in pending.get(number, {}).items()}
            if written is None or (written.pairs == before[number] and not versions.is_of_another(number)):
                self._settle(number, counted, late.get(number, 0))  # all of it is known, late, or of no weight
            else:
                told = late.get(number, 0)
                found.append(versions.write(number, written, counted, now, late=told, untold=self._untold[number]))
            yield
        return found

    def accepted(self, write: StateWrite, published: LearnedState) -> None:
        """Take note that a write was accepted."""
        self.versions.show(published)
        self._settle(write.number, write.has, write.late)
        self._untold[write.number] -= write.late + write.untold

    def _note_late(self, number: int, late: int) -> None:
        self.late += late
        self._untold[number] += late

    def _settle(self, number: int, has: Mapping[Key, Iterable[str]], late: int) -> None:
        self._note_late(number, late)
        pending = self._pending.get(number, {})
        for key, ids in has.items():
            kept = pending.get(key, {})
            for one in ids:
                self.pending -= kept.pop(one, None) is not None
            if not kept:
                pending.pop(key, None)
        if not pending:
            self._pending.pop(number, None)


class DemandLearner:
    """Learner of demands: the newest pods, in one ConfigMap."""

    def __init__(self, rule: LearningRule, samples: int) -> None:
        self.versions, self.samples = Versions(rule), samples
        self._pending: dict[Arrival, tuple[float, ...]] = {}

    def observe(self, arrival: Arrival, amounts: tuple[float, ...]) -> None:
        """Keep a pod for the next write."""
        self._pending.setdefault(arrival, tuple(map(amount, amounts)))
        if len(self._pending) > 2 * self.samples:
            self._pending = dict(unite({}, self._pending, self.samples))

    @property
    def pending(self) -> int:
        """Return the number of pods that are not published."""
        return len(self._pending)

    @property
    def demands(self) -> Demands:
        """Return the published demands."""
        return self.versions.content(0) or NO_DEMANDS

    def take_late(self) -> int:
        """Return 0: a pod that is older than all that are known changes nothing, whenever it comes."""
        return 0

    def write_steps(self, now: int) -> Steps[list[StateWrite]]:
        """Compute `writes`."""
        yield
        return self.writes(now)

    def writes(self, now: int) -> list[StateWrite]:
        """Return the write by which everything is published that is pending."""
        if not self.versions.may_write(0):
            return []
        is_as_published = not self._pending and len(self.demands) <= self.samples
        if is_as_published and not self.versions.is_of_another(0):
            return []
        written = encode_demands(unite(self.demands, self._pending, self.samples), self.samples)
        if written.demands.keys() == self.demands.keys() and not self.versions.is_of_another(0):
            self._pending.clear()
            return []
        return [self.versions.write(0, written, dict.fromkeys(self._pending, ()), now)]

    def accepted(self, write: StateWrite, published: LearnedState) -> None:
        """Take note that a write was accepted."""
        self.versions.show(published)
        for one in write.has:
            self._pending.pop(one, None)
