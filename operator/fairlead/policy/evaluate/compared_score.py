"""Scores that compare the nodes of a call: asked once about all of them, and never kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.policy.compile.expression_rules import values_over
from fairlead.policy.compile.model import CompiledPolicy, ScoreRule
from fairlead.policy.evaluate.columns import NAN, View
from fairlead.policy.evaluate.deadline import Clock, Spent, TooSlowError
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.policy.nodes.learned_facts import seen_by
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import Normalize, Timed
from fairlead.strategies.facts import Unknown


@dataclass(frozen=True, slots=True, eq=False)
class ComparedScore:
    """Score of a policy that compares nodes."""

    policy: CompiledPolicy
    rule: ScoreRule
    nodes: Nodes
    tally: RuleErrorTally
    view: View

    @classmethod
    def of(
        cls, policy: CompiledPolicy, rule: ScoreRule, pod: PodView, nodes: Nodes, tally: RuleErrorTally
    ) -> "ComparedScore":
        """Return the score of a policy about these nodes for a class of pods."""
        return cls(policy, rule, nodes, tally, seen_by(nodes, policy, rule.name, rule.score.reads, pod))

    def values(self, pod: PodView, names: Sequence[str], now: int) -> list[float]:
        """Return the values of the nodes; NaN where there is none."""
        found, slots = [NAN] * len(names), self.nodes.slots
        places, views = list[int](), list[Any]()
        for at, name in enumerate(names):
            slot = slots.get(name)
            view = None if slot is None else self.view(slot, now)
            if view is not None:
                places.append(at)
                views.append(view)
        policy, rule = self.policy.name, self.rule
        self.tally.count_evaluations(policy, rule.name, len(views))
        for at, value in zip(places, values_over(rule.score, pod, rule.name, views, now), strict=True):
            if isinstance(value, Unknown):
                self.tally.count_error(policy, rule.name, value)
            else:
                found[at] = float(value.value if isinstance(value, Timed) else value)
        return found


def compared_scores(policy: CompiledPolicy, pod: PodView, nodes: Nodes, tally: RuleErrorTally) -> list[ComparedScore]:
    """Return the scores of a policy that compare nodes, for a class of pods."""
    return [ComparedScore.of(policy, rule, pod, nodes, tally) for rule in policy.scores if rule.compares]


def compare(
    scores: Sequence[ComparedScore],
    pod: PodView,
    names: Sequence[str],
    now: int,
    clock: Clock,
    deadline_ns: int,
    spent: Spent,
) -> Iterator[tuple[Sequence[float], Normalize, int]]:
    """Yield values, normalization and weight of scores that compare nodes. Raises TooSlowError."""
    took = Counter(spent)
    for each in scores:
        before = clock()
        yield each.values(pod, names, now), each.rule.normalize, each.rule.weight
        after = clock()
        took[each.policy.name] += after - before
        if after > deadline_ns:
            raise TooSlowError(took)
