"""Differences in a pod's placement between two versions of policies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairlead.policy.columns.column import Rejection
from fairlead.policy.explain.group_explained import GroupExplained
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Raw


@dataclass(frozen=True, slots=True)
class LostOrGainedNode:
    """A node that a pod loses or gains."""

    node: str
    by: Sequence[Rejection]
    """Rules that reject it, before or after."""
    published_by: Sequence[str] = ()
    """Policies that publish node affinity which rejects it, before or after."""


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """A pod whose placement changes."""

    before: PodResult
    after: PodResult
    lost: Sequence[LostOrGainedNode]
    gained: Sequence[LostOrGainedNode]
    by_scores: Sequence[str]
    """Scores that changed, as policy/rule, if other nodes are preferred among those that stay."""
    groups: Sequence[str] = ()
    """Entries of groups, as policy/rule, if the group changes or what filter says to the pod as its member."""

    @property
    def rules(self) -> list[str]:
        """Rules that cause the change, as policy/rule."""
        rejections = (one for moved in (*self.lost, *self.gained) for one in moved.by)
        return [*dict.fromkeys([*(f"{one.policy}/{one.rule}" for one in rejections), *self.by_scores, *self.groups])]

    @property
    def unknown(self) -> list[str]:
        """Rules that are not evaluated and not the same on both sides: it is not known what else they change."""
        was, now = ({one.name: one for one in side.unevaluated} for side in (self.before, self.after))
        same = {name for name in was.keys() & now.keys() if was[name].says_as(now[name])}
        return [name for name in {**was, **now} if name not in same]

    @property
    def is_known(self) -> bool:
        """Return whether the placement changes in any case."""
        orders = bool(self.before.preferred and self.after.preferred)
        return orders or bool(self.lost or self.gained or self.groups) or not self.unknown


class JudgedPod(NamedTuple):
    """Result of a pod, with the simulation that judged it."""

    simulation: Simulation
    raw: Raw
    result: PodResult


def diff_placement(first: JudgedPod, second: JudgedPod) -> PlacementChange | None:
    """Return how a pod's placement differs between simulations of the same nodes; None if it does not."""
    before, after = first.result, second.result
    pairs = [*zip(before.nodes, after.nodes, strict=True)]
    lost = [
        LostOrGainedNode(was.name, now.rejections, now.published_by)
        for was, now in pairs
        if was.is_candidate and not now.is_candidate
    ]
    gained = [
        LostOrGainedNode(was.name, was.rejections, was.published_by)
        for was, now in pairs
        if now.is_candidate and not was.is_candidate
    ]
    groups = [*_groups(before.group, after.group)]
    by_scores = [] if before.preferred == after.preferred else [*_scores(first, second)]
    change = PlacementChange(before, after, lost, gained, by_scores, groups)
    if lost or gained or groups or before.preferred != after.preferred:
        return change
    # a rule that is not evaluated takes nodes or orders them, and here there may be none
    return change if (before.left or after.left) and change.unknown else None


def _groups(before: GroupExplained | None, after: GroupExplained | None) -> Iterator[str]:
    """Yield the entries that give the groups, if these differ."""
    if _seen(before) != _seen(after):
        yield from dict.fromkeys(f"{one.policy}/{one.rule}" for one in (before, after) if one is not None)


def _seen(group: GroupExplained | None) -> object:
    return None if group is None else (group.value, group.size, group.verdict, group.reason)


def _scores(first: JudgedPod, second: JudgedPod) -> Iterator[str]:
    """Yield scores that give other points to a node that is a candidate before and after."""
    was, now = (
        {
            (f"{score.policy}/{score.rule}", node.node): score.points
            for node in one.simulation.explain_scores(one.raw, one.result)
            for score in node.scores
        }
        for one in (first, second)
    )
    stayed = {node.name for node in first.result.left} & {node.name for node in second.result.left}
    rules = dict.fromkeys(rule for rule, _ in (*was, *now))
    for rule in rules:
        if any(was.get((rule, node)) != now.get((rule, node)) for node in stayed):
            yield rule
