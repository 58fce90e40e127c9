"""Verdicts that are kept: for each class of pods one outcome per rule and node.

A change of a node is a line in the journal of `Nodes`; a class reads on when it is next asked, and computes again only
the rules that read what changed, on the nodes where it did. It does so rule by rule over slices of the nodes, with the
clock looked at after each.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from sys import getsizeof
from typing import Final, Generic, TypeVar

from fairlead.policy.evaluate.columns import PASSED, Column, FilterColumn
from fairlead.policy.evaluate.deadline import Clock, TooSlowError
from fairlead.policy.views.node_table import Nodes

SLICE_MAX: Final = 512
SLICE_NS: Final = 1_000_000
"""Nanoseconds that a slice should take: how many nodes are in one follows from how long the last ones took."""
_FEW: Final = 64

B = TypeVar("B", bound=Column)


@dataclass(slots=True, eq=False)
class RuleCache(Generic[B]):
    """What is kept of some rules. `now` must not go back from one call to the next."""

    rules: Sequence[B]
    nodes: Nodes
    position: int = -1  # in the journal; nothing was read yet
    has_grown: bool = True  # or shrunk, since it was counted

    def refresh(self, now: int, clock: Clock, deadline: int) -> None:
        """Bring everything up to date. Raises TooSlowError; the next call goes on where this one ended."""
        self._read_journal(now)
        for rule in self.rules:
            if rule.is_volatile:
                rule.wait_for(self.nodes.slots.values())
        # Those that hold at this moment only come last: what was computed of them at another is of no use.
        behind = [rule for rule in sorted(self.rules, key=lambda rule: rule.is_volatile) if rule.waiting]
        if behind:
            self.has_grown = True
        spent = Counter[str]()
        for at, rule in enumerate(behind):
            took, done = (0, False) if at and clock() > deadline else _work(rule, now, clock, deadline)
            spent[rule.policy.name] += took
            if not done:  # it may be the first slice of one that came last
                raise TooSlowError(spent)

    def count(self) -> int:
        """Bytes that are kept."""
        self.has_grown = False
        return sum([rule.size() for rule in self.rules])

    def _read_journal(self, now: int) -> None:
        entries = None if self.position < 0 else self.nodes.since(self.position)
        size = len(self.nodes.views)
        for rule in self.rules:
            rule.grow(size)
        if entries is None:
            for rule in self.rules:
                rule.wait_for(self.nodes.slots.values())
        else:
            dirty = [rule.expired(now) for rule in self.rules]
            for slot, change, policy in entries:
                for slots, rule in zip(dirty, self.rules, strict=True):
                    if change is None or (policy in (None, rule.policy.name) and rule.reads.affected_by(change)):
                        slots.add(slot)
            for rule, slots in zip(self.rules, dirty, strict=True):
                rule.wait_for(slots)
        self.position = self.nodes.head


def _work(rule: Column, now: int, clock: Clock, deadline: int) -> tuple[int, bool]:
    """Compute what waits; how long that took, and whether it is all of it.

    One slice is always done, so that it gets on however late it is asked.
    """
    begun = before = clock()
    waiting = rule.waiting
    while waiting:
        part = waiting[-rule.slice :]
        rule.compute(part, now)
        del waiting[-len(part) :]
        after = clock()
        took, before = after - before, after
        if took > SLICE_NS:
            rule.slice = max(1, rule.slice * SLICE_NS // took)
        elif 2 * took < SLICE_NS:
            rule.slice = min(SLICE_MAX, rule.slice * 2)
        if waiting and after > deadline:
            break
    return before - begun, not waiting


@dataclass(slots=True, eq=False)
class VerdictCache(RuleCache[FilterColumn]):
    """The verdicts of filters: which nodes pass, and why the others do not."""

    passing: bytearray = field(default_factory=bytearray)  # by slot: 1 where all filters pass
    _names: dict[str, None] | None = None  # of the nodes that pass
    _removals: int = 0  # of nodes, when these were collected

    def names(self) -> dict[str, None]:
        """The nodes that pass. To look them up here takes half the time of looking each up and then what is said of it.

        It is no set because a dict lies closer together: where others had the caches in between, this halves it again.
        """
        nodes = self.nodes
        if self._names is None or self._removals != nodes.removals:
            passing = self.passing
            self._names = {name: None for name, slot in nodes.slots.items() if passing[slot]}
            self._removals = nodes.removals
            self.has_grown = True
        return self._names

    @property
    def has_names(self) -> bool:
        """Whether `names` has collected them."""
        return self._names is not None

    def forget_names(self) -> None:
        """Free what `names` has collected."""
        self._names = None

    def count(self) -> int:
        """Bytes that are kept."""
        return RuleCache.count(self) + getsizeof(self.passing) + getsizeof(self._names)

    def refresh(self, now: int, clock: Clock, deadline: int) -> None:
        """As `RuleCache` does; then all rules are taken together."""
        RuleCache.refresh(self, now, clock, deadline)
        if sum(len(rule.computed) for rule in self.rules) > _FEW:
            self.passing = self._all_together()
            self._names = None
        else:
            self.passing.extend(bytes(len(self.nodes.views) - len(self.passing)))
            for slot in {slot for rule in self.rules for slot in rule.computed}:
                self._pass(slot, all(rule.codes[slot] == PASSED for rule in self.rules))
        for rule in self.rules:
            rule.computed.clear()

    def _pass(self, slot: int, passes: bool) -> None:  # noqa: FBT001 - what is kept
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
        """For nodes that do not pass: each rule that is the first to refuse some, their names and what it said."""
        for rule in self.rules:
            codes = bytes(map(rule.codes.__getitem__, slots))
            refused = codes.translate(_REFUSED)
            if 1 in refused:
                yield rule, [*compress(names, refused)], bytes(compress(codes, refused))
                passed = refused.translate(_INVERTED)
                names, slots = [*compress(names, passed)], [*compress(slots, passed)]

    def _all_together(self) -> bytearray:
        size = len(self.nodes.views)
        refused = 0
        for rule in self.rules:
            refused |= int.from_bytes(rule.codes.translate(_REFUSED), "little")
        return bytearray(refused.to_bytes(size, "little").translate(_INVERTED))


_REFUSED: Final = bytes(code != PASSED for code in range(256))
_INVERTED: Final = bytes(code == 0 for code in range(256))


_AT_ONCE = 8  # nodes, between two looks at the clock


@dataclass(slots=True, eq=False)
class UncachedPass:
    """Once over all nodes."""

    filters: Sequence[FilterColumn]
    nodes: Nodes
    passing: bytearray = field(default_factory=bytearray)
    """By slot, as far as it got: 1 where all filters pass."""

    def go_on(self, now: int, clock: Clock, deadline: int) -> bool:
        """Until the deadline, but at least for a few nodes; whether all are judged."""
        views = self.nodes.views
        while len(self.passing) < len(views):
            for slot in range(len(self.passing), min(len(self.passing) + _AT_ONCE, len(views))):
                self.passing.append(views[slot] is not None and self._passes(slot, now))
            if clock() > deadline:
                return len(self.passing) >= len(views)
        return True

    def _passes(self, slot: int, now: int) -> bool:
        for each in self.filters:
            view = each.view(slot)
            if view is None or each.judge(view, now) is not None:
                return False
        return True
