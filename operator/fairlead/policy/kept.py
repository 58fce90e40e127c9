"""Verdicts that are kept: for each class of pods one outcome per rule and node.

A change of a node is a line in the journal of `Nodes`; a class reads on when it is next asked, and computes again only
the rules that read what changed, on the nodes where it did. A cold pass runs rule by rule over slices of the nodes,
with the clock looked at between them.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.facts import NodeView
from fairlead.policy.nodes import Nodes
from fairlead.policy.rules import Raised
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import Reads
from fairlead.strategies.seam import PASS, Normalize, Pass, Reject, Timed

SLICE: Final = 128
Clock = Callable[[], int]


class TooSlowError(Exception):
    """The deadline passed before every verdict was there; what was computed is kept."""

    def __init__(self, policy: str) -> None:
        super().__init__(f"policy {policy} is too slow")
        self.policy = policy


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node is refused, and by whom."""

    policy: str
    rule: str
    reason: str
    resolvable: bool


@dataclass(slots=True, eq=False)
class Bound:
    """A rule for one class of pods."""

    policy: CompiledPolicy
    name: str
    reads: Reads
    is_volatile: bool  # a verdict holds at its moment only
    decide: Callable[..., Any]
    view: Callable[[int], NodeView | None]
    until: list[tuple[int, int]] = field(default_factory=list)
    errors: list[Raised] = field(default_factory=list)
    evaluations: int = 0

    def start(self, size: int) -> None:
        """Forget everything; there are so many slots."""
        self.until.clear()
        self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for so many slots."""
        raise NotImplementedError

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Evaluate the rule for the nodes in these slots."""
        raise NotImplementedError

    def expired(self, now: int) -> set[int]:
        """The slots whose verdict holds no longer."""
        found = set()
        while self.until and self.until[0][0] <= now:
            found.add(heapq.heappop(self.until)[1])
        return found

    def keep_until(self, until: int | None, slot: int) -> None:
        """Evaluate again at that moment."""
        if until is not None:
            heapq.heappush(self.until, (until, slot))

    def keep_error(self, error: object) -> None:
        """What an expression raised, for the status."""
        if isinstance(error, Raised) and len(self.errors) < _ERRORS:
            self.errors.append(error)


@dataclass(slots=True, eq=False)
class BoundFilter(Bound):
    """A filter for one class of pods, with its outcome for every slot."""

    rejects_on_error: bool = True
    resolvable: bool = False
    codes: bytearray = field(default_factory=bytearray)
    outcomes: list[Refusal | None] = field(default_factory=lambda: [None, None])
    _known: dict[tuple[str, bool], int] = field(default_factory=dict)

    def grow(self, size: int) -> None:
        """Nothing is known of new slots."""
        self.codes.extend(bytes(size - len(self.codes)))

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Judge the nodes in these slots."""
        view, decide, codes = self.view, self.decide, self.codes
        self.evaluations += len(slots)
        for slot in slots:
            node = view(slot)
            if node is None:
                codes[slot] = PASSED
                continue
            verdict = decide(node, now)
            codes[slot] = PASSED if verdict is PASS else self._code(verdict, slot)

    def _code(self, verdict: Pass | Reject | Unknown, slot: int) -> int:
        self.keep_until(verdict.until, slot)
        if isinstance(verdict, Pass):
            return PASSED
        if isinstance(verdict, Reject):
            return self._refusal(verdict.reason, self.resolvable)
        self.keep_error(verdict)
        return self._refusal(str(verdict), False) if self.rejects_on_error else PASSED

    def _refusal(self, reason: str, resolvable: bool) -> int:  # noqa: FBT001 - of the verdict
        key = (reason, resolvable)
        code = self._known.get(key)
        if code is None:
            if len(self.outcomes) == _CODES:
                return _CODES - 1  # a rule with so many reasons: the last stands for the rest
            code = self._known[key] = len(self.outcomes)
            self.outcomes.append(Refusal(self.policy.name, self.name, reason, resolvable))
        return code


@dataclass(slots=True, eq=False)
class BoundScore(Bound):
    """A score for one class of pods, with its raw value for every slot."""

    normalize: Normalize = "None"
    weight: int = 1
    values: list[float | None] = field(default_factory=list)

    def grow(self, size: int) -> None:
        """Nothing is known of new slots."""
        self.values.extend([None] * (size - len(self.values)))

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Rate the nodes in these slots."""
        view, decide, values = self.view, self.decide, self.values
        self.evaluations += len(slots)
        for slot in slots:
            node = view(slot)
            value = None if node is None else decide(node, now)
            if value is None or value.__class__ is float:
                values[slot] = value
            elif isinstance(value, Timed):
                self.keep_until(value.until, slot)
                values[slot] = value.value
            else:
                self.keep_until(value.until, slot)
                self.keep_error(value)
                values[slot] = None


_ERRORS: Final = 16
_CODES: Final = 256
PASSED: Final = 1


@dataclass(slots=True, eq=False)
class Kept:
    """What is kept of some rules for one class of pods."""

    rules: Sequence[Bound]
    nodes: Nodes
    position: int = -1
    waiting: list[tuple[Bound, list[int]]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def refresh(self, now: int, clock: Clock, deadline: int) -> None:
        """Bring everything up to date. Raises TooSlowError; the next call goes on where this one ended."""
        self._read_journal(now)
        while self.waiting:
            rule, slots = self.waiting[-1]
            if clock() > deadline:
                raise TooSlowError(rule.policy.name)
            rule.compute(slots[-SLICE:], now)
            del slots[-SLICE:]
            if not slots:
                self.waiting.pop()

    def _read_journal(self, now: int) -> None:
        entries = None if self.position < 0 else self.nodes.since(self.position)
        size = len(self.nodes.views)
        everything = list(self.nodes.slots.values())
        if entries is None:
            for rule in self.rules:
                rule.start(size)
            self.waiting = [(rule, everything.copy()) for rule in self.rules if everything]
            self.touched.update(everything)
        else:
            dirty: list[set[int]] = [rule.expired(now) for rule in self.rules]
            for slot, change, policy in entries:
                self.touched.add(slot)
                for slots, rule in zip(dirty, self.rules, strict=True):
                    if change is None or (policy in (None, rule.policy.name) and rule.reads.affected_by(change)):
                        slots.add(slot)
            for rule, slots in zip(self.rules, dirty, strict=True):
                rule.grow(size)
                if rule.is_volatile:
                    slots.update(everything)
                if slots:
                    self.waiting.append((rule, sorted(slots)))
                    self.touched |= slots
        self.position = self.nodes.head


@dataclass(slots=True, eq=False)
class KeptVerdicts(Kept):
    """The verdicts of filters: which nodes pass, and why the others do not."""

    passed: set[str] = field(default_factory=set)
    refused: dict[str, Refusal] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)  # of the nodes that are in one of them, by slot

    def refresh(self, now: int, clock: Clock, deadline: int) -> None:
        """As `Kept` does; then the first refusal of each node that was touched, in the order of the rules."""
        Kept.refresh(self, now, clock, deadline)
        filters: Sequence[BoundFilter] = self.rules  # type: ignore[assignment]
        names, passed, refused = self._names, self.passed, self.refused
        views, name_of = self.nodes.views, self.nodes.names
        by_rule = [(rule.codes, rule.outcomes) for rule in filters]
        for slot in self.touched if names else ():
            before = names.pop(slot, None)
            if before is not None:
                passed.discard(before)
                refused.pop(before, None)
        for slot in self.touched:
            if views[slot] is None:
                continue
            name = names[slot] = name_of[slot]
            for codes, outcomes in by_rule:
                if (code := codes[slot]) > PASSED:
                    refused[name] = outcomes[code]  # type: ignore[assignment]
                    break
            else:
                passed.add(name)
        self.touched.clear()
