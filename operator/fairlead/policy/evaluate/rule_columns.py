"""Columns of a class of pods: one for each rule of the policies that apply to them."""

from fairlead.policy.columns.column import FilterColumn, ScoreColumn
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression_rules import bind_rule
from fairlead.policy.compile.model import CompiledPolicy, FilterRule, ScoreRule
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.nodes.learned_facts import seen_by, sources_of
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import CompiledFilter, Filter, Reject
from fairlead.strategies.reads import Reads


def filter_columns(matched: Matched, pod: PodView, nodes: Nodes, tally: RuleErrorTally) -> list[FilterColumn]:
    """Return the filters of a policy for a pod, in the order in which their reasons are given."""
    policy = matched.policy
    rules = sorted(policy.filters, key=lambda rule: rule.name)
    if matched.undecided:
        rules = [_undecided(rule, undecided(policy.name)) for rule in rules[:1]]
    return [
        FilterColumn(
            policy=policy,
            name=rule.name,
            reads=rule.filter.reads,
            tally=tally,
            is_volatile=_is_volatile(rule),
            rule=rule,
            decide=bind_rule(rule.filter, pod, rule.name),
            sources=sources_of(nodes, policy, rule.name, rule.filter.reads),
            view=seen_by(nodes, policy, rule.name, rule.filter.reads, pod),
        )
        for rule in rules
    ]


def undecided(policy: str) -> str:
    """Return the reason for which a policy rejects every node if a condition of its match raised."""
    return f"cannot tell whether policy {policy} applies to this pod"


def _undecided(rule: FilterRule, reason: str) -> FilterRule:
    """Return a filter that rejects every node, in place of all filters of a policy whose match is not decided."""
    reject = Reject(reason)
    refuse: Filter = CompiledFilter(reads=Reads(), for_pod=lambda _: lambda *_: reject, reasons=(reason,))
    return FilterRule(rule.name, refuse, rejects_on_error=True, resolvable=False)


def score_columns(policy: CompiledPolicy, pod: PodView, nodes: Nodes, tally: RuleErrorTally) -> list[ScoreColumn]:
    """Return the scores of a policy for a pod that are kept by class."""
    return [
        ScoreColumn(
            policy=policy,
            name=rule.name,
            reads=rule.score.reads,
            tally=tally,
            is_volatile=_is_volatile(rule),
            rule=rule,
            rate=bind_rule(rule.score, pod, rule.name),
            sources=sources_of(nodes, policy, rule.name, rule.score.reads),
            view=seen_by(nodes, policy, rule.name, rule.score.reads, pod),
        )
        for rule in sorted(policy.scores, key=lambda rule: rule.name)
        if not rule.compares
    ]


def _is_volatile(rule: FilterRule | ScoreRule) -> bool:
    """Return whether a result of a rule holds for its moment only."""
    return rule.expression is not None and not rule.expression.has_known_expiry
