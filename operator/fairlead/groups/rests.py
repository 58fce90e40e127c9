"""Attempts to place groups: their numbers, and the rests after those that failed.

A number is kept while its group has known members, so that the text of each refusal differs from the one before.
"""

from typing import Final

from msgspec import Struct

from fairlead.groups.group import Group
from fairlead.groups.members import GroupIndex
from fairlead.time_units import SECOND_NS

RESTS_S: Final = (5, 10, 20, 40, 60)
"""Rests after the first failure, the second and so on; the last stays."""
SHORTENED_S: Final = 10
"""Rest after which a group is tried again if room may have come meanwhile."""
FORGIVEN_S: Final = 600
"""Time after a rest in which a failure is a further one; later, rests begin with the shortest."""


class Rest(Struct):
    """Rest of a group."""

    began: int
    until: int
    attempt: int
    """Number of the attempt that failed."""


class _Attempts(Struct):
    number: int = 0
    failures: int = 0
    rested_until: int = 0


class Rests:
    """Attempts by group, and the groups that rest."""

    def __init__(self, index: GroupIndex) -> None:
        self._index = index
        self._of: dict[Group, _Attempts] = {}
        self.current: dict[Group, Rest] = {}
        self.revision = 0
        """Number that grows when a rest begins, is shortened or is over."""

    def __len__(self) -> int:
        return len(self._of)

    def begin(self, group: Group) -> int:
        """Begin an attempt, and return its number, which the group has not had."""
        made = self._of.setdefault(group, _Attempts())
        made.number += 1
        return made.number

    def fail(self, group: Group, now: int) -> None:
        """Let a group rest."""
        made = self._of.setdefault(group, _Attempts())
        if now > made.rested_until + FORGIVEN_S * SECOND_NS:
            made.failures = 0
        length_s = RESTS_S[min(made.failures, len(RESTS_S) - 1)]
        made.failures += 1
        made.rested_until = now + length_s * SECOND_NS
        self.current[group] = Rest(now, made.rested_until, made.number)
        self.revision += 1

    def is_resting(self, group: Group, now: int) -> bool:
        """Return whether a group rests."""
        rest = self.current.get(group)
        return rest is not None and now < rest.until

    def shorten(self, now: int) -> None:
        """End rests early, because room may have come."""
        for group, rest in self.current.items():
            until = max(now, rest.began + SHORTENED_S * SECOND_NS)
            if until < rest.until:
                rest.until = self._of[group].rested_until = until
                self.revision += 1

    def take_rested(self, now: int) -> list[Group]:
        """Return the groups with known members whose rest is over, once."""
        rested = [group for group, rest in self.current.items() if rest.until <= now]
        for group in rested:
            del self.current[group]
            self.revision += 1
        return [group for group in rested if not self.forget_unknown(group)]

    def forget(self, group: Group) -> None:
        """Forget a group that has started."""
        self._of.pop(group, None)
        if self.current.pop(group, None) is not None:
            self.revision += 1

    def forget_unknown(self, group: Group) -> bool:
        """Forget a group without known members, unless it rests; return whether nothing is kept of it."""
        if self._index.known(group) or group in self.current:
            return False
        self._of.pop(group, None)
        return True
