"""Explanations of verdicts: why a node is rejected, or how many points it gets.

The rules are those that serve, evaluated again with tracing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import values_over, verdict_of, with_values
from fairlead.policy.compile.model import CompiledPolicy, FilterRule, ScoreRule
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.rule_columns import undecided
from fairlead.policy.evaluate.scoring import normalize_scores, on_the_wire, sums, weigh
from fairlead.policy.explain.counterfactuals import all_changes, lowered_values
from fairlead.policy.explain.explanation import (
    Counterfactual,
    ExplainedMatchError,
    Items,
    NodeExplained,
    NodeScored,
    RuleExplained,
    RuleOutcome,
    ScoreExplained,
    Step,
)
from fairlead.policy.explain.trace_steps import RAISED_STEP, EngineTrace, steps
from fairlead.policy.explain.units import unit_of
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.nodes.compared_views import compared_views
from fairlead.policy.nodes.learned_facts import with_learned
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.faults import RAISED, InternalRuleError, RuleError, error_with_place
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import Pass, Timed, Value
from fairlead.strategies.facts import Unknown

NOT_LEFT: Final = "the rule compares the nodes that pass, and this one does not"
_NOT_KNOWN: Final = Unknown("node", "is not known yet")


@dataclass(slots=True)
class StrategyTrace:
    """Trace of a strategy."""

    values: dict[str, object] = field(default_factory=dict)
    items: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def note(self, **values: object) -> None:
        """Note values of the rule as a whole."""
        self.values.update(values)

    def item(self, name: str, /, **values: object) -> None:
        """Note values of one of several items."""
        self.items.append((name, values))

    def take(self) -> Items | None:
        """Return the notes; None if there are none."""
        return Items(self.values, self.items) if self.values or self.items else None


Compared = Mapping[tuple[str, str], Mapping[str, RuleExplained]]
"""Scores that compare nodes, by policy and rule, and then by node."""
NOTHING: Final[Compared] = MappingProxyType({})


def explain_compared(pod: PodView, matched: Sequence[Matched], nodes: Nodes, left: Sequence[str], now: int) -> Compared:
    """Return the scores that compare the nodes that are left after the filters."""
    found: dict[tuple[str, str], dict[str, RuleExplained]] = {}
    for policy in (each.policy for each in matched if not each.undecided):
        for rule in policy.scores:
            if rule.compares:
                views = [view for view in map(nodes.view_of, left) if view is not None]
                reads = rule.score.reads
                seen = [with_data(view, policy.data, now, nodes) for view in views]
                seen = [with_learned(view, nodes, policy, rule.name, reads, pod) for view in seen]
                notes = StrategyTrace()
                values = _compared(policy, rule, pod, seen, nodes, now, notes)
                of_nodes = dict(notes.items)
                found[policy.name, rule.name] = {
                    view.name: _scored(policy.name, rule, value, {**notes.values, **of_nodes.get(view.name, {})})
                    for view, value in zip(views, values, strict=True)
                }
    return found


def _scored(policy: str, rule: ScoreRule, value: Value, noted: Mapping[str, object]) -> RuleExplained:
    outcome: RuleOutcome = "Unknown" if isinstance(value, Unknown) else "Scored"
    items = Items(dict(noted), []) if noted else None
    return RuleExplained(policy, rule.name, outcome, _why(value), value=_number(value), noted=items)


def explain(
    pod: PodView, matched: Sequence[Matched], nodes: Nodes, name: str, now: int, compared: Compared = NOTHING
) -> NodeExplained:
    """Return all rules of the policies for a pod and a node, in the order of the policies."""
    filters: list[RuleExplained] = []
    scores: list[RuleExplained] = []
    node = nodes.view_of(name)
    for each in matched:
        policy = each.policy
        view = None if node is None else with_data(node, policy.data, now, nodes)
        for rule in sorted(policy.filters, key=lambda rule: rule.name):
            if view is None or each.undecided:
                why = UNKNOWN_NODE if view is None else undecided(policy.name)
                filters.append(RuleExplained(policy.name, rule.name, "Rejected", why))
            else:
                seen = with_learned(view, nodes, policy, rule.name, rule.filter.reads, pod)
                filters.append(_filter(policy.name, rule, pod, seen, now))
        for score in _sorted_scores(policy):
            if each.undecided:
                scores.append(RuleExplained(policy.name, score.name, "LeftOut", undecided(policy.name)))
            elif view is None:
                scores.append(RuleExplained(policy.name, score.name, "Unknown", UNKNOWN_NODE))
            elif score.compares:
                known = compared.get((policy.name, score.name), {}).get(name)
                scores.append(known or RuleExplained(policy.name, score.name, "LeftOut", NOT_LEFT))
            else:
                seen = with_learned(view, nodes, policy, score.name, score.score.reads, pod)
                scores.append(_score(policy.name, score, pod, seen, now))
    return NodeExplained(
        node=name,
        known=node is not None,
        passed=not any(rule.outcome == "Rejected" for rule in filters),
        policies=[each.policy.name for each in matched],
        match_errors=[_doubt(each, each.undecided, pod, now) for each in matched if each.undecided],
        filters=filters,
        scores=scores,
    )


def explain_scores(
    pod: PodView, matched: Sequence[Matched], nodes: Nodes, names: Sequence[str], now: int
) -> list[NodeScored]:
    """Return the scores that the scheduler gets for these nodes, and how they come about."""
    views = [nodes.view_of(name) for name in names]
    rows: list[list[ScoreExplained]] = [[] for _ in names]
    columns: list[list[float]] = []
    for policy in (each.policy for each in matched if not each.undecided):
        seen = [None if view is None else with_data(view, policy.data, now, nodes) for view in views]
        for rule in _sorted_scores(policy):
            reads = rule.score.reads
            facts = [
                None if view is None else with_learned(view, nodes, policy, rule.name, reads, pod) for view in seen
            ]
            verdicts = _verdicts(policy, rule, pod, facts, nodes, now)
            values = [_number(value) for value in verdicts]
            scores = normalize_scores(values, rule.normalize)
            points = [0.0] * len(names) if scores is None else weigh(scores, rule.weight)
            columns.append(points)
            for at, row in enumerate(rows):
                score = None if scores is None else scores[at]
                row.append(ScoreExplained(policy.name, rule.name, values[at], _why(verdicts[at]), score, points[at]))
    totals = sums(columns, len(names))
    return [NodeScored(*each) for each in zip(names, totals, on_the_wire(totals), rows, strict=True)]


def _verdicts(
    policy: CompiledPolicy, rule: ScoreRule, pod: PodView, seen: Sequence[NodeView | None], nodes: Nodes, now: int
) -> list[Value]:
    if rule.compares:
        known = iter(_compared(policy, rule, pod, [view for view in seen if view is not None], nodes, now))
        return [_NOT_KNOWN if view is None else next(known) for view in seen]
    return [_NOT_KNOWN if view is None else verdict_of(rule.score, pod, rule.name, view, now) for view in seen]


def _compared(
    policy: CompiledPolicy,
    rule: ScoreRule,
    pod: PodView,
    views: Sequence[NodeView],
    nodes: Nodes,
    now: int,
    notes: StrategyTrace | None = None,
) -> Sequence[Value]:
    slots = [nodes.slots[view.name] for view in views]
    compared = compared_views(views, slots, nodes, policy.uid or policy.name, rule.name)
    return values_over(rule.score, pod, rule.name, compared, now, notes)


def changes_of(
    expression: CompiledExpression, pod: PodView, view: NodeView | None, now: int
) -> list[list[Counterfactual]]:
    """Return each way in which comparisons would have to come out otherwise for an expression to be true.

    The shortest way comes first; none if no change would do. `view` is None for conditions.
    """
    is_lowered = expression.evaluation == "ByteCode"
    try:
        values = lowered_values(expression, pod, view, now) if is_lowered else EngineTrace(expression, pod, view, now)
        return all_changes(expression, values)
    except RAISED:  # the rest of the explanation is still of use
        return []


def steps_of(expression: CompiledExpression, pod: PodView, view: NodeView | None, now: int) -> list[Step]:
    """Return the parts of an expression, and of the variables that it uses, with the values that they had."""
    is_lowered = expression.evaluation == "ByteCode"
    try:
        found = [
            *(steps(expression, pod, view, now) if is_lowered else EngineTrace(expression, pod, view, now).steps())
        ]
    except RAISED as error:
        found = [Step(RAISED_STEP, with_values(error))]
    used = {full.removeprefix(VARIABLES) for full in expression.expression.checked.names.values()}
    for name, variable in expression.variables.items():
        if name in used:
            parts = (replace(step, variable=step.variable or name) for step in steps_of(variable, pod, view, now))
            found += [step for step in parts if step not in found and step.text != RAISED_STEP]
    return found


def _sorted_scores(policy: CompiledPolicy) -> list[ScoreRule]:
    return sorted(policy.scores, key=lambda rule: rule.name)


def _doubt(matched: Matched, why: RuleError, pod: PodView, now: int) -> ExplainedMatchError:
    parts = [
        step
        for condition in matched.policy.match.conditions
        if condition.name == matched.condition
        for step in steps_of(condition.expression, pod, None, now)
    ]
    return ExplainedMatchError(matched.policy.name, matched.condition, why.detail or str(why), parts)


def _filter(policy: str, rule: FilterRule, pod: PodView, view: NodeView, now: int) -> RuleExplained:
    notes = StrategyTrace()
    verdict = verdict_of(rule.filter, pod, rule.name, view, now, notes)
    rejection = rule.rejection(verdict)
    outcome: RuleOutcome = "Rejected" if rejection else "Passed" if isinstance(verdict, Pass) else "Unknown"
    reason, resolvable = rejection or (_why(verdict), False)
    expression = rule.expression
    parts = [] if expression is None else steps_of(expression, pod, view, now)
    ways = changes_of(expression, pod, view, now) if expression is not None and outcome == "Rejected" else []
    return RuleExplained(
        policy,
        rule.name,
        outcome,
        reason,
        resolvable,
        steps=parts,
        changes=ways[0] if ways else (),
        alternatives=ways[1:],
        noted=notes.take(),
        raised=next((str(step.value) for step in parts if step.text == RAISED_STEP), ""),
    )


def _score(policy: str, rule: ScoreRule, pod: PodView, view: NodeView, now: int) -> RuleExplained:
    notes = StrategyTrace()
    value = verdict_of(rule.score, pod, rule.name, view, now, notes)
    parts = [] if rule.expression is None else steps_of(rule.expression, pod, view, now)
    outcome: RuleOutcome = "Unknown" if isinstance(value, Unknown) else "Scored"
    return RuleExplained(
        policy,
        rule.name,
        outcome,
        _why(value),
        value=_number(value),
        unit="" if rule.expression is None else unit_of(rule.expression.expression.checked.root, rule.expression),
        steps=parts,
        noted=notes.take(),
        raised=next((str(step.value) for step in parts if step.text == RAISED_STEP), ""),
    )


def _why(verdict: object) -> str:
    if isinstance(verdict, InternalRuleError) and verdict.error is not None:
        return f"{verdict}: {error_with_place(verdict.error)}"
    return str(verdict) if isinstance(verdict, Unknown) else ""


def _number(value: Value) -> float | None:
    if isinstance(value, Unknown):
        return None
    return value.value if isinstance(value, Timed) else value
