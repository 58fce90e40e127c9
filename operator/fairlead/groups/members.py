"""Index of groups: their known members and their placed pods, as the mirror hears of them.

A known member is an unplaced pod without deletionTimestamp and without schedulingGates. A placed pod counts while it
lives: while it has not ended and has no deletionTimestamp. Of placed pods nothing is kept but which group they are in,
and nothing at all of those that are in none.
"""

from collections.abc import Collection, Iterable
from typing import TypeAlias

from msgspec import Struct

from fairlead.groups.group import Group, Membership

Rank: TypeAlias = tuple[int, int, str, str]
"""Key by which groups are sorted: the highest priority of its members first, then the oldest of them, then its name."""


PlacedKey: TypeAlias = tuple[str, str]
"""Namespace and name of a placed pod."""


class GroupChange(Struct, frozen=True, gc=False):
    """Change of what is known of a group."""

    group: Group
    completed: bool = False
    """Whether as many members are known as its size says, which was not so before."""
    placed: bool = False
    """Whether a placed pod of it was heard of: a read of one that lives tells whether it has started."""


class _KnownMember(Struct, frozen=True, gc=False):
    size: int
    priority: int
    created: int
    policy: str


class _KnownMembers:
    """Known members of one group."""

    __slots__ = ("_by_uid", "_rank", "_sizes", "size")

    def __init__(self) -> None:
        self.size = 0
        self._by_uid: dict[str, _KnownMember] = {}
        self._sizes: dict[int, int] = {}
        self._rank: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._by_uid)

    @property
    def are_complete(self) -> bool:
        """Return whether they are as many as the largest size that one of them says."""
        return len(self) >= self.size > 0

    def get(self, uid: str) -> _KnownMember | None:
        """Return a member."""
        return self._by_uid.get(uid)

    def put(self, uid: str, member: _KnownMember) -> None:
        """Add a member."""
        self._by_uid[uid] = member
        self._sizes[member.size] = self._sizes.get(member.size, 0) + 1
        self.size = max(self.size, member.size)
        self._rank = None

    def remove(self, uid: str) -> None:
        """Remove a member. Sizes are few, so that the largest is soon found."""
        size = self._by_uid.pop(uid).size
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
            self.size = max(self._sizes, default=0)
        self._rank = None

    def rank(self) -> tuple[int, int]:
        """Return the highest priority and the oldest creation, kept until a member comes or goes."""
        if self._rank is None:
            members = self._by_uid.values()
            self._rank = max(one.priority for one in members), min(one.created for one in members)
        return self._rank

    def policies(self) -> set[str]:
        """Return the policies that decide the membership of each."""
        return {one.policy for one in self._by_uid.values()}


class GroupIndex:
    """Groups of any schedulers by their known members and placed pods."""

    def __init__(self) -> None:
        self._known: dict[Group, _KnownMembers] = {}
        self._known_uids: dict[str, Group] = {}
        self._placed: dict[Group, PlacedKey | list[PlacedKey]] = {}
        """Placed pods that live; the only one is in no list, which would be larger than all else."""
        self._of_placed: dict[PlacedKey, tuple[Group, ...]] = {}

    def put_known(
        self, uid: str, membership: Membership | None, priority: int = 0, created: int = 0
    ) -> tuple[GroupChange, ...]:
        """Hear of an unplaced pod that may be placed, created at this unix time; None is in no group."""
        if membership is None:
            return self.remove(uid)
        group = membership.group
        members = self._known.get(group)
        member = _KnownMember(membership.size, priority, created, membership.policy)
        if members is not None and members.get(uid) == member:
            return ()
        was_complete = members is not None and members.are_complete
        left = self.remove(uid)
        # To leave may have emptied the group that it comes back to.
        members = self._known.setdefault(group, _KnownMembers())
        members.put(uid, member)
        self._known_uids[uid] = group
        change = GroupChange(group, completed=members.are_complete and not was_complete)
        return (*(one for one in left if one.group != group), change)

    def put_placed(self, key: PlacedKey, groups: tuple[Group, ...]) -> tuple[GroupChange, ...]:
        """Hear of a placed pod that lives, and of its groups: it may be in one of each scheduler."""
        before = self._of_placed.get(key, ())
        if before == groups:
            return ()
        left = self.remove_placed(key) if before else ()
        if groups:
            self._of_placed[key] = shared = self._shared(groups)
            for group in shared:
                others = self._placed.get(group)
                if others is None:
                    self._placed[group] = key
                elif isinstance(others, list):
                    others.append(key)
                else:
                    self._placed[group] = [others, key]
        return (*left, *[GroupChange(one, placed=True) for one in groups])

    def remove_placed(self, key: PlacedKey) -> tuple[GroupChange, ...]:
        """Hear that a placed pod is gone, has ended, or is being deleted."""
        left = self._of_placed.pop(key, ())
        for group in left:
            placed = self._placed[group]
            if isinstance(placed, list) and len(placed) > 1:
                placed.remove(key)
            else:
                del self._placed[group]
        return tuple(GroupChange(one) for one in left)

    def remove(self, uid: str) -> tuple[GroupChange, ...]:
        """Hear that an unplaced pod is gone, is being deleted, or may not be placed because of a gate."""
        group = self._known_uids.pop(uid, None)
        return () if group is None else (self._remove_known(uid, group),)

    def size(self, group: Group) -> int:
        """Return the largest size that a known member says; 0 if none is known."""
        members = self._known.get(group)
        return 0 if members is None else members.size

    def known(self, group: Group) -> int:
        """Return the number of known members."""
        return len(self._known.get(group, ()))

    def is_complete(self, group: Group) -> bool:
        """Return whether as many members are known as its size says."""
        members = self._known.get(group)
        return members is not None and members.are_complete

    def is_placed(self, group: Group) -> bool:
        """Return whether by this view a placed pod of it lives, so that it has started."""
        return group in self._placed

    def placed_pod(self, group: Group) -> PlacedKey | None:
        """Return a placed pod that lives by this view, which a read may confirm."""
        placed = self._placed.get(group)
        return placed[-1] if isinstance(placed, list) else placed

    def group_of(self, uid: str) -> Group | None:
        """Return the group of a known member; None if no known member has this UID."""
        return self._known_uids.get(uid)

    def rank(self, group: Group) -> Rank:
        """Return the rank among groups of which a member is known: the least comes first."""
        priority, created = self._known[group].rank()
        return -priority, created, group.namespace, group.value

    def oldest(self, group: Group) -> int:
        """Return when the oldest known member of a group was created."""
        return self._known[group].rank()[1]

    def policies(self, group: Group) -> Collection[str]:
        """Return the names of the policies that decide the membership of a known member."""
        return self._known[group].policies()

    def groups(self) -> Iterable[Group]:
        """Return the groups of which a member is known."""
        return self._known.keys()

    def placed_groups(self) -> Iterable[Group]:
        """Return the groups of which by this view a placed pod lives."""
        return self._placed.keys()

    def _remove_known(self, uid: str, group: Group) -> GroupChange:
        members = self._known[group]
        was_complete = members.are_complete
        members.remove(uid)
        if not len(members):
            del self._known[group]
        # Without the member that says the largest size, the others may be enough.
        return GroupChange(group, completed=members.are_complete and not was_complete)

    def _shared(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Return these groups as another pod of them has them: all pods of a group share the tuple."""
        placed = self._placed.get(groups[0])
        if placed is None:
            return groups
        kept = self._of_placed[placed[0] if isinstance(placed, list) else placed]
        return kept if kept == groups else groups
