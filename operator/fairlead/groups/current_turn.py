"""Turn of a group, with the calls of its members: from the first call to the last answer."""

from enum import Enum
from typing import Final

from msgspec import Struct

from fairlead.groups.group import Group
from fairlead.groups.member_calls import MemberCall
from fairlead.groups.members import GroupIndex
from fairlead.resource_versions import is_newer
from fairlead.time_units import SECOND_NS

QUIET_S: Final = 10
"""Time without a further held member after which an attempt fails."""
POSTING_S: Final = 30
"""Time after which the turn ends although Bindings of its group are still being posted."""


class CallState(Enum):
    """State of a call that is not over."""

    ARRIVING = "its devices and domain are being committed"
    HELD = "it counts"
    RELEASED = "its Binding is being posted"


class HeldCall(Struct, eq=False):
    """Call of a member, in any state."""

    call: MemberCall
    turn: "Turn | None"
    """Turn that it is held in; None if it waits for no other call, because its group has started."""
    state: CallState = CallState.ARRIVING
    newest: str = ""
    """Newest version of the pod that was heard of, or committed."""
    was_held: bool = False

    @property
    def is_released(self) -> bool:
        """Return whether its Binding is being posted: that cannot be taken back."""
        return self.state is CallState.RELEASED

    def hear(self, rv: str) -> bool:
        """Hear of a version of the pod; return whether it is not known to be an old one."""
        if self.newest and is_newer(rv, self.newest) is False:
            return False
        self.newest = rv
        return True

    def is_committed_at(self, rv: str) -> bool:
        """Hear of the version that was committed; return whether it is the newest."""
        if self.newest and is_newer(self.newest, rv):
            return False
        self.newest = rv
        return True


class Turn(Struct, eq=False):
    """Turn of a group."""

    group: Group
    attempt: int
    began: int
    ends: int
    """Moment at which it ends at the latest."""
    further_at: int
    """Moment at which a further member was held, or at which it began."""
    address: str
    """Address that its calls come from."""
    calls: dict[int, HeldCall]
    released: int = 0
    """Number of calls that were released; 0 while the group is not complete."""
    posting: int = 0
    """Those of them that are not answered."""
    size_then: int = 0
    """Size of the group when it was released."""
    has_started: bool = False
    """Whether a Binding has landed, or a placed pod was read."""

    def held_calls(self) -> list[HeldCall]:
        """Return the calls that count."""
        return [one for one in self.calls.values() if one.state is CallState.HELD]

    def counted(self) -> list[HeldCall]:
        """Return the calls that are held or released."""
        return [one for one in self.calls.values() if one.state is not CallState.ARRIVING]

    def waiting(self) -> list[HeldCall]:
        """Return the calls that are arriving or held."""
        return [one for one in self.calls.values() if not one.is_released]

    def count(self) -> int:
        """Return how many members are held, or were when it was released."""
        return self.released or len(self.held_calls())

    def size(self, index: GroupIndex) -> int:
        """Return how many have to be held: as many as a known member or a caller says."""
        if self.released:
            return self.size_then
        return max([index.size(self.group), *(one.call.membership.size for one in self.calls.values())])

    def release(self, now: int, size: int, count: int) -> None:
        """Begin to post the Bindings of so many calls."""
        self.size_then, self.released, self.posting = size, count, count
        self.ends = now + POSTING_S * SECOND_NS

    def due_at(self) -> int:
        """Return the moment at which it ends if no further call is held, or answered."""
        return self.ends if self.released else min(self.ends, self.further_at + QUIET_S * SECOND_NS)
