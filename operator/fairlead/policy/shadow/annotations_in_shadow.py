"""Annotations in shadow: whether they could have been computed for a pod on the node where it was placed."""

from collections.abc import Sequence
from typing import NamedTuple

from fairlead.policy.evaluate.annotations import annotations
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.nodes.node_table import RequestNodes
from fairlead.policy.shadow.shadow_rules import ShadowRules
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.facts import Amounts


class UnboundBy(NamedTuple):
    """Annotation that could not be computed, so that the pod would not have been bound."""

    policy: str
    key: str


def unbound_by(
    rules: ShadowRules, pod: PodView, scheduler: str, node: str, request: Amounts, now: int
) -> Sequence[UnboundBy]:
    """Return the annotations in shadow for which a pod would not have been bound to a node, as it was without the pod.

    Errors are counted also for those that let it be bound. A key belongs to the first policy that has it: what an
    enforced policy writes before one in shadow would not be computed for that one.
    """
    view = rules.nodes.view_of(node)
    if view is None:
        return []
    nodes = RequestNodes(rules.nodes)
    nodes.put(view.without({pod.uid}, [request]) if any(one.uid == pod.uid for one in view.pods) else view)
    writing = [one.policy for one in rules.annotating.matching(pod, scheduler, now) if one.undecided is None]
    found = list[UnboundBy]()
    for each in rules.rules.policies.matching(pod, scheduler, now):
        owned = {rule.key for one in writing if one.order < each.policy.order for rule in one.annotations}
        for (kind, key), alone in rules.policies[each.policy.name].alone.items():
            if kind == "Annotation" and key not in owned:
                as_enforced = [Matched(alone, each.undecided, each.condition)]
                made = annotations(pod, as_enforced, nodes, node, now=now, tally=rules.tally)
                if made.refusal is not None:
                    found.append(UnboundBy(each.policy.name, key))
    return found


def annotating(rules: ShadowRules) -> frozenset[str]:
    """Return the schedulers of whose pods annotations are in shadow."""
    by_scheduler = rules.by_scheduler.items()
    return frozenset(name for name, several in by_scheduler if any(one.policy.annotations for one in several))
