"""Rules that decide nothing: filters that cannot be decided, and scores that have no value on any node."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.simulation.results import NodeResult, PodResult, Verdicts
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Raw

RuleKey = tuple[str, str]
"""Policy and rule."""


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
