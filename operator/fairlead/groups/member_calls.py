"""Bind calls of members, and what their holder wants done: commands for one call, and news of a whole group.

A call is *arriving* while its devices and domain are committed, then *held*: only that counts. It is over when it was
refused, or released and its Binding was posted. Each call that the holder was told of gets exactly one `RefuseCall` or
`ReleaseCall`, unless it hung up or its commit failed before.
"""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from fairlead.groups.group import Group, Membership


class MemberCall(Struct, frozen=True):
    """Bind call of a member of a group that has not started."""

    id: int
    """Number that no other call of this holder has."""
    uid: str
    """UID of the pod."""
    address: str
    """Address of the scheduler's process that calls, also where the call was passed on."""
    membership: Membership
    node: str = ""
    """Node that the scheduler keeps for the pod while the call is not answered."""


class CommitCall(Struct, frozen=True):
    """Command to commit the call's devices and domain at the newest version of its pod.

    It is followed by `Holder.committed`, or by `Holder.commit_failed`. It comes again if the pod has changed, but never
    while the commit before it is still under way.
    """

    id: int


class ReleaseCall(Struct, frozen=True):
    """Command to post the call's Binding, with the UID and the version that were committed, and to answer it.

    It is followed by `Holder.done`.
    """

    id: int


class RefuseCall(Struct, frozen=True):
    """Command to answer the call with an error."""

    id: int
    why: str


class WakeCause(Enum):
    """Cause for which pods that filter rejected should be tried again."""

    MEMBER_KNOWN = "the last member of a group is known"
    REST_OVER = "a group has rested"
    TURN_FREE = "the turn is free"


class WakePods(Struct, frozen=True):
    """Command to wake pods that filter rejected, once what the holder publishes was written."""

    cause: WakeCause


class AttemptResult(Enum):
    """Result of an attempt to place a group."""

    STARTED = "started"
    """All were released, and a Binding was posted."""
    STARTED_OTHERWISE = "started otherwise"
    """A placed pod of the group was heard of, so that its members were released singly."""
    ABANDONED = "abandoned"
    """No member was left: each has hung up, was deleted, or was not granted what it asked for."""
    OUT_OF_TIME = "out of time"
    """`holdFor` has passed."""
    NONE_FURTHER = "none further"
    """For 10 s no further member was held."""
    UNSCHEDULABLE = "unschedulable"
    """A member that was not held found no node."""
    REGROUPED = "regrouped"
    """A member is in another group now, or says something else of it."""
    NOT_BOUND = "not bound"
    """All were released, and no Binding has landed."""
    STOPPED = "stopped"
    """The holder drains, or does not lead any more."""

    @property
    def is_failure(self) -> bool:
        """Return whether the group rests."""
        return self not in (AttemptResult.STARTED, AttemptResult.STARTED_OTHERWISE, AttemptResult.ABANDONED)


class AttemptEnded(Struct, frozen=True):
    """News that an attempt to place a group is over, for metrics and logs."""

    group: Group
    attempt: int
    result: AttemptResult
    held_members: int
    """Members that were held at last; of a group that was released, as many as were released."""
    size: int
    began: int
    """Moment, as all of the holder's."""


Action: TypeAlias = CommitCall | ReleaseCall | RefuseCall | WakePods | AttemptEnded
