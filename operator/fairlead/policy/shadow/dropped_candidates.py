"""Evictions that rules in shadow would have kept from happening: candidates of a preemption that they would drop."""

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.preemption import Requests, dropped
from fairlead.policy.shadow.later_changes import LaterChanges
from fairlead.policy.shadow.shadow_rules import RuleId, ShadowRules
from fairlead.policy.shadow.slow_classes import SlowClasses
from fairlead.policy.views.pod_view import PodView

Dropping = Mapping[str, Collection[RuleId]]
"""Rules that alone would drop a candidate, by the name of their policy; without policies that would drop none."""
_KINDS: Final = ("Filter", "Protection")


@dataclass(frozen=True, slots=True, eq=False)
class PreemptCall:
    """Call of preempt that was answered, with the candidates that it left."""

    pod: PodView
    scheduler: str
    victims: Mapping[str, Collection[str]]
    """UIDs of the pods that would be evicted, by node."""
    position: int
    """Position in the journal of the nodes at the call."""
    requests: Requests
    """Returns what a placed pod counts for in what is requested of its node."""


def dropping_rules(
    rules: ShadowRules, call: PreemptCall, slow_classes: SlowClasses, now: Callable[[], int], clock: Callable[[], int]
) -> Generator[int, None, Dropping]:
    """Find the rules that would drop a candidate, pausing after each look at one. Nodes that changed are left out."""
    nodes, found = rules.nodes, dict[str, set[RuleId]]()
    changes = LaterChanges(nodes, call.position)
    matched = [
        each
        for each in rules.rules.policies.matching(call.pod, call.scheduler, now())
        if not slow_classes.is_resting(each.policy, None, clock())
    ]
    for each in matched:
        for rule, alone in rules.policies[each.policy.name].alone.items():
            if rule[0] not in _KINDS:
                continue
            as_enforced = Matched(alone, each.undecided, each.condition)
            for node, victims in call.victims.items():
                yield 0
                changes.read()
                if changes.changed(node):
                    continue
                why = dropped(
                    call.pod,
                    [as_enforced],
                    nodes,
                    node,
                    victims,
                    requests=call.requests,
                    now=now(),
                    tally=rules.tally,
                )
                changes.skip()
                if why is not None and why.why != UNKNOWN_NODE:
                    found.setdefault(each.policy.name, set()).add(rule)
                    break
    return found


def victims_of(left: Collection[str], victims: Mapping[str, Any]) -> Mapping[str, Collection[str]]:
    """Return the UIDs of the victims on the candidates that are left."""
    return {name: {pod.UID for pod in victims[name].Pods} for name in left if name in victims}
