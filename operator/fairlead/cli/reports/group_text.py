"""Text about the group of a pod, for commands that explain or compare. Pure."""

from collections.abc import Iterable, Iterator

from fairlead.cli.console.output import pluralize
from fairlead.cli.reports.rule_text import indent_rows, of_step, value_of
from fairlead.policy.explain.explanation import Step
from fairlead.policy.explain.group_explained import GroupExplained

_ROWS_MAX = 12


def group_phrase(group: GroupExplained) -> str:
    """Return a group in one line: its name, its known members, and what filter says to the pod."""
    named = f"the group {value_of(group.value)}" if group.value else "a group"
    if group.known is not None:
        named += f" ({group.known:,} of {group.size:,} known{', started' if group.started else ''})"
    if group.verdict == "NotKnown":
        return f"{named}: not known, because {group.why}"
    return f"{named}: {group.reason}" if group.reason else named


def group_section(group: GroupExplained, steps: Iterable[Step]) -> Iterator[str]:
    """Yield the lines about the group of an explained pod; `steps` are what its entry computed."""
    yield f"{group.policy}/{group.rule}: {_members(group)}"
    yield f"    {_verdict(group)}"
    yield from indent_rows([*map(of_step, steps)], "VALUE", _ROWS_MAX)


def _members(group: GroupExplained) -> str:
    if not group.value:
        return "the group is not known"
    said = value_of(group.value) + ("" if group.size is None else f", size {group.size:,}")
    if group.known is None:
        return said
    return f"{said}, {pluralize(group.known, 'member')} known, {_state(group)}"


def _state(group: GroupExplained) -> str:
    if group.state == "Started":
        return "started"
    if group.state == "Resting":
        return f"resting after attempt {group.attempt}"
    if group.state == "Turn":
        return f"{group.held_members:,} held in attempt {group.attempt}"
    return "not started"


def _verdict(group: GroupExplained) -> str:
    if group.verdict == "NotKnown":
        return f"what the filter says is not known: {group.why}"
    if group.verdict == "Undecided":
        return f"the filter rejects it on every node: {group.reason}: {group.why}"
    if group.reason:
        return f"the filter rejects it on every node: {group.reason}"
    if group.started:
        return "the filter lets it pass, and it is bound at once"
    return f"the filter lets it pass, and it is held until {pluralize(group.size or 0, 'member')} have a node"
