"""Order of groups: those that rest, those that wait for the turn, and which one is preferred while it is free."""

from collections.abc import Iterator
from typing import Final

from fairlead.groups.group import Group
from fairlead.groups.member_calls import WakeCause
from fairlead.groups.members import GroupIndex
from fairlead.groups.rests import Rests
from fairlead.time_units import SECOND_NS

PREFERRED_S: Final = 5
"""Time for which the first group passes filter alone."""


class TurnOrder:
    """Groups that were refused for the turn, or have rested, and the preferred one."""

    def __init__(self, index: GroupIndex) -> None:
        self._index = index
        self._waiting: set[Group] = set()
        self.rests = Rests(index)
        self.preferred: Group | None = None
        self.until = 0
        """Moment up to which a group is preferred."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, group: Group) -> None:
        """Let a group wait for the turn."""
        self._waiting.add(group)

    def take(self, group: Group) -> int:
        """Let a group take the turn, and return the number of its attempt."""
        self._waiting.discard(group)
        self._prefer(None)
        return self.rests.begin(group)

    def forget(self, group: Group) -> None:
        """Forget a group that has started."""
        self._waiting.discard(group)
        self.rests.forget(group)

    def forget_unknown(self, group: Group) -> None:
        """Forget a group without known members; its rest goes on."""
        if not self._index.known(group):
            self._waiting.discard(group)
            self.rests.forget_unknown(group)

    def choose(self, now: int) -> None:
        """Prefer the first that is complete, as the turn is free. Groups that rest do not wait."""
        index = self._index
        self._waiting = {one for one in self._waiting if index.known(one) and not index.is_placed(one)}
        able = [one for one in self._waiting if index.is_complete(one)]
        self._prefer(min(able, key=index.rank, default=None), now + PREFERRED_S * SECOND_NS)

    def advance(self, now: int, *, is_free: bool) -> Iterator[WakeCause]:
        """End what is over, and return why members should be tried again."""
        rested = self.rests.take_rested(now)
        self._waiting.update(rested)
        if self.preferred is not None and now >= self.until:
            # It has not come, and waits no more until it is refused again.
            self._waiting.discard(self.preferred)
            self._prefer(None)
            if self._waiting:
                yield WakeCause.TURN_FREE
        if rested:
            if is_free and self.preferred is None:
                self.choose(now)
            yield WakeCause.REST_OVER

    def next_at(self) -> Iterator[int]:
        """Return the moments at which something is over."""
        yield from (rest.until for rest in self.rests.current.values())
        if self.preferred is not None:
            yield self.until

    def _prefer(self, group: Group | None, until: int = 0) -> None:
        self.preferred = group
        self.until = 0 if group is None else until
