"""Output of `fairlead diff`: pods that lose their last node first, then all other changes. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from fairlead.cli.console.output import clean, paint, pluralize
from fairlead.cli.reports.group_text import group_phrase
from fairlead.cli.reports.rows import alike, some
from fairlead.policy.explain.group_explained import GroupExplained, GroupVerdict
from fairlead.simulation.placement_diff import LostOrGainedNode, PlacementChange
from fairlead.simulation.results import PublishedShown, published_for_programs
from fairlead.simulation.scheduler_filters import NOT_SIMULATED

__all__ = ["NOT_SIMULATED", "PodDiff", "diff_lines", "pod_diff"]

_RED: Final = "\x1b[1;31m"
_BOLD: Final = "\x1b[1m"


class _Moved(msgspec.Struct, rename="camel"):
    node: str
    rules: list[dict[str, str]]
    published_by: Sequence[str]


class _Sides(msgspec.Struct):
    before: Sequence[str] = msgspec.field(name="from")
    after: Sequence[str] = msgspec.field(name="to")


class _Group(msgspec.Struct):
    value: str
    size: int | None
    known: int | None
    verdict: GroupVerdict
    reason: str


class _Groups(msgspec.Struct):
    before: _Group | None = msgspec.field(name="from")
    after: _Group | None = msgspec.field(name="to")


class PodDiff(msgspec.Struct, rename="camel"):
    """A changed pod, for programs."""

    namespace: str
    name: str
    policies: _Sides
    lost: list[_Moved]
    gained: list[_Moved]
    preferred: _Sides
    group: _Groups
    rules: list[str]
    """Rules that cause the change, as policy/rule."""
    unknown: list[str]
    published_affinity: PublishedShown | None
    """That of the pod after the change."""


def pod_diff(change: PlacementChange) -> PodDiff:
    """Return a changed pod for programs."""
    pod = change.after.pod
    return PodDiff(
        pod.namespace,
        pod.name,
        _Sides(change.before.policies, change.after.policies),
        [_moved(each) for each in change.lost],
        [_moved(each) for each in change.gained],
        _Sides(change.before.preferred, change.after.preferred),
        _Groups(_side(change.before.group), _side(change.after.group)),
        change.rules,
        change.unknown,
        published_for_programs(change.after),
    )


def _side(group: GroupExplained | None) -> _Group | None:
    return None if group is None else _Group(group.value, group.size, group.known, group.verdict, group.reason)


def _moved(move: LostOrGainedNode) -> _Moved:
    rules = [{"policy": by.policy, "rule": by.rule, "reason": by.reason} for by in move.by]
    return _Moved(move.node, rules, move.published_by)


class DiffRow(NamedTuple):
    """Lines about one pod."""

    is_stranded: bool
    lines: tuple[str, ...]


def diff_lines(
    changes: Sequence[PlacementChange], pods: int, notes: Sequence[str], *, in_shadow: str = "", colour: bool
) -> Iterator[str]:
    """Yield the lines of the text; `in_shadow` is what rules in shadow would change after the change."""
    found = sorted(alike((one.after.pod, _row(one)) for one in changes), key=lambda one: not one[1].is_stranded)
    for name, row in found:
        yield paint(clean(name), _RED if row.is_stranded else _BOLD, colour)
        yield from (f"    {clean(line)}" for line in row.lines)
    if found:
        yield ""
    yield _summary(changes, pods)
    if in_shadow:
        yield clean(in_shadow)
    yield f"Not simulated: {', '.join(NOT_SIMULATED)}."
    for note in notes:
        yield f"Note: {clean(note)}."


def _row(change: PlacementChange) -> DiffRow:
    left, was = len(change.after.left), len(change.before.left)
    said = []
    if was and not left:
        said.append("has no node left")
    elif left and not was:
        said.append("had no node and now has one")
    said += [f"loses {some(nodes)}: {why}" for why, nodes in _by_reason(change.lost)]
    said += [f"gains {some(nodes)}: no longer {why}" for why, nodes in _by_reason(change.gained)]
    before, after = change.before.preferred, change.after.preferred
    if before and after and before != after and (change.by_scores or len(after) < left):
        by = f" by {', '.join(change.by_scores)}" if change.by_scores else ""
        said.append(f"prefers {some(after)} instead of {some(before)}{by}")
    said += _group(change)
    if change.unknown:
        what = "what else changes" if change.is_known else "what changes"
        said.append(f"it is not known {what}: not evaluated: {some(change.unknown)}")
    return DiffRow(bool(was and not left), tuple(said))


def _group(change: PlacementChange) -> Iterator[str]:
    """Yield how the group of a pod changes."""
    before, after = change.before.group, change.after.group
    if not change.groups:
        return
    if after is None:
        yield f"leaves {'' if before is None else group_phrase(before)}"
    else:
        yield f"{'joins' if before is None else 'is now in'} {group_phrase(after)}"


def _by_reason(moved: Sequence[LostOrGainedNode]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for one in moved:
        why = ", ".join(f"{by.reason} ({by.policy}/{by.rule})" for by in one.by)
        if not one.by and one.published_by:
            why = f"excluded by node affinity that is published by {' and '.join(one.published_by)}"
        found.setdefault(why, []).append(one.node)
    yield from found.items()


def _summary(changes: Sequence[PlacementChange], pods: int) -> str:
    if not pods:
        return "Nothing is compared: none of these pods has a scheduler that the policies name."
    if not changes:
        return f"Nothing changes for {'the pod' if pods == 1 else f'any of {pods:,} pods'}."
    known = sum(1 for one in changes if one.is_known)
    parts = []
    if known:
        stranded = sum(1 for one in changes if one.before.left and not one.after.left)
        last = f", {stranded:,} of them {'has' if stranded == 1 else 'have'} no node left" if stranded else ""
        parts.append(f"{known:,} of {pluralize(pods, 'pod')} {_change(known)}{last}")
    if unsure := len(changes) - known:
        parts.append(f"it is not known whether {unsure:,} of {pluralize(pods, 'pod')} {_change(unsure)}")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _change(count: int) -> str:
    return "changes" if count == 1 else "change"
