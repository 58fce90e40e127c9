"""Rules in shadow of a policy set, with evaluators and caches of their own: they change nothing of enforced rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy, RuleKind
from fairlead.policy.compile.modes import compared
from fairlead.policy.evaluate.class_cache import Classes, PodClass
from fairlead.policy.evaluate.deadline import Clock, TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import Key, Matched, PolicySet
from fairlead.policy.nodes.annotated_values import reads_of
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView

BYTES: Final = 16 << 20
ENTRIES: Final = 192
RuleId: TypeAlias = tuple[RuleKind, str]


class ShadowEvaluator(Evaluator):
    """Evaluator that works in stretches, since no call waits for it."""

    def class_for(self, pod: PodView, matched: Sequence[Matched], now: int) -> PodClass:
        """Return the class of a pod, up to date or not."""
        return self._class_of(pod, matched, now)

    def cached(self, key: Key | None) -> PodClass | None:
        """Return the class of a key, if there is one."""
        if key is None or self.classes.get((id(self), key)) is None:
            return None
        return self.classes.use((id(self), key))

    def out_of_date(self, pod_class: PodClass, nodes: int, now: int) -> int:
        """Return how many results about some nodes are out of date; they are given as in `RuleCache`."""
        self.nodes.expire(now)
        caches = self._data, pod_class.verdicts, pod_class.scores
        return sum([one.out_of_date(now, nodes) for one in caches if one.rules]) + len(pod_class.compared)

    def work(
        self, pod_class: PodClass, slots: Sequence[int], now: int, clock: Clock, deadline_ns: int, *, goes_on: bool
    ) -> bool:
        """Bring the results about the nodes in these slots up to date; return whether that is done.

        `goes_on`: what holds for a moment only holds for the one at which this began.
        """
        try:
            self._refresh_data(now, clock, deadline_ns)
            pod_class.verdicts.refresh(now, clock, deadline_ns, lambda: slots, goes_on=goes_on)
            pod_class.scores.refresh(now, clock, deadline_ns, lambda: slots, goes_on=goes_on)
            return all(one.follow(clock, deadline_ns) for one in pod_class.compared)
        except TooSlowError:
            return False
        finally:
            if pod_class.has_grown:
                self.classes.count(pod_class)


@dataclass(frozen=True, slots=True)
class ShadowPolicy:
    """Policy with the rules in shadow that can be compared, as if they were enforced."""

    policy: CompiledPolicy
    alone: Mapping[RuleId, CompiledPolicy]
    """The same with one of its rules only."""
    annotations: Mapping[RuleId, frozenset[str]]
    """Annotations of pods on a node that a rule reads, without rules that read none."""

    @classmethod
    def of(cls, policy: CompiledPolicy) -> "ShadowPolicy":
        """Return the rules in shadow of a policy, which are given as an enforced policy."""
        bare = replace(policy, filters=(), scores=(), protections=(), annotations=())
        alone: dict[RuleId, CompiledPolicy] = {}
        alone |= {("Filter", one.name): replace(bare, filters=(one,)) for one in policy.filters}
        alone |= {("Score", one.name): replace(bare, scores=(one,)) for one in policy.scores}
        alone |= {("Protection", one.name): replace(bare, protections=(one,)) for one in policy.protections}
        alone |= {("Annotation", one.key): replace(bare, annotations=(one,)) for one in policy.annotations}
        return cls(policy, alone, {rule: read for rule, one in alone.items() if (read := one.pod_annotations)})


@dataclass(frozen=True, slots=True, eq=False)
class ShadowRules:
    """Rules in shadow of a policy set."""

    policies: Mapping[str, ShadowPolicy]
    """By name."""
    by_scheduler: Mapping[str, Sequence[ShadowPolicy]]
    rules: ShadowEvaluator
    """Evaluator of the rules in shadow."""
    scores: ShadowEvaluator
    """Evaluator of the enforced scores about the same pods, beside that of the calls."""
    annotating: PolicySet
    """Enforced policies that write annotations to the same pods."""
    tally: RuleErrorTally

    @property
    def nodes(self) -> Nodes:
        """Return the nodes that all of this is about."""
        return self.rules.nodes


def shadow_rules(policies: PolicySet, nodes: Nodes) -> ShadowRules | None:
    """Return the rules in shadow of a policy set; None if it has none that can be compared."""
    found = [one for policy in policies.policies if (one := compared(policy)) is not None]
    if not found:
        return None
    by_scheduler: dict[str, list[ShadowPolicy]] = {}
    for policy in found:
        by_scheduler.setdefault(policy.scheduler_name, []).append(ShadowPolicy.of(policy))
    scoring = [
        replace(one, filters=(), protections=(), annotations=(), device_shares=(), gangs=(), domain_rules=())
        for one in policies.policies
        if one.enforced and one.scores and one.scheduler_name in by_scheduler
    ]
    annotating = [
        one for one in policies.policies if one.enforced and one.annotations and one.scheduler_name in by_scheduler
    ]
    # What changes between a call and its comparison has to be in the journal, also before the first comparison.
    nodes.note_reads(reads_of(one.data) | one.reads for one in (*found, *scoring))
    tally, classes = RuleErrorTally(), Classes(limit=BYTES, entries=ENTRIES)
    return ShadowRules(
        {one.policy.name: one for several in by_scheduler.values() for one in several},
        by_scheduler,
        ShadowEvaluator(PolicySet(tuple(found), policies.generation), nodes, tally=tally, classes=classes),
        ShadowEvaluator(PolicySet(tuple(scoring), policies.generation), nodes, tally=RuleErrorTally(), classes=classes),
        PolicySet(tuple(annotating), policies.generation),
        tally,
    )
