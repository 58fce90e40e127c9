"""A policy set asked about pods and nodes: what the extender answers, and what is kept for the next call."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.policy.compiled import CompiledPolicy, FilterRule, ScoreRule
from fairlead.policy.facts import PodView
from fairlead.policy.kept import Bound, BoundFilter, BoundScore, Clock, Kept, KeptVerdicts, Refusal
from fairlead.policy.nodes import Nodes
from fairlead.policy.pod_class import class_key, reads_identity
from fairlead.policy.scores import totals
from fairlead.policy.select import Matched, PolicySet
from fairlead.strategies.reads import Reads, union
from fairlead.strategies.seam import Reject

CLASSES: Final = 256
UNDECIDED: Final = "cannot tell whether the policy is for this pod"
UNKNOWN_NODE: Final = "node is not known yet"


@dataclass(frozen=True, slots=True)
class Filtered:
    """What a filter call comes to."""

    refused: Mapping[str, Refusal]  # of the nodes asked about; empty when all may be used
    passed: Sequence[str]
    unknown: Sequence[str] = ()  # refused, too: nobody can judge a node that is not known yet


@dataclass(slots=True, eq=False)
class _Class:
    """What is kept for one class of pods."""

    matched: Sequence[Matched]
    verdicts: KeptVerdicts
    scores: Kept


@dataclass(slots=True, eq=False)
class Evaluator:
    """One policy set and the nodes. Owned by one thread; a new set gets a new evaluator."""

    policies: PolicySet
    nodes: Nodes
    classes: int = CLASSES
    _kept: OrderedDict[tuple[object, ...], _Class] = field(default_factory=OrderedDict)
    _keys: dict[tuple[str, ...], tuple[Callable[[PodView], tuple[object, ...]], bool]] = field(default_factory=dict)

    def filter(
        self, pod: PodView, scheduler: str, names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> Filtered:
        """Which of these nodes the pod may use."""
        of_pod = self._class_of(pod, scheduler, now)
        if not of_pod.verdicts.rules:
            return Filtered({}, names)
        of_pod.verdicts.refresh(now, clock, deadline)
        passing = of_pod.verdicts.passed
        passed = [name for name in names if name in passing]
        if len(passed) == len(names):
            return Filtered({}, names)
        known = self.nodes.slots
        return Filtered(of_pod.verdicts.refused, passed, [name for name in names if name not in known])

    def scores(
        self, pod: PodView, scheduler: str, names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> list[float]:
        """The exact total of all policies for each of these nodes; a node that is not known has no value."""
        of_pod = self._class_of(pod, scheduler, now)
        of_pod.scores.refresh(now, clock, deadline)
        slots = self.nodes.slots
        places = [slots.get(name, -1) for name in names]
        rules = []
        for rule in of_pod.scores.rules:
            values = rule.values  # type: ignore[attr-defined]
            rules.append(([values[at] if at >= 0 else None for at in places], rule.normalize, rule.weight))  # type: ignore[attr-defined]
        return totals(rules, len(names))

    def _class_of(self, pod: PodView, scheduler: str, now: int) -> _Class:
        matched = self.policies.matching(pod, scheduler, now)
        names = tuple(f"{each.policy.name}!" if each.undecided else each.policy.name for each in matched)
        known = self._keys.get(names)
        if known is None:
            reads = union(each.policy.reads for each in matched)
            known = self._keys[names] = (class_key(reads), reads_identity(reads))
        key_of, alone = known
        if alone:
            return self._bind(pod, matched)
        key = (names, *key_of(pod))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._bind(pod, matched)
            if len(self._kept) > self.classes:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def _bind(self, pod: PodView, matched: Sequence[Matched]) -> _Class:
        filters: list[Bound] = []
        scores: list[Bound] = []
        for each in matched:
            filters += bound_filters(each, pod, self.nodes)
            if not each.undecided:
                scores += bound_scores(each.policy, pod, self.nodes)
        return _Class(matched, KeptVerdicts(filters, self.nodes), Kept(scores, self.nodes))


def bound_filters(matched: Matched, pod: PodView, nodes: Nodes) -> list[BoundFilter]:
    """The filters of a policy for a pod, in the order in which reasons are given."""
    rules = sorted(matched.policy.filters, key=lambda rule: rule.name)
    if matched.undecided:
        reject = Reject(UNDECIDED)
        return [_filter(matched.policy, rule, lambda *_: reject, nodes, Reads()) for rule in rules[:1]]
    return [_filter(matched.policy, rule, rule.filter.for_pod(pod), nodes, rule.filter.reads) for rule in rules]


def _filter(policy: CompiledPolicy, rule: FilterRule, decide: Any, nodes: Nodes, reads: Reads) -> BoundFilter:
    return BoundFilter(
        policy,
        rule.name,
        reads,
        reads.now and rule.expression is not None,
        decide,
        nodes.seen_by(policy.name, bool(reads.data)),
        rejects_on_error=rule.rejects_on_error,
        resolvable=rule.resolvable,
    )


def bound_scores(policy: CompiledPolicy, pod: PodView, nodes: Nodes) -> list[BoundScore]:
    """The scores of a policy for a pod."""
    return [_score(policy, rule, pod, nodes) for rule in sorted(policy.scores, key=lambda rule: rule.name)]


def _score(policy: CompiledPolicy, rule: ScoreRule, pod: PodView, nodes: Nodes) -> BoundScore:
    reads = rule.score.reads
    return BoundScore(
        policy,
        rule.name,
        reads,
        reads.now and rule.expression is not None,
        rule.score.for_pod(pod),
        nodes.seen_by(policy.name, bool(reads.data)),
        normalize=rule.normalize,
        weight=rule.weight,
    )
