"""Candidates of a preemption that are given up.

A node is given up if a filter would reject the pod there even without the victims, because they would be evicted in
vain; and if one of the victims is protected.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.model import ExpressionRule
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.rule_columns import filter_columns
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.nodes.learned_facts import with_learned
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView

Requests = Callable[[Any], Mapping[str, float]]
PROTECTED: Final = "a victim is protected"
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Reason why a candidate is given up."""

    policy: str
    rule: str
    why: str


def dropped(
    pod: PodView,
    matched: Sequence[Matched],
    nodes: Nodes,
    name: str,
    victims: Collection[str],
    *,
    requests: Requests,
    now: int,
    tally: RuleErrorTally,
    took: Callable[[], None] = lambda: None,
) -> Dropped | None:
    """Return why these victims, given by UID, must not be evicted from a node for the pod; None if they may be.

    `requests` returns what a pod counts for in the node's `requested`; it is not called for pods that have ended.
    `took` is called after each evaluation and may raise, for example if a deadline has passed.
    """
    view = nodes.view_of(name)
    for each in matched:
        policy = each.policy
        if not policy.protections and not policy.filters:
            continue
        if view is None:
            return Dropped(policy.name, "", UNKNOWN_NODE)
        seen = with_data(view, policy.data, now, nodes)
        gone = [placed for placed in seen.pods if placed.uid in victims]
        for rule in policy.protections if gone else ():
            for one in gone:
                is_protected = each.undecided is not None or protects(
                    rule, policy.name, pod, seen.with_victim(one), now, tally
                )
                took()
                if is_protected:
                    return Dropped(policy.name, rule.name, PROTECTED)
        after = seen.without(victims, [requests(one) for one in gone if one.phase not in _ENDED])
        for column in filter_columns(each, pod, nodes, tally):
            reads = column.rule.filter.reads
            rejection = column.rejection(with_learned(after, nodes, policy, column.name, reads, pod), now)
            took()
            if rejection is not None:
                return Dropped(policy.name, rejection.rule, rejection.reason)
    return None


def protects(rule: ExpressionRule, policy: str, pod: PodView, faced: NodeView, now: int, tally: RuleErrorTally) -> bool:
    """Report whether a rule protects a victim; an error protects it."""
    try:
        return bool(rule.expression.for_pod(pod)(faced, now))
    except RAISED as error:
        tally.count_error(policy, rule.name, error_verdict(error, written=rule.expression.written))
        return True
