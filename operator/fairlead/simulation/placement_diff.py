"""Differences in a pod's placement between two versions of policies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairlead.policy.evaluate.columns import Rejection
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


def diff_placement(first: Simulation, second: Simulation, raw: Raw, file: str = "") -> PlacementChange | None:
    """Return how a pod's placement differs between simulations of the same nodes; None if it does not."""
    before, after = first.judge(raw, file), second.judge(raw, file)
    pairs = [*zip(before.nodes, after.nodes, strict=True)]
    lost = [
        LostOrGainedNode(was.name, now.rejections) for was, now in pairs if was.is_candidate and not now.is_candidate
    ]
    gained = [
        LostOrGainedNode(was.name, was.rejections) for was, now in pairs if now.is_candidate and not was.is_candidate
    ]
    groups = [*_groups(before.group, after.group)]
    if not lost and not gained and not groups and before.preferred == after.preferred:
        return None
    by_scores = [] if before.preferred == after.preferred else [*_scores(first, second, raw, before, after)]
    return PlacementChange(before, after, lost, gained, by_scores, groups)


def _groups(before: GroupExplained | None, after: GroupExplained | None) -> Iterator[str]:
    """Yield the entries that give the groups, if these differ."""
    if _seen(before) != _seen(after):
        yield from dict.fromkeys(f"{one.policy}/{one.rule}" for one in (before, after) if one is not None)


def _seen(group: GroupExplained | None) -> object:
    return None if group is None else (group.value, group.size, group.verdict, group.reason)


def _scores(first: Simulation, second: Simulation, raw: Raw, before: PodResult, after: PodResult) -> Iterator[str]:
    """Yield scores that give other points to a node that is a candidate before and after."""
    was, now = (
        {
            (f"{score.policy}/{score.rule}", node.node): score.points
            for node in simulation.explain_scores(raw, judged)
            for score in node.scores
        }
        for simulation, judged in ((first, before), (second, after))
    )
    stayed = {node.name for node in before.left} & {node.name for node in after.left}
    rules = dict.fromkeys(rule for rule, _ in (*was, *now))
    for rule in rules:
        if any(was.get((rule, node)) != now.get((rule, node)) for node in stayed):
            yield rule
