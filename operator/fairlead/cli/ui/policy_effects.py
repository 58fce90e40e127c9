"""Effects of rules in shadow on the pods that are shown, and words for those on live calls. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fairlead.cli.console.output import pluralize
from fairlead.cli.inputs.shadow_counts import CountedShadow
from fairlead.cli.inputs.shadow_effects import PodShadow
from fairlead.cli.ui.shown_pods import ShownPod, ShownPods, WorkloadKey, with_rules_in_shadow

JUDGED_MAX: Final = 8
"""Greatest number of policies that are judged: for each, all pods are judged once more."""
_NODES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class EffectOnPod:
    """Effect of one policy's rules in shadow on one pod."""

    pod: ShownPod
    lost: Sequence[str]
    """Nodes that it would lose."""
    before: int
    after: int
    rules: Sequence[str]
    """Rules that take the nodes, as policy/rule."""
    is_reordered: bool = False
    """True if none of the nodes with the most points now is among those with the most points then."""

    @property
    def is_unschedulable(self) -> bool:
        """Return whether it would lose all of its nodes."""
        return bool(self.before) and not self.after

    @property
    def is_there(self) -> bool:
        """Return whether it is on a node that it would lose."""
        return self.pod.context.node in self.lost


@dataclass(frozen=True, slots=True)
class EffectRow:
    """Pods of a workload with the same effect."""

    pod: str
    count: int
    lost: Sequence[str]
    more_lost: int
    before: int
    after: int
    is_there: bool
    rules: Sequence[str]
    is_reordered: bool


@dataclass(frozen=True, slots=True)
class ShadowEffects:
    """Effects of one policy's rules in shadow on the pods that are shown."""

    policy: str
    compared: int
    effects: Sequence[EffectOnPod]
    unknown: int = 0
    """Number of pods for which not all is known, as a rule is not evaluated."""
    is_left_out: bool = False
    """True if it is not judged, as too many policies have rules in shadow."""
    is_unanswered: bool = False
    """True if it is not judged, as no replica answers its scheduler."""

    @property
    def is_judged(self) -> bool:
        """Return whether the other fields say something."""
        return not self.is_left_out and not self.is_unanswered

    @property
    def restricted(self) -> int:
        """Number of pods that would lose nodes."""
        return sum(1 for each in self.effects if each.lost)

    @property
    def unschedulable(self) -> int:
        """Number of pods that would lose their last node."""
        return sum(1 for each in self.effects if each.is_unschedulable)

    @property
    def reordered(self) -> int:
        """Number of pods that would prefer other nodes."""
        return sum(1 for each in self.effects if each.is_reordered)

    @property
    def displaced(self) -> int:
        """Number of pods that are on a node that they could not use."""
        return sum(1 for each in self.effects if each.is_there)

    def rows(self) -> list[EffectRow]:
        """Return the effects, worst first, those that are alike in one row."""
        groups: dict[tuple[WorkloadKey, int, int, bool, bool], list[EffectOnPod]] = {}
        for each in self.effects:
            key = each.pod.workload, len(each.lost), each.after, each.is_reordered, each.is_there
            groups.setdefault(key, []).append(each)
        found = [_row(group) for group in groups.values()]
        return sorted(found, key=lambda row: (bool(row.after), not row.is_there, row.after, row.pod))


def _row(group: Sequence[EffectOnPod]) -> EffectRow:
    first = group[0]
    return EffectRow(
        first.pod.name,
        len(group),
        first.lost[:_NODES_SHOWN],
        max(0, len(first.lost) - _NODES_SHOWN),
        first.before,
        first.after,
        first.is_there,
        first.rules,
        first.is_reordered,
    )


def effects_on(shown: ShownPods) -> list[ShadowEffects]:
    """Return the effects of each policy that has rules in shadow, each policy by itself."""
    policies = with_rules_in_shadow(shown.policies)
    silent = {name for name, state in shown.explained.schedulers.items() if state.is_unanswered}
    names = [policy.name for policy in policies if policy.scheduler_name not in silent]
    found = [_effects(name, shown, is_only=len(policies) == 1) for name in names[:JUDGED_MAX]]
    found += [ShadowEffects(name, 0, (), is_left_out=True) for name in names[JUDGED_MAX:]]
    unanswered = (policy.name for policy in policies if policy.scheduler_name in silent)
    return [*found, *(ShadowEffects(name, 0, (), is_unanswered=True) for name in unanswered)]


def _effects(policy: str, shown: ShownPods, *, is_only: bool) -> ShadowEffects:
    simulation = None if is_only else shown.cluster.shadow_alone(policy)
    compared = unknown = 0
    effects = []
    same: dict[Hashable, tuple[PodShadow, _Change]] = {}
    for pod in shown.pods:
        shadow = pod.context.shadow
        if shadow is None or all(one.policy != policy for one in shadow.rules):
            continue
        if simulation is not None:
            shadow = simulation.judge(pod.pod, pod.judged)
        if shadow is None:
            continue
        compared += 1
        known = same.get(key := _key(shadow))
        change = known[1] if known is not None else same.setdefault(key, (shadow, _change(shadow)))[1]
        unknown += change.is_unknown
        if change.lost or change.is_reordered:
            before = len(shadow.decided.left)
            after = before - len(change.lost)
            effects.append(EffectOnPod(pod, change.lost, before, after, change.rules, change.is_reordered))
    return ShadowEffects(policy, compared, effects, unknown)


class _Change(NamedTuple):
    lost: Sequence[str]
    rules: Sequence[str]
    is_reordered: bool
    is_unknown: bool


def _change(shadow: PodShadow) -> _Change:
    lost = shadow.lost
    rejections = shadow.rejections() if lost else {}
    rules = dict.fromkeys(f"{one.policy}/{one.rule}" for name in lost for one in rejections.get(name, ()))
    return _Change(lost, [*rules], "reordered" in shadow.effects, bool(shadow.unknown))


def _key(shadow: PodShadow) -> Hashable:
    """Return what pods with the same change have in common; the verdicts are few objects, which pods share."""
    sides = (shadow.decided, shadow.enforced)
    verdicts = [(id(one.verdicts), *one.policies, "", *(rule.name for rule in one.unevaluated)) for one in sides]
    groups = [None if one is None else (one.policy, one.entry) for one in (shadow.refused_group, shadow.unknown_group)]
    return (*verdicts, *groups)


COUNTS: Final = (
    ("pods", "compared"),
    ("restricted", "would lose nodes"),
    ("unschedulable", "would lose the last one"),
    ("reordered", "would prefer other nodes"),
    ("evictions", "would be offered fewer nodes for preemption"),
)
"""Numbers of pods in the status of a policy, each with words for it."""


def coverage(counts: CountedShadow) -> str:
    """Return how many of the calls were compared: calls that were skipped or are unknown say nothing."""
    calls = counts.sums["calls"]
    return f"{counts.compared:,} of {pluralize(calls, 'call')} compared" if calls else "no call was seen yet"


def pod_counts(counts: CountedShadow) -> list[tuple[int, str]]:
    """Return the numbers of pods, with words for them."""
    return [(counts.sums[name], words) for name, words in COUNTS]
