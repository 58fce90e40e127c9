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
from fairlead.strategies.domains import Values
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

    def shared_domain(self, _group: str, _at: int, /) -> SharedDomain:
        """Return the domain of a group, which is given as its namespace and value with a slash between them.

        `at` is a moment of the clock of calls, as in the following.
        """
        return NO_DOMAIN

    def holds_lately(self, _group: str, _domains: Values, _at: int, /) -> None:
        """Hear which domains hold a group that has none yet, or in which of them a member is to be bound."""


NO_GROUPS: Final = GroupView()


def left_by_domains(
    filtered: Filtered,
    pod: PodView,
    matched: Sequence[Matched],
    evaluator: Evaluator,
    groups: GroupView,
    when: CallClock,
    *,
    sees_all: bool,
    is_call: bool = False,
) -> Filtered:
    """Return the result of a call without the nodes outside the domains that a pod's groups share. Raises TooSlowError.

    `sees_all`: the call has all nodes that other filters leave. `is_call`: it is one, and not a look at a pod again.
    """
    if not filtered.passed or not any(each.policy.domain_rules for each in matched):
        return filtered
    required = required_groups(pod, matched)
    began = when.clock()
    for one in required:
        if one.error is not None and is_call:
            evaluator.tally.count_error(one.policy, one.rule.name, one.error)

    def took() -> None:
        if (at := when.clock()) > when.deadline_ns:
            raise TooSlowError({required[0].policy: at - began})

    def hear(group: str, domains: Values) -> None:
        if is_call:
            groups.holds_lately(group, domains, began)

    def domain_of(group: str) -> SharedDomain:
        return groups.shared_domain(group, began)

    view_of = evaluator.nodes.view_of
    return within_domains(filtered, required, pod, view_of, domain_of, sees_all=sees_all, took=took, on_holding=hear)
