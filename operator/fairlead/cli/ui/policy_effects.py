"""Effects of rules in shadow on the pods that are shown, and words for those on live calls. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cli.console.output import pluralize
from fairlead.cli.reports.shadow_counts import CountedShadow
from fairlead.cli.ui.shown_pods import ShownPod, ShownPods, WorkloadKey, with_rules_in_shadow
from fairlead.simulation.results import PodResult

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
    return [_effects(policy.name, shown) for policy in with_rules_in_shadow(shown.policies)]


def _effects(policy: str, shown: ShownPods) -> ShadowEffects:
    has_scores = any(each.shadow.scores for each in shown.policies if each.name == policy and each.shadow is not None)
    compared, effects = 0, []
    for pod in shown.pods:
        then = pod.as_enforced
        if then is None or all(each.policy.name != policy for each in then.matched):
            continue
        compared += 1
        effect = _effect(pod, then, policy, has_scores=has_scores)
        if effect.lost or effect.is_reordered:
            effects.append(effect)
    return ShadowEffects(policy, compared, effects)


def _effect(pod: ShownPod, then: PodResult, policy: str, *, has_scores: bool) -> EffectOnPod:
    now = pod.judged
    lost, taken_by = [], dict[str, None]()
    if now.verdicts is not then.verdicts:
        for was, will in zip(now.nodes, then.nodes, strict=True):
            if was.score is not None and will.rejections:  # by nothing that decides: it is possible now
                by = [each.rule for each in will.rejections if each.policy == policy]
                if by:
                    lost.append(was.name)
                    taken_by |= dict.fromkeys(f"{policy}/{rule}" for rule in by)
    before = len(now.left)
    is_reordered = has_scores and bool(now.preferred) and frozenset(now.preferred).isdisjoint(then.preferred)
    return EffectOnPod(pod, lost, before, before - len(lost), [*taken_by], is_reordered and bool(then.preferred))


COUNTS: Final = (
    ("pods", "compared"),
    ("restricted", "would lose nodes"),
    ("unschedulable", "would lose the last one"),
    ("reordered", "would prefer other nodes"),
    ("evictions", "would evict others"),
)
"""Numbers of pods in the status of a policy, each with words for it."""


def coverage(counts: CountedShadow) -> str:
    """Return how many of the calls were compared: calls that were skipped or are unknown say nothing."""
    calls = counts.sums["calls"]
    return f"{counts.compared:,} of {pluralize(calls, 'call')} compared" if calls else "no call was seen yet"


def pod_counts(counts: CountedShadow) -> list[tuple[int, str]]:
    """Return the numbers of pods, with words for them."""
    return [(counts.sums[name], words) for name, words in COUNTS]
