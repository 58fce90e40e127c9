"""Publication of a scheduler's holder, and what filter says by it: advice, which no holder ever reads back.

It stands in one ConfigMap for each scheduler. Groups are in it by a hash of namespace and value. Without it, or if it
cannot be read, no group is rejected by it: bind decides.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from fairlead.documents import Document, Format, document_name
from fairlead.groups.group import Membership, group_hash
from fairlead.groups.members import GroupIndex

PREFIX: Final = "fairlead-turns-"
LABEL: Final = "fairlead.dev/turns"
SCHEDULER: Final = "fairlead.dev/scheduler"
"""Annotation with the name of the scheduler, which the name of the ConfigMap may have in part."""
WAITING: Final = "waiting for members of its group"
RESTING: Final = "its group does not fit"
PLACING: Final = "another group is being placed"
TEXTS: Final = (WAITING, RESTING, PLACING)
"""Reasons for which filter rejects a member. They never vary: each new text would wake the pod by its own patch."""
RESTS_MAX: Final = 4000
"""Most rests that are published: with more, those that end first are left out."""
_DATA: Final = "turns"
UnixS = Annotated[float, Meta(ge=0, le=1e11)]
Count = Annotated[int, Meta(ge=0)]


class PublishedTurn(Struct, frozen=True):
    """Turn of a group. Its moments are unix seconds, as those of the following."""

    group: str
    """Hash of the group."""
    since: UnixS
    until: UnixS
    """Moment at which the turn ends at the latest; after it, the advice is out of date."""
    held_members: Count
    size: Count
    attempt: Count
    nodes: Mapping[str, str] = {}
    """Nodes at which members are held, by the UID of the pod."""


class PublishedRest(Struct, frozen=True):
    """Rest of a group after an attempt that failed."""

    until: UnixS
    attempt: Count
    """Number of the attempt that failed."""


class PreferredGroup(Struct, frozen=True):
    """Group that passes filter before all others while the turn is free."""

    group: str
    until: UnixS


class Turns(Struct, frozen=True):
    """Turn, rests by hash of their group, and the preferred group of one scheduler."""

    turn: PublishedTurn | None = None
    rests: Mapping[str, PublishedRest] = {}
    preferred: PreferredGroup | None = None
    avoided: Mapping[str, Mapping[str, str]] = {}
    """Domains, as values by label, in which the last attempt to place a group failed, by the hash of the group."""


NO_TURNS: Final = Turns()
_decoder: Final = msgspec.json.Decoder(Turns)


def turns_name(scheduler: str) -> str:
    """Return the name of the ConfigMap of a scheduler's turns; a long one is cut, and ends with a hash."""
    return document_name(PREFIX, scheduler)


def scheduler_of(config_map: Mapping[str, Any]) -> str:
    """Return the name of the scheduler that a ConfigMap of turns belongs to."""
    metadata = config_map["metadata"]
    told = (metadata.get("annotations") or {}).get(SCHEDULER)
    return str(told or str(metadata["name"]).removeprefix(PREFIX))


def turns_body(scheduler: str, turns: Turns) -> dict[str, Any]:
    """Return the whole ConfigMap. It has one writer, which replaces any version with it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": turns_name(scheduler),
            "labels": {LABEL: ""},
            "annotations": {**TURNS.annotations(), SCHEDULER: scheduler},
        },
        "data": {_DATA: msgspec.json.encode(turns).decode()},
    }


def read_turns(config_map: Mapping[str, Any] | None) -> Document[Turns]:
    """Read a ConfigMap of turns; if it is newer or cannot be read, its fault says so, and there are no turns."""
    return TURNS.read(config_map)


def rejection(uid: str, membership: Membership, index: GroupIndex, turns: Turns, now_s: float) -> str | None:
    """Return why filter rejects a member on every node at a unix time; None if it passes.

    The index of this replica may not have heard of the member yet.
    """
    group = membership.group
    if index.is_placed(group):
        return None
    known = index.known(group) + (index.group_of(uid) != group)
    if known < max(index.size(group), membership.size):
        return WAITING
    turn, preferred = turns.turn, turns.preferred
    if turn is None and preferred is None and not turns.rests:
        return None
    asking = group_hash(group)
    rest = turns.rests.get(asking)
    if rest is not None and now_s < rest.until:
        return RESTING
    if turn is not None and now_s < turn.until:
        return None if turn.group == asking else PLACING
    if preferred is not None and now_s < preferred.until:
        return None if preferred.group == asking else PLACING
    return None


def _decode(data: Any) -> Turns:
    try:
        return _decoder.decode(data[_DATA])
    except (KeyError, TypeError, msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ValueError(repr(error)) from None


TURNS: Final[Format[Turns]] = Format("turns of groups", _decode, "delete it; the holder writes it again")
