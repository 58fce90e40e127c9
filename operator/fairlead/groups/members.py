"""Index of groups: their known members and their placed pods, as the mirror hears of them.

A known member is an unplaced pod without deletionTimestamp and without schedulingGates. A placed pod counts while it lives:
while it has not ended and has no deletionTimestamp. Of placed pods nothing is kept but which group they are in, and
nothing at all of those that are in none.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from fairlead.groups.group import Group, Membership

Rank: TypeAlias = tuple[int, int, str, str]
"""Key by which groups are sorted: the highest priority of its members first, then the oldest of them, then its name."""


class GroupChange(Struct, frozen=True, gc=False):
    """Change of what is known of a group."""

    group: Group
    completed: bool = False
    """Whether as many members are known as its size says, which was not so before."""
    placed: bool = False
    """Whether a placed pod of it was heard of: a read of one that lives tells whether it has started."""


class _KnownMember(Struct, frozen=True, gc=False):
    group: Group
    size: int
    priority: int
    created: int


class _KnownMembers:
    """Known members of one group."""

    __slots__ = ("_by_uid", "_rank", "_sizes", "size")

    def __init__(self) -> None:
        self._by_uid: dict[str, _KnownMember] = {}
        self._sizes: dict[int, int] = {}
        self._rank: tuple[int, int] | None = None
        self.size = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_uid)

    @property
    def are_complete(self) -> bool:
        """Return whether as many are known as the largest size that one of them says."""
        return len(self) >= self.size > 0

    def put(self, uid: str, member: _KnownMember) -> None:
        self._by_uid[uid] = member
        self._sizes[member.size] = self._sizes.get(member.size, 0) + 1
        self.size = max(self.size, member.size)
        if self._rank is not None:
            self._rank = min(self._rank, (-member.priority, member.created)) if len(self) == 1 else None

    def remove(self, uid: str) -> None:
        size = self._by_uid.pop(uid).size
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
            if size == self.size:
                self.size = max(self._sizes, default=0)
        self._rank = None

    def rank(self) -> tuple[int, int]:
        """Return the highest priority, negated, and the oldest creation: kept until a member comes or goes."""
        if self._rank is None:
            members = self._by_uid.values()
            self._rank = (-max(one.priority for one in members), min(one.created for one in members))
        return self._rank


class GroupIndex:
    """Groups of any schedulers by their known members and placed pods."""

    def __init__(self) -> None:
        self._known: dict[Group, _KnownMembers] = {}
        self._known_uids: dict[str, Group] = {}
        self._placed: dict[Group, str | list[str]] = {}
        """UIDs of the placed pods that live; the only one is in no list, which would be larger than all else."""
        self._placed_uids: dict[str, Group] = {}

    def put_known(
        self, uid: str, membership: Membership | None, priority: int = 0, created: int = 0
    ) -> tuple[GroupChange, ...]:
        """Hear of an unplaced pod that may be placed, created at this unix time; None is in no group."""
        raise NotImplementedError

    def put_placed(self, uid: str, group: Group | None) -> tuple[GroupChange, ...]:
        """Hear of a placed pod that lives; None is in no group."""
        raise NotImplementedError

    def remove(self, uid: str) -> tuple[GroupChange, ...]:
        """Hear that a pod is gone, ends, is deleted, or may not be placed because of a gate."""
        raise NotImplementedError

    def size(self, group: Group) -> int:
        """Return the largest size that a known member says; 0 if none is known."""
        raise NotImplementedError

    def known(self, group: Group) -> int:
        """Return the number of known members."""
        raise NotImplementedError

    def is_complete(self, group: Group) -> bool:
        """Return whether as many members are known as its size says."""
        raise NotImplementedError

    def is_placed(self, group: Group) -> bool:
        """Return whether by this view a placed pod of it lives, so that it has started."""
        raise NotImplementedError

    def placed_pod(self, group: Group) -> str | None:
        """Return the UID of a placed pod that lives by this view, which a read may confirm."""
        raise NotImplementedError

    def group_of(self, uid: str) -> Group | None:
        """Return the group of a known member; None if the UID is none's."""
        raise NotImplementedError

    def rank(self, group: Group) -> Rank:
        """Return the rank among groups of which a member is known: the least comes first."""
        raise NotImplementedError

    def groups(self) -> Iterable[Group]:
        """Return the groups of which a member is known."""
        raise NotImplementedError
