"""What the holder of a scheduler publishes, and what filter says by it: advice, which is never read back by a holder.

It stands in one ConfigMap for each scheduler. Groups are in it by a hash of namespace and value.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.documents import Document
from fairlead.groups.group import Group, Membership
from fairlead.groups.members import GroupIndex

PREFIX: Final = "fairlead-turns-"
LABEL: Final = "fairlead.dev/turns"
SCHEDULER: Final = "fairlead.dev/scheduler"
"""Annotation with the scheduler's name, which the name of the ConfigMap may have cut."""
WAITING: Final = "waiting for members of its group"
RESTING: Final = "its group does not fit"
PLACING: Final = "another group is being placed"


class PublishedTurn(Struct, frozen=True):
    """Turn of a group. Moments are unix seconds, as in the following."""

    group: str
    """Hash of the group."""
    since: float
    until: float
    """Moment at which the turn ends at the latest; after it, the advice is out of date."""
    held: int
    size: int
    attempt: int


class PublishedRest(Struct, frozen=True):
    """Rest of a group after an attempt that failed."""

    until: float
    attempt: int
    """Number of the attempt that failed."""


class PreferredGroup(Struct, frozen=True):
    """Group that passes filter before all others while the turn is free."""

    group: str
    until: float


class Turns(Struct, frozen=True):
    """Turn, rests by hash of their group, and the preferred group of one scheduler."""

    turn: PublishedTurn | None = None
    rests: Mapping[str, PublishedRest] = {}
    preferred: PreferredGroup | None = None


NO_TURNS: Final = Turns()


def turns_name(scheduler: str) -> str:
    """Return the name of the ConfigMap of a scheduler's turns; a long one is cut, and ends with a hash."""
    raise NotImplementedError


def turns_body(scheduler: str, turns: Turns) -> dict[str, Any]:
    """Return the ConfigMap, to create or to apply."""
    raise NotImplementedError


def read_turns(config_map: Mapping[str, Any]) -> Document[Turns]:
    """Read a ConfigMap of turns; if it cannot be read or is newer, its fault says so, and `NO_TURNS` is to be taken."""
    raise NotImplementedError


def rejection(uid: str, membership: Membership, index: GroupIndex, turns: Turns, now_s: float) -> str | None:
    """Return why filter refuses a member on every node at a unix time; None if it passes."""
    raise NotImplementedError
