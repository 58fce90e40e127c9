"""Verdicts that are kept: for each class of pods one outcome per rule and node.

A change of a node is a line in the journal of `Nodes`; a class reads on when it is next asked, and computes again only
the rules that read what changed, on the nodes where it did. A cold pass runs rule by rule over slices of the nodes,
with the clock looked at between them.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.policy.compiled import CompiledPolicy, FilterRule
from fairlead.policy.facts import NodeView
from fairlead.policy.nodes import Nodes
from fairlead.policy.rules import RAISED, Raised, raised
from fairlead.strategies.facts import Unknown
from fairlead.strategies.seam import PASS, Pass, Reject

SLICE: Final = 128
_TODO, _PASSED = 0, 1
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
    raised: Raised | None = field(default=None, compare=False)


@dataclass(slots=True, eq=False)
class BoundRule:
    """A filter for one class of pods, with its outcome for every slot."""

    policy: CompiledPolicy
    rule: FilterRule
    decide: Callable[..., Any]
    view: Callable[[int], NodeView | None]
    codes: bytearray = field(default_factory=bytearray)
    outcomes: list[Refusal | None] = field(default_factory=lambda: [None, None])
    _known: dict[tuple[str, bool], int] = field(default_factory=dict)
    until: list[tuple[int, int]] = field(default_factory=list)
    errors: list[Raised] = field(default_factory=list)
    evaluations: int = 0

    @property
    def is_volatile(self) -> bool:
        """Whether a verdict holds at its moment only."""
        return self.rule.expression is not None and self.rule.filter.reads.now

    def compute(self, slots: Iterable[int], now: int) -> None:
        """Judge the nodes in these slots."""
        view, decide, codes = self.view, self.decide, self.codes
        for slot in slots:
            node = view(slot)
            if node is None:
                codes[slot] = _PASSED
                continue
            self.evaluations += 1
            try:
                verdict = decide(node, now)
            except RAISED as error:
                verdict = raised(error)
            codes[slot] = _PASSED if verdict is PASS else self._code(verdict, slot)

    def _code(self, verdict: Pass | Reject | Unknown, slot: int) -> int:
        if verdict.until is not None:
            heapq.heappush(self.until, (verdict.until, slot))
        if isinstance(verdict, Pass):
            return _PASSED
        if isinstance(verdict, Reject):
            return self._refusal(verdict.reason, self.rule.resolvable, None)
        if isinstance(verdict, Raised) and len(self.errors) < _ERRORS:
            self.errors.append(verdict)
        if not self.rule.rejects_on_error:
            return _PASSED
        return self._refusal(str(verdict), False, verdict if isinstance(verdict, Raised) else None)

    def _refusal(self, reason: str, resolvable: bool, error: Raised | None) -> int:  # noqa: FBT001 - of the verdict
        key = (reason, resolvable)
        code = self._known.get(key)
        if code is None:
            if len(self.outcomes) == _CODES:
                return _CODES - 1
            code = self._known[key] = len(self.outcomes)
            self.outcomes.append(Refusal(self.policy.name, self.rule.name, reason, resolvable, error))
        return code

    def expired(self, now: int) -> list[int]:
        """The slots whose verdict holds no longer."""
        found = []
        while self.until and self.until[0][0] <= now:
            found.append(heapq.heappop(self.until)[1])
        return found


_ERRORS: Final = 16
_CODES: Final = 256


@dataclass(slots=True, eq=False)
class ClassVerdicts:
    """All verdicts for one class of pods."""

    rules: Sequence[BoundRule]
    nodes: Nodes
    refused: dict[str, Refusal] = field(default_factory=dict)
    position: int = -1
    waiting: list[tuple[BoundRule, list[int]]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def refresh(self, now: int, clock: Clock, deadline: int) -> None:
        """Bring all verdicts up to date. Raises TooSlowError; the next call goes on where this one ended."""
        self._read_journal(now)
        while self.waiting:
            rule, slots = self.waiting[-1]
            while slots:
                part = slots[-SLICE:]
                rule.compute(part, now)
                del slots[-SLICE:]
                if slots and clock() > deadline:
                    raise TooSlowError(rule.policy.name)
            self.waiting.pop()
            if self.waiting and clock() > deadline:
                raise TooSlowError(rule.policy.name)
        self._combine()

    def _read_journal(self, now: int) -> None:
        entries = None if self.position < 0 else self.nodes.since(self.position)
        size = len(self.nodes.views)
        if entries is None:
            self.waiting = [(rule, list(self.nodes.slots.values())) for rule in self.rules]
            for rule in self.rules:
                rule.codes = bytearray(size)
                rule.until.clear()
            self.refused = {}
            self.touched = set(self.nodes.slots.values())
        else:
            dirty: list[set[int]] = [set(rule.expired(now)) for rule in self.rules]
            for slot, change, policy in entries:
                self.touched.add(slot)
                for at, rule in enumerate(self.rules):
                    if change is None or (
                        policy in (None, rule.policy.name) and rule.rule.filter.reads.affected_by(change)
                    ):
                        dirty[at].add(slot)
            for rule, slots in zip(self.rules, dirty, strict=True):
                rule.codes.extend(bytes(size - len(rule.codes)))
                if rule.is_volatile:
                    slots = set(self.nodes.slots.values())
                if slots:
                    self.waiting.append((rule, sorted(slots)))
                    self.touched |= slots
        self.position = self.nodes.head

    def _combine(self) -> None:
        """The first refusal of each node that was touched, in the order of the rules."""
        if not self.touched:
            return
        if len(self.touched) > len(self.nodes.slots) // 2:
            self._combine_all()
        else:
            for slot in self.touched:
                node = self.nodes.views[slot]
                if node is None:
                    continue
                refusal = next((r.outcomes[r.codes[slot]] for r in self.rules if r.codes[slot] > _PASSED), None)
                if refusal is None:
                    self.refused.pop(node.name, None)
                else:
                    self.refused[node.name] = refusal
        for name in [name for name in self.refused if name not in self.nodes.slots] if self.refused else ():
            del self.refused[name]
        self.touched.clear()

    def _combine_all(self) -> None:
        names = {slot: name for name, slot in self.nodes.slots.items()}
        refused: dict[str, Refusal] = {}
        for rule in reversed(self.rules):
            outcomes = rule.outcomes
            for slot, code in enumerate(rule.codes):
                if code > _PASSED and slot in names:
                    refused[names[slot]] = outcomes[code]  # type: ignore[assignment]
        self.refused = refused
