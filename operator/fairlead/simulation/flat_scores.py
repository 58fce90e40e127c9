"""Scores that tell no node from another, found in what a simulation gives the nodes of some pods.

Scores that have no value at all are noted by `rule_notes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.explain.explanation import ScoreExplained
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation

_NODES_MAX: Final = 50_000
"""Nodes that are looked at for all pods together: each costs as much as the simulation did."""


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
