"""Which candidates of a preemption survive: decision 12.

A node is dropped when a filter would refuse the pod there with the victims taken away, so that nobody is evicted for a
node that the policy vetoes; and when one of the victims is protected.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.policy.compiled import ExpressionRule
from fairlead.policy.evaluate import UNDECIDED, bound_filters
from fairlead.policy.facts import NodeView, PodView
from fairlead.policy.kept import PASSED
from fairlead.policy.nodes import Nodes
from fairlead.policy.rules import RAISED
from fairlead.policy.select import Matched
from fairlead.strategies.facts import Unknown
from fairlead.strategies.seam import Pass, Reject

Requests = Callable[[Any], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that is given up, and why."""

    policy: str
    rule: str
    why: str


def dropped(
    pod: PodView, matched: Sequence[Matched], nodes: Nodes, name: str, victims: Collection[str], requests: Requests, now: int
) -> Dropped | None:
    """Why pods may not be evicted from this node for the pod; None if they may. Victims are given by their UIDs."""
    slot = nodes.slots.get(name)
    if slot is None:
        return Dropped("", "", "node is not known yet")
    for each in matched:
        view = nodes.seen_by(each.policy.name, bool(each.policy.data))(slot)
        if view is None:
            return Dropped("", "", "node is not known yet")
        gone = [placed for placed in view.pods if placed.uid in victims]
        for rule in each.policy.protections:
            if any(_is_protected(rule, pod, view.facing(victim), now, each) for victim in gone):
                return Dropped(each.policy.name, rule.name, "a victim is protected")
        after = view.without(victims, [requests(victim) for victim in gone])
        if (refused := _refusal(pod, each, nodes, after, now)) is not None:
            return Dropped(each.policy.name, *refused)
    return None


def _is_protected(rule: ExpressionRule, pod: PodView, view: NodeView, now: int, matched: Matched) -> bool:
    """In doubt it is."""
    if matched.undecided:
        return True
    try:
        return bool(rule.expression.for_pod(pod)(view, now))
    except RAISED:
        return True


def _refusal(pod: PodView, matched: Matched, nodes: Nodes, view: NodeView, now: int) -> tuple[str, str] | None:
    for rule in bound_filters(matched, pod, nodes):
        verdict = rule.decide(view, now)
        if isinstance(verdict, Reject):
            return rule.name, UNDECIDED if matched.undecided else verdict.reason
        if isinstance(verdict, Unknown) and rule.rejects_on_error:
            return rule.name, str(verdict)
        assert isinstance(verdict, Pass | Unknown)  # noqa: S101 - all that a filter says
    return None
