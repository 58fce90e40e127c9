"""View of groups that filter and preempt need: what they say to members, from memory."""

from typing import Final

from fairlead.groups.group import Group, Membership


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


NO_GROUPS: Final = GroupView()
