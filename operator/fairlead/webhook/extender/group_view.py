"""View of groups that filter and preempt need: what they say to members, from memory, and the domains of groups."""

from collections.abc import Sequence
from typing import Final

from fairlead.groups.group import Group, Membership
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.filter_result import NO_DOMAIN, Filtered, SharedDomain, within_domains
from fairlead.policy.evaluate.group_membership import required_groups
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender.call import CallClock


class GroupView:
    """View of groups. This one knows none."""

    def rejection(self, _uid: str, _membership: Membership, _now: int, /) -> str | None:
        """Return why a member is rejected on every node at this time of day; None if it is not."""
        return None

    def is_placed(self, _group: Group, /) -> bool:
        """Return whether a placed pod of a group lives, by this view."""
        return False

    def is_member(self, _uid: str, /) -> bool:
        """Return whether an unplaced pod is a member of a group, so that its bind call may be held."""
        return False

    def shared_domain(self, _group: str, /) -> SharedDomain:
        """Return the domain of a group, which is given as its namespace and value with a slash between them."""
        return NO_DOMAIN


NO_GROUPS: Final = GroupView()


def left_by_domains(
    found: Filtered,
    pod: PodView,
    matched: Sequence[Matched],
    evaluator: Evaluator,
    groups: GroupView,
    when: CallClock,
    *,
    sees_all: bool,
    counts_errors: bool = False,
) -> Filtered:
    """Return the result of a call without the nodes outside the domains that a pod's groups share. Raises TooSlowError.

    `sees_all`: the call has all nodes that other filters leave.
    """
    if not found.passed or not any(each.policy.domain_rules for each in matched):
        return found
    required = required_groups(pod, matched)
    began = when.clock()
    for one in required:
        if one.error is not None and counts_errors:
            evaluator.tally.count_error(one.policy, one.rule.name, one.error)

    def took() -> None:
        if (at := when.clock()) > when.deadline_ns:
            raise TooSlowError({required[0].policy: at - began})

    return within_domains(
        found, required, pod, evaluator.nodes.view_of, groups.shared_domain, sees_all=sees_all, took=took
    )
