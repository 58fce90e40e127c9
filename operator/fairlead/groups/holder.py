"""Holder of the bind calls of groups, for one scheduler: calls and news in, commands out, and the time as a parameter.

One group has the turn, from its first call to the last answer. Its calls are held until as many as its size are, all from
one address and with everything committed; then they are released. An attempt that fails answers them all, and its group rests.
"""

from typing import Final

from msgspec import Struct

from fairlead.groups.attempts import Attempts
from fairlead.groups.group import Group, Membership
from fairlead.groups.member_calls import (
    Action,
    AttemptEnded,
    AttemptResult,
    CommitCall,
    MemberCall,
    RefuseCall,
    ReleaseCall,
    WakeCause,
    WakePods,
)
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.groups.turn_order import TurnOrder
from fairlead.groups.turns import PLACING, RESTING, Turns

QUIET_S: Final = 10
"""Time without a further held member after which an attempt fails."""
POSTING_S: Final = 30
"""Time after which the turn ends although Bindings of its group are still being posted."""
SUPERSEDED: Final = "the scheduler has called for this pod again"
POSTING: Final = "an earlier call for this pod is being answered"
STOPPED: Final = "this replica holds no groups any more"
DELETED: Final = "the pod is deleted"


class Holder:
    """Holder of the calls of one scheduler's groups.

    Each method that takes `now` is an event: it returns what is to be done, in order. Moments are nanoseconds of a
    monotonic clock. Events of calls that are over are no errors, and have no effect.
    """

    def __init__(self, index: GroupIndex) -> None:
        """The index must have heard of a change before the holder does."""
        self.revision = 0
        """Number that grows when `turns` would return something else."""

    def call(self, now: int, call: MemberCall) -> list[Action]:
        """Hear of a call of a member whose group has not started."""
        raise NotImplementedError

    def committed(self, now: int, call: int, rv: str) -> list[Action]:
        """Hear that a call's devices and domain are committed at this version of its pod."""
        raise NotImplementedError

    def commit_failed(self, now: int, call: int) -> list[Action]:
        """Hear that a call was not granted what it asks for: whoever says so answers it, and no other call."""
        raise NotImplementedError

    def hung_up(self, now: int, call: int) -> list[Action]:
        """Hear that a caller has hung up; a call that was released goes on."""
        raise NotImplementedError

    def done(self, now: int, call: int, *, bound: bool) -> list[Action]:
        """Hear that a released call was answered, and whether its Binding has landed for sure."""
        raise NotImplementedError

    def pod_changed(self, now: int, uid: str, rv: str) -> list[Action]:
        """Hear of a version of an unplaced pod, of any pod: a held call is committed at the newest one."""
        raise NotImplementedError

    def pod_deleted(self, now: int, uid: str) -> list[Action]:
        """Hear that a pod has a deletionTimestamp or is gone."""
        raise NotImplementedError

    def regrouped(self, now: int, uid: str, membership: Membership | None) -> list[Action]:
        """Hear the membership of a pod by its newest version and the newest policies: another one ends the attempt."""
        raise NotImplementedError

    def unschedulable(self, now: int, uid: str, group: Group, message: str) -> list[Action]:
        """Hear that a known member got, just now, PodScheduled=False with reason Unschedulable and this message."""
        raise NotImplementedError

    def started(self, now: int, group: Group) -> list[Action]:
        """Hear that a group has started: a read has shown a placed pod of it that lives."""
        raise NotImplementedError

    def members_changed(self, now: int, change: GroupChange) -> list[Action]:
        """Hear what the index returned."""
        raise NotImplementedError

    def room_came(self, now: int) -> list[Action]:
        """Hear that a node joined or a placed pod went."""
        raise NotImplementedError

    def tick(self, now: int) -> list[Action]:
        """Do what is due. Each other event does it as well."""
        raise NotImplementedError

    def stop(self, now: int) -> list[Action]:
        """Answer all calls but those that were released, and refuse each further one."""
        raise NotImplementedError

    def next_at(self) -> int | None:
        """Return the moment of the next tick; None if nothing is due without an event."""
        raise NotImplementedError

    def turns(self, now: int, now_s: float) -> Turns:
        """Return what is to be published; the second time is the same moment in unix seconds."""
        raise NotImplementedError

    def uids(self) -> list[str]:
        """Return the UIDs of the pods whose calls are arriving or held."""
        raise NotImplementedError

    def has_calls_of(self, group: Group) -> bool:
        """Return whether calls of a group are arriving or held: only then a read for `started` is worth its cost."""
        raise NotImplementedError

    @property
    def held(self) -> int:
        """Return the number of calls that are held."""
        raise NotImplementedError
