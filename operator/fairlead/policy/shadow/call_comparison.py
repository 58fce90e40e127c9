"""Comparison of one call, in stretches: verdicts and scores of rules in shadow about the nodes that have passed it."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from fairlead.policy.columns.column import NAN, Column, ScoreColumn
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.class_cache import PodClass
from fairlead.policy.evaluate.compared_score import ComparedScore
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.evaluate.matching import Key, Matched, Switched
from fairlead.policy.evaluate.scoring import Values
from fairlead.policy.shadow.effects import (
    FilterVerdicts,
    NodeMask,
    Points,
    PolicyComparison,
    ScoreValues,
    ValuesOf,
    compare_policy,
    mask_of,
    need_points,
)
from fairlead.policy.shadow.later_changes import LaterChanges
from fairlead.policy.shadow.shadow_rules import RuleId, ShadowEvaluator, ShadowRules
from fairlead.policy.shadow.slow_classes import SlowClasses
from fairlead.policy.views.pod_view import PodView

UNKNOWN_SLOTS: Final = 1 << 16
"""More slots than there are nodes."""
MANY: Final = 1 << 30
"""Stands for the results of a class of which nothing is cached, and for work that goes on."""
_NO_DEADLINE: Final = 1 << 63
ComparisonResult = Literal["compared", "unknown", "skipped"]
"""Compared; a node that changed after the call could change the effects; or not looked at, as the class rests."""


class Stretch(NamedTuple):
    """Moment at which a stretch of work begins, and when it has to end."""

    now: int
    clock: Clock
    deadline_ns: int


@dataclass(slots=True, eq=False)
class CallToCompare:
    """Call of filter that was answered, with the nodes that have passed it."""

    pod: PodView
    scheduler: str
    slots: Sequence[int]
    """Slots of the nodes that are known, each once."""
    unknown: int
    """Nodes that were not known at the call."""
    position: int
    """Position in the journal of the nodes at the call."""
    budget_ns: int
    """Time that the call itself could have taken."""

    table_size: int = 0
    """Number that is greater than all slots, if it is known."""
    unknown_nodes: NodeMask = field(init=False)
    """Nodes that were not known, in slots that no node has."""
    nodes: NodeMask = field(init=False)
    """All of the nodes."""

    def __post_init__(self) -> None:
        self.unknown_nodes = mask_of(range(UNKNOWN_SLOTS, UNKNOWN_SLOTS + self.unknown)) if self.unknown else 0
        self.nodes = mask_of(self.slots, self.table_size) | self.unknown_nodes


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """Result of the comparison of a call for one policy."""

    policy: CompiledPolicy
    result: ComparisonResult
    comparison: PolicyComparison | None = None
    is_too_slow: bool = False
    """Whether its class rests from now on."""


Steps = Generator[int, None, list[PolicyResult]]
"""Yields, before work that may take longer, how many results are out of date."""


@dataclass(slots=True, eq=False)
class _Part:
    """Rules of one policy, or the scores of several, to evaluate for one pod."""

    matched: Sequence[Matched]
    key: Key | None = None
    spent_ns: int = 0
    pod_class: PodClass | None = None
    """Its results, if some are cached."""
    out_of_date: int = MANY
    """How many of these are out of date."""

    @property
    def policy(self) -> CompiledPolicy:
        """The policy, or the first of several."""
        return self.matched[0].policy


@dataclass(frozen=True, slots=True, eq=False)
class _Evaluated:
    """Rules of one policy with their results."""

    part: _Part
    pod_class: PodClass


@dataclass(slots=True, eq=False)
class CallComparison:
    """Comparison of a call with the rules in shadow. Nothing else may be evaluated for it at the same time."""

    rules: ShadowRules
    call: CallToCompare
    slow_classes: SlowClasses
    stretch: Callable[[], Stretch]
    """Begins a stretch of work."""
    switched: Callable[[], Switched | None] = lambda: None
    """Returns which policies are left out of the scores of calls."""
    is_listed: Callable[[frozenset[str]], bool] = lambda _: True
    """Returns whether the mirror has these annotations of pods on nodes."""
    changes: LaterChanges = field(init=False)
    _slots: frozenset[int] = frozenset()
    """Slots of the call, once nodes have changed after it."""

    def __post_init__(self) -> None:
        self.changes = LaterChanges(self.rules.nodes, self.call.position)

    def steps(self) -> Steps:
        """Compare, pausing before whatever may take longer."""
        call, evaluator, results = self.call, self.rules.rules, list[PolicyResult]()
        when = self.stretch()
        self.changes.read()
        parts = self._parts(when, results)
        for part in parts:
            self._look_up(part, evaluator, when)
        self.changes.skip()
        yield sum([part.out_of_date for part in parts])
        done = list[_Evaluated]()
        for part in parts:
            evaluated = yield from self._evaluated(part, evaluator)
            if evaluated is None:
                results.append(self._too_slow(part))
            else:
                done.append(evaluated)
        verdicts = [self._verdicts(one) for one in done]
        points: Points | None = None
        if any(need_points(call.nodes, *one) for one in verdicts):
            changes = self.changes.count
            points = yield from self._points()
            if self.changes.count != changes:
                verdicts = [self._verdicts(one) for one in done]
        return results + [self._result(one.part, *verdict, points) for one, verdict in zip(done, verdicts, strict=True)]

    def _parts(self, when: Stretch, results: list[PolicyResult]) -> list[_Part]:
        """Return what to evaluate; policies that rest, or need all of the time for their match, have a result."""
        call, clock, parts = self.call, when.clock, list[_Part]()
        spent: dict[str, int] = {}
        matched = self.rules.rules.matching(
            call.pod,
            call.scheduler,
            when.now,
            clock=clock,
            deadline_ns=_NO_DEADLINE,
            spent=spent,
            switched=lambda policy, _: self.slow_classes.is_resting(policy, None, clock()),
        )
        for each in matched:
            if each.switched:
                results.append(PolicyResult(each.policy, "skipped"))
                continue
            key = self.rules.rules.class_of(call.pod, [each])
            part = _Part([each], key, spent.get(each.policy.name, 0))
            if part.spent_ns > call.budget_ns:
                part.key = None
                results.append(self._too_slow(part))
            elif self.slow_classes.is_resting(each.policy, key, clock()):
                results.append(PolicyResult(each.policy, "skipped"))
            else:
                parts.append(part)
        return parts

    def _look_up(self, part: _Part, evaluator: ShadowEvaluator, when: Stretch) -> None:
        """Look for results that are cached."""
        part.pod_class = evaluator.cached(part.key)
        if part.pod_class is not None:
            part.out_of_date = evaluator.out_of_date(part.pod_class, self.call.nodes, when.now)

    def _evaluated(self, part: _Part, evaluator: ShadowEvaluator) -> Generator[int, None, _Evaluated | None]:
        """Evaluate rules until that is done; return None if it takes more than the call's time.

        Results that were up to date before a pause are so for the call: what changed since is left out.
        """
        pod_class = part.pod_class or evaluator.class_for(self.call.pod, part.matched, self.stretch().now)
        if not part.out_of_date:
            self.changes.read()
            return _Evaluated(part, pod_class)
        goes_on = False
        while part.spent_ns <= self.call.budget_ns:
            when = self.stretch()
            began = when.clock()
            self.changes.read()
            done = evaluator.work(pod_class, self.call.slots, *when, goes_on=goes_on)
            self.changes.skip()
            part.spent_ns += when.clock() - began
            if done:
                return _Evaluated(part, pod_class)
            goes_on = True
            yield MANY
        return None

    def _too_slow(self, part: _Part) -> PolicyResult:
        self.slow_classes.begin(part.policy, part.key, self.stretch().clock())
        return PolicyResult(part.policy, "unknown", is_too_slow=True)

    def _points(self) -> Generator[int, None, Points | None]:
        """Return the points of the enforced scores; None if they take more than the call's time."""
        call, evaluator, when = self.call, self.rules.scores, self.stretch()
        matched = evaluator.matching(call.pod, call.scheduler, when.now, switched=self.switched())
        matched = [each for each in matched if not each.switched]
        if not matched:
            return Points(call.nodes, ())
        part = _Part(matched, evaluator.class_of(call.pod, matched))
        self.changes.read()
        self._look_up(part, evaluator, when)
        self.changes.skip()
        yield part.out_of_date
        evaluated = yield from self._evaluated(part, evaluator)
        return None if evaluated is None else Points(call.nodes, self._scores(evaluated.pod_class))

    def _verdicts(self, evaluated: _Evaluated) -> tuple[list[FilterVerdicts], list[ScoreValues]]:
        """Return what the rules in shadow of a policy say of the nodes, as far as that is about the call."""
        call, part = self.call, evaluated.part
        if part.matched[0].undecided is not None:
            return [FilterVerdicts(rule.name, call.nodes) for rule in part.policy.filters], []
        filters = list[FilterVerdicts]()
        for rule in evaluated.pod_class.verdicts.rules:
            left_out = self._left_out(rule) if self._is_listed(part.policy, ("Filter", rule.name)) else call.nodes
            rejected = call.nodes & ~rule.passing
            filters.append(FilterVerdicts(rule.name, rejected & ~left_out if left_out else rejected, left_out))
        return filters, self._scores(evaluated.pod_class)

    def _left_out(self, column: Column) -> NodeMask:
        if self.changes.are_there and not self._slots:
            self._slots = frozenset(self.call.slots)
        return self.changes.left_out(column, self.call.nodes, self._slots, self.call.unknown_nodes)

    def _scores(self, pod_class: PodClass) -> list[ScoreValues]:
        scores = list[ScoreValues]()
        columns: list[tuple[ScoreColumn | ComparedScore, bool]] = [
            (one, self._left_out(one) != 0) for one in pod_class.scores.rules
        ]
        columns += [(one, self.changes.affect(one)) for one in pod_class.compared]
        for one, is_partial in columns:
            rule = one.rule
            is_partial = is_partial or not self._is_listed(one.policy, ("Score", rule.name))
            scores.append(ScoreValues(rule.name, self._values(one), rule.normalize, rule.weight, is_partial))
        return scores

    def _values(self, column: ScoreColumn | ComparedScore) -> ValuesOf:
        """Return a function that returns the values of a score about some of the nodes."""
        call, now, views = self.call, self.stretch().now, self.rules.nodes.views

        def values(slots: Sequence[int]) -> Values:
            known = [slot for slot in slots if slot < UNKNOWN_SLOTS] if call.unknown else slots
            if isinstance(column, ScoreColumn):
                numbers: Sequence[float] = [column.values[slot] for slot in known]
            elif any(views[slot] is None for slot in known):
                return [NAN] * len(slots)
            else:
                numbers = column.values(call.pod, [""] * len(known), known, now)
            return numbers if len(numbers) == len(slots) else [*numbers, *[NAN] * (len(slots) - len(numbers))]

        return values

    def _is_listed(self, policy: CompiledPolicy, rule: RuleId) -> bool:
        shadow = self.rules.policies.get(policy.name)
        read = None if shadow is None else shadow.annotations.get(rule)
        return read is None or self.is_listed(read)

    def _result(
        self, part: _Part, filters: Sequence[FilterVerdicts], scores: Sequence[ScoreValues], points: Points | None
    ) -> PolicyResult:
        policy = part.policy
        if points is None and need_points(self.call.nodes, filters, scores):
            return PolicyResult(policy, "unknown")
        compared = compare_policy(self.call.nodes, filters, scores, lambda: points or Points(self.call.nodes, ()))
        return PolicyResult(policy, "unknown" if compared.together is None else "compared", compared)
