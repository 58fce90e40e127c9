"""Groups that have waited for long, by the policies of their members."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from fairlead.groups.group import Group
from fairlead.groups.members import GroupIndex
from fairlead.replica_state import WaitingGroups

LONG_S: Final = 30
"""Time since the oldest of its members was created: most groups that fit have started by then."""


def waiting_groups(index: GroupIndex, now_s: float) -> Mapping[str, WaitingGroups]:
    """Return the groups that have waited for long at a unix time, by the name of the policy."""
    waiting: dict[str, list[Group]] = defaultdict(list)
    for group in index.groups():
        if not index.is_placed(group) and now_s - index.oldest(group) >= LONG_S:
            for policy in index.policies(group):
                waiting[policy].append(group)
    return {policy: _summary(index, groups) for policy, groups in waiting.items()}


def _summary(index: GroupIndex, groups: list[Group]) -> WaitingGroups:
    complete, longest = sum(map(index.is_complete, groups)), min(groups, key=index.oldest)
    return WaitingGroups(
        complete=complete,
        incomplete=len(groups) - complete,
        longest=f"{longest.namespace}/{longest.value}",
    )
