"""Effects of rules in shadow: on the pods that are shown, and on live calls as the status of a policy says. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.cli.ui.shown_pods import ShownPod, ShownPods, WorkloadKey, filters_in_shadow, in_shadow
from fairlead.simulation.results import PodResult

ROWS_MAX: Final = 8
_NODES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class PodEffect:
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
    effects: Sequence[PodEffect]

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
        groups: dict[tuple[WorkloadKey, int, int, bool, bool], list[PodEffect]] = {}
        for each in self.effects:
            key = each.pod.workload, len(each.lost), each.after, each.is_reordered, each.is_there
            groups.setdefault(key, []).append(each)
        found = [_row(group) for group in groups.values()]
        return sorted(found, key=lambda row: (bool(row.after), not row.is_there, row.after, row.pod))


def _row(group: Sequence[PodEffect]) -> EffectRow:
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
    return [_effects(policy.name, shown) for policy in in_shadow(shown.policies)]


def _effects(policy: str, shown: ShownPods) -> ShadowEffects:
    rules = frozenset(rule for name, rule in filters_in_shadow(shown.policies) if name == policy)
    has_scores = any(each.shadow.scores for each in shown.policies if each.name == policy and each.shadow is not None)
    compared, effects = 0, []
    for pod in shown.pods:
        then = pod.as_enforced
        if then is None or all(each.policy.name != policy for each in then.matched):
            continue
        compared += 1
        effect = _effect(pod, then, policy, rules, has_scores=has_scores)
        if effect.lost or effect.is_reordered:
            effects.append(effect)
    return ShadowEffects(policy, compared, effects)


def _effect(pod: ShownPod, then: PodResult, policy: str, rules: frozenset[str], *, has_scores: bool) -> PodEffect:
    now = pod.judged
    lost, taken_by = [], dict[str, None]()
    if now.verdicts is not then.verdicts:
        for was, will in zip(now.nodes, then.nodes, strict=True):
            if was.score is not None and will.rejections:
                by = [each.rule for each in will.rejections if each.policy == policy and each.rule in rules]
                if by:
                    lost.append(was.name)
                    taken_by |= dict.fromkeys(f"{policy}/{rule}" for rule in by)
    before = len(now.left)
    is_reordered = has_scores and bool(now.preferred) and frozenset(now.preferred).isdisjoint(then.preferred)
    return PodEffect(pod, lost, before, before - len(lost), [*taken_by], is_reordered and bool(then.preferred))


class LiveRule(msgspec.Struct, frozen=True, rename="camel"):
    """One rule in shadow, as the status counts it."""

    kind: str = ""
    name: str = ""
    pods: int = 0
    unschedulable: int = 0


class LiveComparison(msgspec.Struct, frozen=True, rename="camel"):
    """Sums over live calls, as the status of a policy has them."""

    generation: int = 0
    since: str = ""
    calls: int = 0
    skipped: int = 0
    unknown: int = 0
    pods: int = 0
    restricted: int = 0
    unschedulable: int = 0
    reordered: int = 0
    evictions: int = 0
    too_slow: int = 0
    rules: Sequence[LiveRule] = ()

    @property
    def coverage(self) -> str:
        """Return how many of the calls were compared: calls that were skipped or are unknown say nothing."""
        every = self.calls + self.skipped + self.unknown
        return f"{self.calls:,} of {every:,} calls compared" if every else "no call was seen yet"

    def counts(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers of pods, with words for them."""
        yield self.pods, "compared"
        yield self.restricted, "would lose nodes"
        yield self.unschedulable, "would lose the last one"
        yield self.reordered, "would prefer other nodes"
        yield self.evictions, "would evict others"


def live_comparison(policy: Mapping[str, Any]) -> LiveComparison | None:
    """Return what the status of a policy says of its rules in shadow; None if it says nothing that can be read."""
    status = policy.get("status")
    found = status.get("shadow") if isinstance(status, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    known = {name: value for name, value in found.items() if value is not None}
    try:
        return msgspec.convert(known, LiveComparison)
    except msgspec.ValidationError:  # another version of the operator has written it
        return None
