"""Report of `fairlead groups`: groups, and of one its members. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.inputs.snapshot_groups import PublishedTurns
from fairlead.policy.explain.group_overview import GroupMember, GroupOverview, GroupSummary, MemberState
from fairlead.time_units import SECOND_NS

GroupsReport: TypeAlias = dict[str, Any]


def groups_report(overview: GroupOverview, published: PublishedTurns, now: int, *, with_members: bool) -> GroupsReport:
    """Return what is known of groups at a time."""
    return {
        "time": _time(now),
        "groups": [_group(one, with_members=with_members) for one in overview.groups],
        "undecided": [one._asdict() for one in overview.undecided],
        "unreadable": published.faults,
    }


def _group(group: GroupSummary, *, with_members: bool) -> GroupsReport:
    return {
        "scheduler": group.group.scheduler,
        "namespace": group.group.namespace,
        "value": group.group.value,
        "state": group.state,
        "held": group.held_members,
        "size": group.size or None,
        **{state.value.lower(): group.count(state) for state in MemberState},
        "attempt": group.attempt or None,
        "since": _time(group.since),
        "until": _time(group.until),
        "waitsFor": group.waits_for,
        "domain": None if group.domain is None else dict(group.domain),
        **({"members": _members(group.members)} if with_members else {}),
    }


def _members(members: Iterable[GroupMember]) -> Sequence[GroupsReport]:
    return [
        {
            "name": one.name,
            "state": one.state.value,
            "node": one.node,
            "heldOn": one.held_on,
            "since": _time(one.since),
            "refusal": one.refusal,
            "gates": [*one.gates],
        }
        for one in members
    ]


def _time(moment: int | None) -> str | None:
    return None if moment is None else timestamp_to_string(moment // SECOND_NS * SECOND_NS)
