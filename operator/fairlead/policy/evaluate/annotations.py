"""Annotations that policies write when a pod is bound."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.model import AnnotationRule
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.faults import RAISED, RuleError
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView

MAX_BYTES: Final = 4096


@dataclass(slots=True)
class Annotations:
    """Annotations to write, or the reason why the pod is not bound."""

    values: dict[str, str] = field(default_factory=dict)
    refusal: str | None = None
    conflicts: list[Conflict] = field(default_factory=list)


def annotations(
    pod: PodView,
    matched: Sequence[Matched],
    nodes: Nodes,
    node: str,
    *,
    now: int,
    tally: RuleErrorTally,
    took: Callable[[str], None] = lambda _: None,
) -> Annotations:
    """Return the annotations for a pod that is bound to a node, in the order of the policies.

    Those of a switched policy are not computed: the `onError` of each decides. `took` is called with the policy's name
    after each evaluation and may raise, for example if a deadline has passed.

    A key belongs to the first matching policy that has it, even if its expression raises: the value must not come from
    one policy today and from another tomorrow.
    """
    made = Annotations()
    owner: dict[str, str] = {}
    view = nodes.view_of(node)
    for each in matched:
        policy = each.policy
        if each.undecided or not policy.annotations:
            continue
        seen = None if view is None or each.switched else with_data(view, policy.data, now, nodes)
        for rule in policy.annotations:
            if rule.key in pod.annotations:
                continue  # annotations that the pod has are never replaced
            if rule.key in owner:
                made.conflicts.append(Conflict(rule.key, owner[rule.key], policy.name))
                continue
            owner[rule.key] = policy.name
            if each.switched:
                value: str | RuleError = RuleError(f"policy {policy.name}", "is too slow")
            else:
                value = _value(rule, pod, seen, now)
                took(policy.name)
            if isinstance(value, str):
                made.values[rule.key] = value
                continue
            tally.count_error(policy.name, rule.key, value)
            if rule.rejects_on_error:
                why = value.detail or str(value)
                return Annotations(
                    refusal=f"policy {policy.name} cannot compute the annotation {rule.key}: {why}",
                    conflicts=made.conflicts,
                )
    return made


def _value(rule: AnnotationRule, pod: PodView, view: NodeView | None, now: int) -> str | RuleError:
    if view is None:
        return RuleError("the node", "is not known yet")
    try:
        value = str(rule.expression.for_pod(pod)(view, now))
    except RAISED as error:
        return error_verdict(error, written=rule.expression.written)
    if len(value.encode()) > MAX_BYTES:
        return RuleError("the value", f"has more than {MAX_BYTES} bytes")
    return value
