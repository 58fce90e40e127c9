"""Columns: the results of one rule for one class of pods, for every node.

A node has a slot, a small number; a column is an array by slot.
"""

import heapq
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, Final, Self

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy, FilterRule, ScoreRule
from fairlead.policy.nodes.measured_table import NEVER, Source
from fairlead.policy.views.faults import RAISED, RuleError, internal_error
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.contract import PASS, Pass, Timed
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import Reads

NAN: Final = float("nan")
PASSED: Final = 1
UNJUDGED: Final = 0
_SLICE: Final = 2
_CODES: Final = 256
_RULE: Final = 1_024
_END: Final = 64
_OUTCOME: Final = 512
"""Estimated bytes of a column without results, of an expiry with its slot, and of a reason with its key."""
View = Callable[[int, int], NodeView | None]
_PASSES: Final = bytes(code == PASSED for code in range(_CODES))


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reason why a node is rejected, and the rule that rejects it."""

    policy: str
    rule: str
    reason: str
    resolvable: bool


@dataclass(slots=True, eq=False, kw_only=True)
class Column:
    """Results that are computed for each node and cached."""

    policy: CompiledPolicy
    name: str
    reads: Reads
    tally: RuleErrorTally
    is_volatile: bool = False  # a verdict holds for its moment only
    key: Hashable = None
    """Values of the pod that the rule reads: columns of a rule have equal results if these are equal, and not None."""
    sources: frozenset[Source] = frozenset()
    """Measurements that the rule reads."""
    slice: int = _SLICE  # nodes between two checks of the deadline
    waiting: bytearray = field(default_factory=bytearray)
    """Mask of the slots whose result is out of date."""
    was_published: bool = False
    """True if some of them are out of date because of a publication of measurements."""
    _ends: dict[int, int] = field(default_factory=dict)  # when the result of a slot expires
    _queue: list[tuple[int, int]] = field(default_factory=list)  # `_ends` as a heap, with outdated entries

    def size(self) -> int:
        """Return the bytes that the column takes."""
        ends, queue = self._ends, self._queue
        timed = getsizeof(ends) + _END * len(ends) + getsizeof(queue) + _END * len(queue)
        return _RULE + getsizeof(self.waiting) + timed

    def grow(self, size: int) -> None:
        """Make room for this many slots; new ones have no result."""
        self.waiting.extend(bytes(size - len(self.waiting)))

    def copy(self, other: Self) -> None:
        """Take over the results of a column of the same rule and key, and which of them are out of date."""
        self.slice, self.was_published = other.slice, other.was_published
        self.waiting[:] = other.waiting
        self._ends, self._queue = other._ends.copy(), other._queue.copy()

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Evaluate the rule for the nodes in these slots."""
        raise NotImplementedError

    def _faulted(self, error: Exception) -> RuleError:
        return internal_error(error, f"rule {self.name}")

    @property
    def is_behind(self) -> bool:
        """Report whether a slot waits for evaluation."""
        return 1 in self.waiting

    def wait_for(self, slots: Iterable[int]) -> None:
        """Add slots to those that wait for evaluation."""
        waiting = self.waiting
        for slot in slots:
            waiting[slot] = 1

    def wait_for_all(self, mask: bytes) -> None:
        """Add the slots of a mask to those that wait for evaluation."""
        if 1 in self.waiting:
            together = int.from_bytes(self.waiting, "little") | int.from_bytes(mask, "little")
            self.waiting[:] = together.to_bytes(len(self.waiting), "little")
        else:
            self.waiting[: len(mask)] = mask

    @property
    def next_end(self) -> int:
        """Return the moment before which no result expires."""
        return self._queue[0][0] if self._queue else NEVER

    def expired(self, now: int) -> set[int]:
        """Remove and return the slots whose result has expired."""
        found = set[int]()
        while self._queue and self._queue[0][0] <= now:
            until, slot = heapq.heappop(self._queue)
            if self._ends.get(slot) == until:
                del self._ends[slot]
                found.add(slot)
        return found

    def forget_ends(self, slots: Sequence[int]) -> None:
        """Drop the expiries of slots that are about to be evaluated."""
        if self._ends:
            for slot in slots:
                self._ends.pop(slot, None)

    def keep_until(self, until: int | None, slot: int) -> None:
        """Let the result of a slot expire at this moment; None: never."""
        if until is None:
            return
        self._ends[slot] = until
        heapq.heappush(self._queue, (until, slot))
        if len(self._queue) > 2 * len(self._ends) + _CODES:
            self._queue = sorted((until, slot) for slot, until in self._ends.items())


@dataclass(slots=True, eq=False, kw_only=True)
class FilterColumn(Column):
    """A filter for one class of pods, with a code for every slot: an index of `outcomes`."""

    rule: FilterRule
    decide: Callable[..., Any]
    view: View
    codes: bytearray = field(default_factory=bytearray)
    outcomes: list[Rejection] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)  # slots, until the cache has combined them
    _known: dict[tuple[str, bool], int] = field(default_factory=dict)
    _passing: int | None = None

    def __post_init__(self) -> None:
        none = Rejection(self.policy.name, self.name, "", resolvable=False)
        self.outcomes += [none, none]  # for UNJUDGED and PASSED

    def size(self) -> int:
        """Return the bytes that the column takes."""
        return (
            Column.size(self)
            + getsizeof(self.codes)
            + getsizeof(self._passing)
            + getsizeof(self.computed)
            + _OUTCOME * len(self.outcomes)
        )

    @property
    def passing(self) -> int:
        """Return the nodes that pass, as an integer with a byte for each slot, which is 1 if its node passes."""
        if self._passing is None:
            self._passing = int.from_bytes(self.codes.translate(_PASSES), "little")
        return self._passing

    def grow(self, size: int) -> None:
        """Make room."""
        Column.grow(self, size)
        self.codes.extend(bytes(size - len(self.codes)))

    def copy(self, other: Self) -> None:
        """Take over results."""
        Column.copy(self, other)
        self.codes[:], self.outcomes[:], self._passing = other.codes, other.outcomes, other._passing
        self._known = other._known.copy()

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Evaluate the filter for the nodes in these slots."""
        view, decide, codes = self.view, self.decide, self.codes
        self.tally.count_evaluations(self.policy.name, self.name, len(slots))
        self.forget_ends(slots)
        self._passing = None
        for slot in slots:
            node = view(slot, now)
            if node is None:
                codes[slot] = UNJUDGED
                continue
            try:
                verdict = decide(node, now)
                codes[slot] = PASSED if verdict is PASS else self._code(verdict, slot)
            except RAISED as error:
                codes[slot] = self._code(self._faulted(error), slot)
        self.computed += slots

    def rejection(self, node: NodeView, now: int) -> Rejection | None:
        """Return why a node is rejected, or None if it passes; nothing is cached."""
        try:
            verdict = self.decide(node, now)
        except RAISED as error:
            verdict = self._faulted(error)
        if isinstance(verdict, Unknown):
            self.tally.count_error(self.policy.name, self.name, verdict)
        rejection = self.rule.rejection(verdict)
        return None if rejection is None else Rejection(self.policy.name, self.name, *rejection)

    def _code(self, verdict: Any, slot: int) -> int:
        self.keep_until(verdict.until, slot)
        if isinstance(verdict, Pass):
            return PASSED
        if isinstance(verdict, Unknown):
            self.tally.count_error(self.policy.name, self.name, verdict)
        rejection = self.rule.rejection(verdict)
        if rejection is None:
            return PASSED
        code = self._known.get(rejection)
        if code is None:
            if len(self.outcomes) == _CODES:
                return _CODES - 1  # the last code stands for all further reasons
            code = self._known[rejection] = len(self.outcomes)
            self.outcomes.append(Rejection(self.policy.name, self.name, *rejection))
        return code


@dataclass(slots=True, eq=False, kw_only=True)
class ScoreColumn(Column):
    """A score for one class of pods, with a raw value for every slot; NaN where there is none."""

    rule: ScoreRule
    rate: Callable[..., Any]
    view: View
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def size(self) -> int:
        """Return the bytes that the column takes."""
        return Column.size(self) + getsizeof(self.values)

    def grow(self, size: int) -> None:
        """Make room."""
        Column.grow(self, size)
        self.values.extend([NAN] * (size - len(self.values)))

    def copy(self, other: Self) -> None:
        """Take over values."""
        Column.copy(self, other)
        self.values = other.values[:]

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Evaluate the score for the nodes in these slots."""
        view, rate, values = self.view, self.rate, self.values
        self.tally.count_evaluations(self.policy.name, self.name, len(slots))
        self.forget_ends(slots)
        for slot in slots:
            node = view(slot, now)
            try:
                value = NAN if node is None else rate(node, now)
                values[slot] = value if value.__class__ is float else self._value(value, slot)
            except RAISED as error:
                values[slot] = self._value(self._faulted(error), slot)

    def _value(self, value: Any, slot: int) -> float:
        if isinstance(value, Timed):
            self.keep_until(value.until, slot)
            return value.value
        if isinstance(value, Unknown):
            self.keep_until(value.until, slot)
            self.tally.count_error(self.policy.name, self.name, value)
            return NAN
        if not isinstance(value, int | float):
            raise TypeError(f"a score is a number, not of the type {type(value).__name__}")
        return float(value)
