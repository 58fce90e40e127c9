"""Rules that decide nothing: filters that cannot be decided, and scores without a value or alike on all nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.explain.explanation import ScoreExplained
from fairlead.simulation.results import NodeResult, PodResult, Verdicts
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Raw

RuleKey = tuple[str, str]
"""Policy and rule."""
_NODES_MAX: Final = 50_000
"""Nodes whose scores are compared for all pods together: each costs as much as the simulation did."""


@dataclass(slots=True)
class RuleNotes:
    """Notes on rules over several pods; each rule is noted once."""

    simulation: Simulation
    undecided: dict[RuleKey, str] = field(default_factory=dict)
    """Why filters cannot be decided, with a pod and a node."""
    valueless: dict[RuleKey, str] = field(default_factory=dict)
    """Why scores have no value on any node that is left for a pod, with that pod."""
    _valued: set[RuleKey] = field(default_factory=set)
    _seen: Verdicts | None = None

    def add(self, raw: Raw, judged: PodResult) -> None:
        """Look at a pod of `Simulation.judge`."""
        if judged.verdicts is self._seen:  # pods of one workload follow each other
            return
        self._seen = judged.verdicts
        for rule, node in self._undecided_rules(judged).items():
            [explained] = self.simulation.explain(raw, judged, [node.name])
            found = next(one for one in explained.filters if (one.policy, one.rule) == rule)
            where = f"for {judged.pod.namespace}/{judged.pod.name} on {node.name}"
            self.undecided[rule] = f"{where}: {found.raised or found.reason}"
        self._add_valueless(raw, judged)

    def texts(self, *, scores_only: bool = False) -> Iterator[str]:
        """Yield the notes."""
        for (policy, rule), why in () if scores_only else self.undecided.items():
            yield f"{policy}/{rule} cannot be decided {why}"
        for (policy, rule), why in self.valueless.items():
            yield f"score {policy}/{rule} has no value {why}: all nodes get 0 points from it"

    def _undecided_rules(self, judged: PodResult) -> dict[RuleKey, NodeResult]:
        found: dict[RuleKey, NodeResult] = {}
        for node in judged.nodes:
            for one in node.rejections:
                rule = one.policy, one.rule
                if (
                    rule not in self.undecided
                    and rule not in found
                    and one.reason == f"rule {one.rule} cannot be decided"
                ):
                    found[rule] = node
        return found

    def _add_valueless(self, raw: Raw, judged: PodResult) -> None:
        rules = {
            (each.policy.name, rule.name)
            for each in judged.matched
            if not each.undecided
            for rule in each.policy.scores
        } - self._valued
        rules -= self.valueless.keys()
        why: dict[RuleKey, str] = {}
        for node in judged.left:
            if not rules:
                return
            [explained] = self.simulation.explain(raw, judged, [node.name])
            for one in explained.scores:
                rule = one.policy, one.rule
                if one.outcome == "Scored":
                    rules.discard(rule)
                    self._valued.add(rule)
                else:
                    why.setdefault(rule, f"on {node.name}: {one.raised or one.reason}")
        nodes = len(judged.left)
        for rule in sorted(rules & why.keys()):
            which = "on the only node" if nodes == 1 else f"on any of {nodes:,} nodes"
            self.valueless[rule] = f"{which} for {judged.pod.namespace}/{judged.pod.name} ({why[rule]})"


@dataclass(slots=True)
class FlatScores:
    """Scores of policies on the possible nodes of the pods so far."""

    simulation: Simulation
    _left: int = _NODES_MAX
    _flat: dict[str, str] = field(default_factory=dict)
    """By the score that told no nodes apart: its points for the first pod."""
    _telling: set[str] = field(default_factory=set)

    def add(self, raw: Any, judged: PodResult) -> None:
        """Look at the scores of a pod that `simulation` judged."""
        rules = {f"{each.policy.name}/{rule.name}" for each in judged.matched for rule in each.policy.scores}
        count = len(judged.left)
        if rules <= self._telling or not 1 < count <= self._left:
            return
        self._left -= count
        by_rule: dict[str, list[ScoreExplained]] = {}
        for node in self.simulation.explain_scores(raw, judged):
            for score in node.scores:
                by_rule.setdefault(f"{score.policy}/{score.rule}", []).append(score)
        for rule, scores in by_rule.items():
            if all(score.value is None for score in scores):
                continue
            if len({*on_the_wire([score.points for score in scores])}) > 1:
                self._telling.add(rule)
            else:
                self._flat.setdefault(rule, _given(judged, scores))

    def texts(self) -> Iterator[str]:
        """Yield a note on each score that told no node of any pod from another."""
        for rule, given in self._flat.items():
            if rule not in self._telling:
                yield f"{rule} tells no node from another: {given}"


def _given(judged: PodResult, scores: Sequence[ScoreExplained]) -> str:
    pod, count = judged.pod.pod.metadata, len(scores)
    of = f"the {count:,} possible nodes of {pod.namespace}/{pod.name}"
    values = sorted({score.score or 0.0 for score in scores})
    if len(values) == 1:
        return f"all of {of} get {values[0]:.4g} of 100"
    return f"{of} get {values[0]:.4g} to {values[-1]:.4g} of 100, which the scheduler rounds to the same"
