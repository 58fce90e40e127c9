"""Counts of what rules in shadow would have changed: a pod counts once for each effect, whatever is asked about it."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from fairlead.policy.compile.model import CompiledPolicy, RuleKind
from fairlead.policy.shadow.call_comparison import PolicyResult
from fairlead.policy.shadow.effects import Effects, EffectsOrUnknown, PolicyComparison
from fairlead.policy.shadow.shadow_rules import RuleId, ShadowPolicy
from fairlead.replica_state import ShadowCounts, ShadowRuleCounts

PODS: Final = 4096
"""Pods of a policy that are remembered; one that comes again after more others counts again."""
RULES: Final = 64
"""Rules of a policy that are reported."""
PodEffect = Literal["compared", "restricted", "unschedulable", "reordered", "evictions"]
EFFECTS: Final[tuple[PodEffect, ...]] = ("compared", "restricted", "unschedulable", "reordered", "evictions")
CallResult = Literal["compared", "unknown", "skipped"]
NoteEffects = Callable[[str, str, Sequence[PodEffect], Sequence[str]], None]
_NO_EFFECTS: Final = Effects()


@dataclass(slots=True, eq=False)
class PolicyCounts:
    """Counts of one generation of a policy."""

    generation: str
    rules: list[RuleId]
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("compared", "unknown", "skipped"), 0))
    too_slow: int = 0
    pods: list[int] = field(default_factory=lambda: [0] * len(EFFECTS))
    """Pods by effect..."""
    by_rule: dict[RuleId, list[int]] = field(default_factory=dict)
    """...and by rule: with any effect, and unschedulable."""
    _seen: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """Effects that were counted of a pod, as bits, by a hash of its UID."""

    def count_effects(self, uid: str, effects: Iterable[PodEffect]) -> list[PodEffect]:
        """Count effects on a pod; return those that are new for it."""
        return [one for one in effects if self._is_new(uid, EFFECTS.index(one), self.pods, EFFECTS.index(one))]

    def count_rule(self, uid: str, rule: RuleId, *, unschedulable: bool) -> None:
        """Count a pod for which a rule alone would have had an effect."""
        counts = self.by_rule.setdefault(rule, [0, 0])
        first = len(EFFECTS) + 2 * self.rules.index(rule)
        self._is_new(uid, first, counts, 0)
        if unschedulable:
            self._is_new(uid, first + 1, counts, 1)

    def _is_new(self, uid: str, bit: int, counts: list[int], at: int) -> bool:
        key = hash(uid)
        seen = self._seen.get(key, 0)
        if seen >> bit & 1:
            self._seen.move_to_end(key)
            return False
        self._seen[key] = seen | 1 << bit
        self._seen.move_to_end(key)
        if len(self._seen) > PODS:
            self._seen.popitem(last=False)
        counts[at] += 1
        return True

    def report(self) -> ShadowCounts:
        """Return the counts for the leader."""
        compared, restricted, unschedulable, reordered, evictions = self.pods
        return ShadowCounts(
            generation=self.generation,
            calls=sum(self.calls.values()),
            skipped=self.calls["skipped"],
            unknown=self.calls["unknown"],
            pods=compared,
            restricted=restricted,
            unschedulable=unschedulable,
            reordered=reordered,
            evictions=evictions,
            too_slow=self.too_slow,
            rules=tuple(
                ShadowRuleCounts(kind=kind, name=name, pods=pods, unschedulable=alone)
                for kind, name in self.rules[:RULES]
                for pods, alone in [self.by_rule.get((kind, name), (0, 0))]
            ),
        )


@dataclass(slots=True, eq=False)
class PodCounts:
    """Counts of all policies, by generation: a new one starts at zero."""

    count_pod: Callable[[str, PodEffect], None]
    """Called with a policy and an effect that is new for a pod..."""
    count_call: Callable[[str, CallResult], None]
    """...with a policy and the result of a call..."""
    count_nodes: Callable[[str, str, int], None]
    """...and with a policy, a filter, and how many nodes that alone would have rejected."""
    note_effects: NoteEffects = lambda _uid, _policy, _effects, _rules: None
    """Called with the UID of a pod, a policy, its effects on a call, and the rules that alone would have had one."""
    _policies: dict[str, tuple[str, PolicyCounts]] = field(default_factory=dict)

    def of(self, shadow: ShadowPolicy) -> PolicyCounts:
        """Return the counts of a policy."""
        policy, rules = shadow.policy, [*shadow.alone]
        uid, known = self._policies.get(policy.name, ("", None))
        if known is None or (uid, known.generation, known.rules) != (policy.uid, policy.generation, rules):
            known = PolicyCounts(policy.generation, rules)
            self._policies[policy.name] = policy.uid, known
        return known

    def keep(self, names: Collection[str]) -> None:
        """Forget the policies that are not named."""
        self._policies = {name: one for name, one in self._policies.items() if name in names}

    def add_call(self, shadow: ShadowPolicy, result: CallResult) -> None:
        """Count a call."""
        self.of(shadow).calls[result] += 1
        self.count_call(shadow.policy.name, result)

    def add_result(self, shadow: ShadowPolicy, uid: str, result: PolicyResult) -> None:
        """Count what came of the comparison of a call. The effects of rules alone count if those of all are known."""
        self.add_call(shadow, result.result)
        counts = self.of(shadow)
        counts.too_slow += result.is_too_slow
        compared = result.comparison
        if compared is None or compared.together is None:
            return
        together, rules = _effects(compared.together), list[str]()
        self._add_effects(shadow.policy, counts, uid, ("compared", *together))
        for rule, effects in _of_rules(compared):
            if effects is not None and effects != _NO_EFFECTS:
                counts.count_rule(uid, rule, unschedulable=effects.unschedulable)
                rules.append(rule[1])
        if together:
            self.note_effects(uid, shadow.policy.name, together, rules)
        for name, nodes in compared.rejected.items():
            self.count_nodes(shadow.policy.name, name, nodes)

    def add_evictions(self, shadow: ShadowPolicy, uid: str, rules: Collection[RuleId]) -> None:
        """Count a pod for which these rules would have dropped candidates of a preemption."""
        counts = self.of(shadow)
        self._add_effects(shadow.policy, counts, uid, ("evictions",))
        self.note_effects(uid, shadow.policy.name, ("evictions",), [name for _, name in rules])
        for rule in rules:
            counts.count_rule(uid, rule, unschedulable=False)

    def add_unbound(self, shadow: ShadowPolicy, uid: str, key: str) -> None:
        """Count a pod that would not have been bound to its node, as an annotation could not be computed."""
        counts, kind = self.of(shadow), _ANNOTATION
        self._add_effects(shadow.policy, counts, uid, ("unschedulable",))
        counts.count_rule(uid, (kind, key), unschedulable=True)
        self.note_effects(uid, shadow.policy.name, ("unschedulable",), [key])

    def _add_effects(
        self, policy: CompiledPolicy, counts: PolicyCounts, uid: str, effects: Iterable[PodEffect]
    ) -> None:
        for effect in counts.count_effects(uid, effects):
            self.count_pod(policy.name, effect)


_ANNOTATION: Final[RuleKind] = "Annotation"


def _effects(effects: Effects) -> Sequence[PodEffect]:
    named: tuple[tuple[bool, PodEffect], ...] = (
        (effects.restricted, "restricted"),
        (effects.unschedulable, "unschedulable"),
        (effects.reordered, "reordered"),
    )
    return [effect for has, effect in named if has]


def _of_rules(compared: PolicyComparison) -> Iterable[tuple[RuleId, EffectsOrUnknown]]:
    yield from ((("Filter", name), one) for name, one in compared.filters.items())
    yield from ((("Score", name), one) for name, one in compared.scores.items())
