"""Cached verdicts: for each class of pods one outcome per rule and node.

A change of a node is an entry in the journal of `Nodes`. When a class is next used, it reads the journal from where it
stopped, and evaluates only the rules that read what changed, on the nodes where it changed. It does so rule by rule
over slices of the nodes, and checks the deadline after each slice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from sys import getsizeof
from typing import Final, Generic, TypeVar

from fairlead.policy.columns.column import PASSED, Column, FilterColumn
from fairlead.policy.evaluate.deadline import NOTHING_SPENT, Clock, Spent, TooSlowError
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import Nodes

SLICE_MAX: Final = 512
SLICE_NS: Final = 1_000_000
"""Nanoseconds that a slice should take; its number of nodes follows from how long the last slices took."""
_FEW: Final = 64
BACKLOG: Final = 1_000
"""Entries of the journal, times rules, that are read at most to copy results: milliseconds that no deadline counts."""

B = TypeVar("B", bound=Column)


@dataclass(slots=True, eq=False)
class RuleCache(Generic[B]):
    """Cached results of some rules. `now` must not go back from one call to the next."""

    rules: Sequence[B]
    nodes: Nodes
    position: int = -1  # in the journal; -1 before anything was read
    has_grown: bool = True  # or shrunk, since the last count

    def refresh(
        self,
        now: int,
        clock: Clock,
        deadline_ns: int,
        wanted: Callable[[], Sequence[int]] | None = None,
        *,
        goes_on: bool = False,
    ) -> Spent:
        """Bring the slots that are asked for up to date, or all. Raises TooSlowError; the next call goes on from there.

        `wanted` is called only if more than a few results are out of date. `goes_on`: results that hold for a moment
        only are kept, as the moment is the one at which this began. Returns what each policy took.
        """
        self.read_journal(now)
        if not goes_on:
            self._forget_volatile()
        # Rules whose verdicts hold only now come last: a part of them is of no use to a later call.
        behind = [rule for rule in sorted(self.rules, key=lambda rule: rule.is_volatile) if rule.is_behind]
        if not behind:
            return NOTHING_SPENT
        self.has_grown = True
        slots = wanted() if wanted is not None and any(rule.waiting.count(1) > _FEW for rule in behind) else None
        spent = Counter[str]()
        for at, rule in enumerate(behind):
            took, done = (0, False) if at and clock() > deadline_ns else _work(rule, slots, now, clock, deadline_ns)
            spent[rule.policy.name] += took
            if not done:
                raise TooSlowError(spent, after_publication=rule.was_published)
            rule.was_published = rule.was_published and rule.is_behind
        return spent

    def out_of_date(self, now: int, nodes: int) -> int:
        """Return how many results about some nodes are out of date; `refresh` may go on with them.

        The nodes are given as an integer with a byte for each slot.
        """
        self.read_journal(now)
        self._forget_volatile()
        behind = [int.from_bytes(rule.waiting, "little") & nodes for rule in self.rules if rule.is_behind]
        return sum([one.bit_count() for one in behind])

    def copy_from(self, others: Iterable["RuleCache[B]"], now: int) -> None:
        """Begin with results that other caches of the same rules have for pods that are the same to a rule."""
        self.read_journal(now)
        left, steps = {at: rule for at, rule in enumerate(self.rules) if rule.key is not None}, BACKLOG
        for other in others:
            if not left:
                return
            found = [at for at, rule in left.items() if other.rules[at].key == rule.key]
            backlog = (self.position - other.position) * len(other.rules)
            if found and other.position >= 0 and backlog <= steps:
                steps -= backlog
                other.read_journal(now)
                for at in found:
                    left.pop(at).copy(other.rules[at])

    def _forget_volatile(self) -> None:
        self._wait_for_nodes([rule for rule in self.rules if rule.is_volatile])

    def _wait_for_nodes(self, rules: Sequence[B]) -> None:
        if rules:
            in_use = self.nodes.in_use
            for rule in rules:
                rule.wait_for_all(in_use)

    def count(self) -> int:
        """Return the bytes that the cache takes."""
        self.has_grown = False
        return sum([rule.size() for rule in self.rules])

    def read_journal(self, now: int) -> None:
        """Note which results are out of date."""
        entries = None if self.position < 0 else self.nodes.since(self.position)
        size = len(self.nodes.views)
        for rule in self.rules:
            rule.grow(size)
        if entries is None:
            self.nodes.note_reads(rule.reads for rule in self.rules)
            self._wait_for_nodes(self.rules)
        else:
            dirty = [rule.expired(now) for rule in self.rules]
            for entry in entries:
                if isinstance(entry, Published):
                    for rule in self.rules:
                        if not entry.sources.isdisjoint(rule.sources):
                            rule.wait_for_all(entry.mask)
                            rule.was_published = True
                    continue
                slot, change, policy = entry
                for slots, rule in zip(dirty, self.rules, strict=True):
                    if change is None or (policy in (None, rule.policy.name) and rule.reads.affected_by(change)):
                        slots.add(slot)
            for rule, slots in zip(self.rules, dirty, strict=True):
                rule.wait_for(slots)
        self.position = self.nodes.head


def _work(rule: Column, slots: Sequence[int] | None, now: int, clock: Clock, deadline_ns: int) -> tuple[int, bool]:
    """Evaluate the waiting nodes of those asked for; return how long that took, and whether none of them is left.

    One slice is always done, so that there is progress however late the call comes.
    """
    begun = before = clock()
    mask = rule.waiting
    waiting = _waiting(mask) if slots is None else [slot for slot in slots if mask[slot]]
    while waiting:
        part = waiting[-rule.slice :]
        rule.compute(part, now)
        del waiting[-len(part) :]
        for slot in part:
            mask[slot] = 0
        after = clock()
        took, before = after - before, after
        if took > SLICE_NS:
            rule.slice = max(1, rule.slice * SLICE_NS // took)
        elif 2 * took < SLICE_NS:
            rule.slice = min(SLICE_MAX, rule.slice * 2)
        if waiting and after > deadline_ns:
            break
    return before - begun, not waiting


def _waiting(mask: bytearray) -> list[int]:
    """Return the slots of a mask; a few are searched for, which is quicker than a look at each."""
    if mask.count(1) > _FEW:
        return [*compress(count(), mask)]
    found, slot = list[int](), mask.find(1)
    while slot >= 0:
        found.append(slot)
        slot = mask.find(1, slot + 1)
    return found


@dataclass(slots=True, eq=False)
class VerdictCache(RuleCache[FilterColumn]):
    """Cached verdicts of filters: which nodes pass, and why the others do not."""

    passing: bytearray = field(default_factory=bytearray)  # by slot: 1 where all filters pass
    _names: dict[str, None] | None = None  # nodes that pass
    _removals: int = 0  # of nodes, when `_names` was filled

    @property
    def any_known_passes(self) -> bool:
        """Report whether any node passes whose verdict is up to date."""
        out_of_date = 0
        for rule in self.rules:
            out_of_date |= int.from_bytes(rule.waiting, "little")
        return bool(int.from_bytes(self.passing, "little") & ~out_of_date)

    def names(self) -> dict[str, None]:
        """Return the names of the nodes that pass.

        Looking a node up here takes half the time of looking up its slot and then its verdict. A dict is denser in
        memory than a set, which halves the time again when the processor's caches are cold.
        """
        nodes = self.nodes
        if self._names is None or self._removals != nodes.removals:
            passing = self.passing
            self._names = dict.fromkeys(compress(nodes.slots, map(passing.__getitem__, nodes.slots.values())))
            self._removals = nodes.removals
            self.has_grown = True
        return self._names

    @property
    def has_names(self) -> bool:
        """Report whether `names` has been computed."""
        return self._names is not None

    def forget_names(self) -> None:
        """Free the memory of `names`."""
        self._names = None

    def count(self) -> int:
        """Return the bytes that the cache takes."""
        return RuleCache.count(self) + getsizeof(self.passing) + getsizeof(self._names)

    def refresh(
        self,
        now: int,
        clock: Clock,
        deadline_ns: int,
        wanted: Callable[[], Sequence[int]] | None = None,
        *,
        goes_on: bool = False,
    ) -> Spent:
        """Do what `RuleCache.refresh` does, then combine all rules."""
        spent = RuleCache.refresh(self, now, clock, deadline_ns, wanted, goes_on=goes_on)
        has_none = bool(self.rules) and not self.passing  # what was copied is in no `computed`
        if has_none or sum(len(rule.computed) for rule in self.rules) > _FEW:
            self.passing = self._all_together()
            self._names = None
        else:
            self.passing.extend(bytes(len(self.nodes.views) - len(self.passing)))
            for slot in {slot for rule in self.rules for slot in rule.computed}:
                self._pass(slot, all(rule.codes[slot] == PASSED for rule in self.rules))
        for rule in self.rules:
            rule.computed.clear()
        return spent

    def _pass(self, slot: int, passes: bool) -> None:  # noqa: FBT001
        self.passing[slot] = passes
        view = self.nodes.views[slot]
        if self._names is not None and view is not None:
            if passes:
                self._names[view.name] = None
            else:
                self._names.pop(view.name, None)

    def first_to_reject(
        self, names: Sequence[str], slots: Sequence[int]
    ) -> Iterator[tuple[FilterColumn, list[str], bytes]]:
        """Yield, for nodes that do not pass, each rule that is the first to reject some, with their names and codes."""
        for rule in self.rules:
            codes = bytes(map(rule.codes.__getitem__, slots))
            rejected = codes.translate(_REJECTED)
            if 1 in rejected:
                yield rule, [*compress(names, rejected)], bytes(compress(codes, rejected))
                passed = rejected.translate(_INVERTED)
                names, slots = [*compress(names, passed)], [*compress(slots, passed)]

    def _all_together(self) -> bytearray:
        size = len(self.nodes.views)
        rejected = 0
        for rule in self.rules:
            rejected |= int.from_bytes(rule.codes.translate(_REJECTED), "little")
        return bytearray(rejected.to_bytes(size, "little").translate(_INVERTED))


_REJECTED: Final = bytes(code != PASSED for code in range(256))
_INVERTED: Final = bytes(code == 0 for code in range(256))


_AT_ONCE = 8  # nodes between two checks of the deadline


@dataclass(slots=True, eq=False)
class UncachedPass:
    """One pass over all nodes that caches nothing, for pods that share no verdicts."""

    filters: Sequence[FilterColumn]
    nodes: Nodes
    passing: bytearray = field(default_factory=bytearray)
    """By slot, as far as it has come: 1 where all filters pass."""

    def go_on(self, now: int, clock: Clock, deadline_ns: int) -> bool:
        """Evaluate until the deadline, but at least a few nodes; report whether all are done."""
        views = self.nodes.views
        while len(self.passing) < len(views):
            for slot in range(len(self.passing), min(len(self.passing) + _AT_ONCE, len(views))):
                self.passing.append(views[slot] is not None and self.passes(slot, now))
            if clock() > deadline_ns:
                return len(self.passing) >= len(views)
        return True

    def passes(self, slot: int, now: int) -> bool:
        """Report whether the node in a slot passes all filters now."""
        for each in self.filters:
            view = each.view(slot, now)
            if view is None or each.rejection(view, now) is not None:
                return False
        return True
