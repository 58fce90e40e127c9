"""Scores that compare the nodes of a call: asked once about all of them, and never kept."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.policy.columns.column import NAN, View
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression_rules import values_over
from fairlead.policy.compile.model import CompiledPolicy, ScoreRule
from fairlead.policy.evaluate.deadline import Clock, Spent, TooSlowError
from fairlead.policy.nodes.compared_views import KeptOfNodes, SeenNodes, compared_views, follow, kept_of
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
    kept: Sequence[KeptOfNodes]
    """Sums over all nodes that it reads."""

    @classmethod
    def of(
        cls, policy: CompiledPolicy, rule: ScoreRule, pod: PodView, nodes: Nodes, tally: RuleErrorTally
    ) -> "ComparedScore":
        """Return the score of a policy about these nodes for a class of pods."""
        reads = rule.score.reads
        return cls(policy, rule, nodes, tally, seen_by(nodes, policy, rule.name, reads, pod), kept_of(nodes, reads))

    def follow(self, clock: Clock, deadline_ns: int) -> bool:
        """Bring the sums up to date; report whether that was done by the deadline. The next call goes on there."""
        return follow_all(self.nodes, self.kept, clock, deadline_ns)

    def values(self, pod: PodView, names: Sequence[str], places: Sequence[int] | None, now: int) -> list[float]:
        """Return the values of the nodes, which are in these places; NaN where there is none."""
        slots = self.nodes.slots
        known = [slots[name] for name in names if name in slots] if places is None else places
        views = SeenNodes(known, self.view, now)
        policy, rule = self.policy.name, self.rule
        nodes = compared_views(views, known, self.nodes, self.policy.uid or policy, rule.name)
        self.tally.count_evaluations(policy, rule.name, len(views))
        values = values_over(rule.score, pod, rule.name, nodes, now)
        numbers = [value if value.__class__ is float else self._number(value) for value in values]
        if len(numbers) == len(names):
            return numbers
        each = iter(numbers)
        return [next(each) if name in slots else NAN for name in names]

    def _number(self, value: Any) -> float:
        if isinstance(value, Unknown):
            self.tally.count_error(self.policy.name, self.rule.name, value)
            return NAN
        return float(value.value if isinstance(value, Timed) else value)


def compared_scores(policy: CompiledPolicy, pod: PodView, nodes: Nodes, tally: RuleErrorTally) -> list[ComparedScore]:
    """Return the scores of a policy that compare nodes, for a class of pods."""
    return [ComparedScore.of(policy, rule, pod, nodes, tally) for rule in policy.scores if rule.compares]


def compare(
    scores: Sequence[ComparedScore],
    pod: PodView,
    names: Sequence[str],
    places: Sequence[int] | None,
    now: int,
    clock: Clock,
    deadline_ns: int,
    spent: Spent,
) -> Iterator[tuple[Sequence[float], Normalize, int]]:
    """Yield values, normalization and weight of scores that compare nodes. Raises TooSlowError.

    `places` are the slots of the nodes, None if some are unknown.
    """
    took = Counter(spent)
    for each in scores:
        before = clock()
        is_followed = each.follow(clock, deadline_ns)
        if is_followed:
            yield each.values(pod, names, places, now), each.rule.normalize, each.rule.weight
        after = clock()
        took[each.policy.name] += after - before
        if after > deadline_ns or not is_followed:
            raise TooSlowError(took)


def kept_for(policies: Iterable[CompiledPolicy], nodes: Nodes) -> list[KeptOfNodes]:
    """Return the sums over all nodes that the rules of the enforced policies read."""
    return [kept for policy in policies if policy.enforced for kept in kept_of(nodes, policy.reads)]


def follow_all(nodes: Nodes, sums: Iterable[KeptOfNodes], clock: Clock, deadline_ns: int) -> bool:
    """Bring sums up to date; report whether that was done by the deadline."""
    for kept in sums:
        for _ in follow(nodes, kept):
            if clock() > deadline_ns:
                return False
    return True
