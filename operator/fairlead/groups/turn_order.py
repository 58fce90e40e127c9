"""Order of groups that wait for the turn: when it is free, the first of them passes filter alone for a while."""

from collections.abc import Callable
from typing import Final

from fairlead.groups.group import Group
from fairlead.groups.members import GroupIndex
from fairlead.time_units import SECOND_NS

PREFERRED_S: Final = 5
"""Time for which the first group passes alone."""


class TurnOrder:
    """Groups that were refused for the turn, and the one that is preferred while the turn is free."""

    def __init__(self, index: GroupIndex) -> None:
        self._index = index
        self._waiting: set[Group] = set()
        self.preferred: Group | None = None
        self.until = 0
        """Moment up to which a group is preferred."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, group: Group) -> None:
        """Let a group wait for the turn."""
        self._waiting.add(group)

    def remove(self, group: Group) -> None:
        """Let a group wait no more: it takes the turn, has started, or is gone."""
        self._waiting.discard(group)

    def choose(self, now: int, is_resting: Callable[[Group], bool]) -> None:
        """Prefer the first of those that are complete, have not started and do not rest."""
        index = self._index
        self._waiting = {one for one in self._waiting if index.known(one)}
        able = [one for one in self._waiting if index.is_complete(one) and not index.is_placed(one)]
        self.preferred = min((one for one in able if not is_resting(one)), key=index.rank, default=None)
        self.until = now + PREFERRED_S * SECOND_NS if self.preferred is not None else 0

    def end_preference(self) -> Group | None:
        """Prefer no group; return the one that was preferred."""
        group, self.preferred, self.until = self.preferred, None, 0
        return group
