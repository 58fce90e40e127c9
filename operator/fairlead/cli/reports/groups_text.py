"""Text of `fairlead groups`. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from fairlead.cli.console.output import clean, columns
from fairlead.policy.explain.group_overview import GroupMember, GroupOverview, GroupSummary
from fairlead.time_units import age_text

_MEMBERS: Final = ("POD", "STATE", "NODE", "SINCE", "REFUSED WITH")
_Column: TypeAlias = tuple[str, Callable[[GroupSummary, int], str]]
_COLUMNS: Final[Sequence[_Column]] = (
    ("SCHEDULER", lambda group, _: group.group.scheduler),
    ("GROUP", lambda group, _: group.name),
    ("STATE", lambda group, _: group.state),
    ("HELD", lambda group, _: str(group.held_members)),
    ("SIZE", lambda group, _: str(group.size or "")),
    ("KNOWN", lambda group, _: str(group.known)),
    ("SINCE", lambda group, now: _age(group.since, now)),
    ("WAITS FOR", lambda group, _: group.waits_for),
)
_BEFORE_DOMAIN: Final = 6
_DOMAIN: Final[_Column] = "DOMAIN", lambda group, _: "/".join((group.domain or {}).values())


def groups_text(overview: GroupOverview, now: int, *, has_groups: bool, with_members: bool) -> Iterator[str]:
    """Yield tables of groups and, if wanted, of the members of each, and the pods of which no group can be told."""
    groups = overview.groups
    if not groups:
        yield "no pod is in a group" if has_groups else "no policy has groups"
    else:
        shown = [*_COLUMNS[:_BEFORE_DOMAIN], _DOMAIN, *_COLUMNS[_BEFORE_DOMAIN:]]
        if all(one.domain is None for one in groups):
            shown.remove(_DOMAIN)
        rows = [[text(one, now) for _, text in shown] for one in groups]
        yield from columns([[head for head, _ in shown], *rows])
    for one in groups if with_members else ():
        yield ""
        yield from columns([_MEMBERS, *(_member(member, now) for member in one.members)])
    if overview.undecided:
        yield ""
    for pod in overview.undecided:
        yield clean(f"{pod.namespace}/{pod.name} is refused on every node, as its group cannot be decided: {pod.why}")


def _member(member: GroupMember, now: int) -> Sequence[str]:
    why = member.refusal
    if member.gates:
        why = f"not known to the scheduler, because of its scheduling gates: {', '.join(member.gates)}"
    node = f"{member.held_on} (held)" if member.held_on else member.node
    return member.name, member.state.value, node, _age(member.since, now), why


def _age(moment: int | None, now: int) -> str:
    return "" if moment is None else f"{age_text(now - moment)} ago"
