"""State of an entry: it is over by four facts about its pod, each of which stays true once it is true.

Because they stay true, they may be taken from a view of any age. What a view does not show is no fact: the mirror may
not have heard of the pod yet. Then the pod is read from the API server, and a read that began after the entry was seen
tells more, because the version that the entry names is not in the read's future.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from fairlead.grants.entry import AnyEntry, Grant, Resources
from fairlead.resource_versions import is_newer

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class PodState(Struct, frozen=True):
    """A pod at one of its versions."""

    uid: str
    pod: str
    """Namespace and name, with a slash between them."""
    rv: str
    """Empty where a view does not keep it, which it need not for placed pods."""
    node: str = ""
    """Node that it is placed on; empty while there is none."""
    ended: bool = False
    """True if its phase is Succeeded or Failed."""
    request: Resources = _NOTHING
    """Amounts that it requests, as the scheduler counts them."""
    recorded: Grant = _NOTHING
    """Devices that its annotations record, if they are what it asks for: a copy, which others may have written."""
    metadata_hash: int | None = None
    """Hash of its labels and annotations; None in a view, which does not keep it."""
    order: int = 0
    """Order in which a device plugin takes it, by its annotations."""


class Gone(Struct, frozen=True):
    """Fact that a pod is gone: its deletion was heard, or the API server answered 404."""


GONE: Final = Gone()


class EntryState(Enum):
    """State of an entry."""

    HOLDS = "its Binding may land, or has landed"
    UNCLEAR = "its pod has to be read"
    POD_GONE = "its pod is gone"
    POD_ENDED = "its pod has ended"
    POD_ELSEWHERE = "its pod is placed on another node"
    POD_CHANGED = "its pod is unplaced and has a newer version, so that its Binding is refused"

    @property
    def is_over(self) -> bool:
        """Return whether the entry may be removed, or given other devices."""
        return self not in (EntryState.HOLDS, EntryState.UNCLEAR)


def judge(uid: str, entry: AnyEntry, node: str | None, seen: PodState | Gone | None) -> EntryState:
    """Return the state of an entry by a view of any age: what it shows of this UID, else under the pod's name.

    The node is that of the ledger; None if its entries hold on whatever node their pods are.
    """
    if seen is None:
        return EntryState.UNCLEAR
    if isinstance(seen, Gone):
        return EntryState.POD_GONE
    rv = entry.rv
    if seen.uid != uid:
        # An older pod of that name would tell nothing: the view may not have heard of this one yet.
        return EntryState.POD_GONE if rv and is_newer(seen.rv, rv) else EntryState.UNCLEAR
    if (fact := _lasting(node, seen)) is not None:
        return fact
    if not rv:
        return EntryState.HOLDS  # reading the pod would not tell which version it names
    newer = is_newer(seen.rv, rv)
    if newer is None:
        return EntryState.UNCLEAR
    return EntryState.POD_CHANGED if newer else EntryState.HOLDS


def judge_read(uid: str, entry: AnyEntry, node: str | None, read: PodState | Gone) -> EntryState:
    """Return the state of an entry by a consistent read of its pod's name that began after the entry was seen."""
    if isinstance(read, Gone) or read.uid != uid:
        return EntryState.POD_GONE
    if (fact := _lasting(node, read)) is not None:
        return fact
    return EntryState.HOLDS if entry.rv in ("", read.rv) else EntryState.POD_CHANGED


def judge_listed(
    uid: str, entry: AnyEntry, node: str | None, unplaced: Mapping[str, PodState], here: Mapping[str, PodState]
) -> EntryState:
    """Return the state of an entry by two consistent lists, by UID, that began after the entry was seen.

    `unplaced` has all unplaced pods, `here` those on the node, or on any if there is none. The latter has to be the
    later one: a pod that is bound between the two is then in both, and in the other order it might be in neither.
    """
    if (found := here.get(uid) or unplaced.get(uid)) is None:
        return EntryState.POD_GONE  # or it is placed elsewhere, which is as good
    return judge_read(uid, entry, node, found)


def _lasting(node: str | None, seen: PodState) -> EntryState | None:
    """Return what holds whatever version the entry names; None if the pod is unplaced."""
    if seen.ended:
        return EntryState.POD_ENDED
    if seen.node:
        return EntryState.HOLDS if node in (None, seen.node) else EntryState.POD_ELSEWHERE
    return None
