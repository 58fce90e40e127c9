"""Commits: what a batch of requests makes of a version of a ledger.

Three rules hold here, whatever is promised: an entry is added only if all entries and the new one go together in the
version that the write names; an entry is removed or changed only if it is over; and the entry of a pod at one version
is what it was promised, however often it is asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from fairlead.grants.device_usage import Ask, Capacity, DeviceUsage, Grants, RequestingPod, answers, charges_of
from fairlead.grants.entry import AnyEntry, Grant, LedgerEntry, all_devices
from fairlead.grants.entry_state import EntryState, PodState
from fairlead.grants.ledger import Ledger, merge_patch
from fairlead.resource_versions import is_newer

NEWER: Final = "granted by a newer version: roll all replicas to one version of Fairlead"


class Refused(Struct, frozen=True):
    """Answer that nothing is promised."""

    why: str


class StalePod(Struct, frozen=True):
    """Answer that the pod has to be read, as the ledger knows another version of it."""


class Accepted(Struct, frozen=True):
    """Answer that an entry stands in the ledger."""

    entry: LedgerEntry


Answer: TypeAlias = Accepted | Refused | StalePod


class DeviceRequest(Protocol):
    """Devices that policies want for a pod, and their choice among those of a node."""

    @property
    def by(self) -> str:
        """Names of the policies."""

    @property
    def ask(self) -> Ask:
        """Needs of the pod."""

    def choose(self, usage: DeviceUsage, entries: Mapping[str, LedgerEntry], /) -> Grant | Refused:
        """Choose devices by the room that they have, and by the entries that hold, by UID.

        Among these is the pod's former entry, whose devices it should keep if they have room. The usage is its own to
        change. It is not trusted: what it returns is checked.
        """


class LedgerRequest(Struct, frozen=True, eq=False):
    """Request for an entry in one ledger, of a pod that is unplaced at this version."""

    uid: str
    pod: str
    rv: str


class GrantRequest(LedgerRequest, frozen=True, eq=False):
    """Request for devices of one node."""

    devices: DeviceRequest


R = TypeVar("R", bound=LedgerRequest)
R_contra = TypeVar("R_contra", bound=LedgerRequest, contravariant=True)


class Promises(Protocol[R_contra]):
    """Promises of all entries in force, while a plan is made."""

    def take_back(self, uid: str, entry: LedgerEntry, /) -> None:
        """Take away an entry that turned out to be over."""

    def add(self, request: R_contra, known: Mapping[str, LedgerEntry], order: int, /) -> LedgerEntry | Refused:
        """Add an entry that goes together with all others, and return it.

        `known` has the entries in force, and the pod's former entry.
        """


class LedgerFacts(Protocol[R_contra]):
    """Facts about the subject of a ledger, as a process knows them."""

    def placed_uids(self) -> Iterable[str]:
        """Return the UIDs of pods that hold whatever their entries promise."""

    def differs(self, request: R_contra, entry: LedgerEntry, /) -> Refused | None:
        """Return a refusal if what a pod was promised at this version is not what it requests now."""

    def promises(self, ledger: Ledger, over: frozenset[str], /) -> Promises[R_contra] | Refused:
        """Return what is promised by a ledger without the entries that are over, or why nothing can be."""


class NodeInventory(Struct, frozen=True):
    """Devices of a node, and its pods."""

    capacity: Capacity | Refused
    """Its devices, without resources whose layout is not known; or why no request can be answered."""
    placed: Sequence[PodState] = ()
    """Pods on it that have not ended, as the mirror shows them."""

    def placed_uids(self) -> Iterable[str]:
        """Return the UIDs of the pods on the node."""
        return (one.uid for one in self.placed)

    def differs(self, _request: GrantRequest, _entry: LedgerEntry, /) -> Refused | None:
        """Return nothing: a pod keeps what it was granted at this version, whatever would be chosen now."""
        return None

    def promises(self, ledger: Ledger, over: frozenset[str], /) -> "DevicePromises | Refused":
        """Return what is granted of the node, or why no request can be answered."""
        if isinstance(self.capacity, Refused):
            return self.capacity
        return DevicePromises(usage_of(ledger, self, self.capacity, over))


class LedgerPlan(Struct, frozen=True):
    """Change of one version of a ledger, and the answers that it gives once it is written."""

    ledger: Ledger
    put: Mapping[str, LedgerEntry]
    drop: frozenset[str]
    answers: Sequence[Answer]
    """One for each request, in their order."""
    unclear: Mapping[str, AnyEntry]
    """Entries whose pods have to be read to tell whether they are over."""
    wants_room: bool
    """Whether a request was refused that they might make room for."""

    @property
    def patch(self) -> dict[str, object]:
        """Return the merge patch. What is over is removed with it, and never by a write of its own."""
        return merge_patch(self.ledger, self.put, self.drop)


def plan(ledger: Ledger, requests: Sequence[R], facts: LedgerFacts[R], states: Mapping[str, EntryState]) -> LedgerPlan:
    """Answer requests by this version of a ledger, with the state of each of its entries by UID."""
    # What an entry says of its pod may be wrong where it cannot be read; its UID is the key.
    if ledger.unreadable:
        states = {**states, **{uid: EntryState.HOLDS for uid in facts.placed_uids() if uid in ledger.unreadable}}
    over = frozenset(uid for uid, state in states.items() if state.is_over)
    promises = facts.promises(ledger, over)
    if isinstance(promises, Refused):
        return _closed(ledger, requests, facts, promises)
    unclear = {uid: one for uid, one in ledger.all.items() if states[uid] is EntryState.UNCLEAR}
    if not ledger.newer.keys() <= over:
        # What a newer version promised is not known: only what its pods are now can open the node.
        unclear = {uid: one for uid, one in unclear.items() if uid in ledger.newer}
        return _closed(ledger, requests, facts, Refused(NEWER), unclear)
    draft = _Draft(ledger, facts, promises, over, unclear)
    found = [draft.answer(one) for one in requests]
    wants_room = any(not isinstance(one, Accepted) for one in found)
    drop = draft.over if draft.put else frozenset[str]()
    return LedgerPlan(ledger, draft.put, drop - draft.put.keys(), found, draft.unclear, wants_room)


def _closed(
    ledger: Ledger,
    requests: Sequence[R],
    facts: LedgerFacts[R],
    why: Refused,
    unclear: Mapping[str, AnyEntry] = MappingProxyType({}),
) -> LedgerPlan:
    """Return the plan that promises nothing but what stands in the ledger."""
    found = [_standing(ledger, one, facts) or why for one in requests]
    return LedgerPlan(ledger, {}, frozenset(), found, unclear, wants_room=bool(unclear))


def usage_of(ledger: Ledger, facts: NodeInventory, capacity: Capacity, over: frozenset[str]) -> DeviceUsage:
    """Return the usage of the devices of a node by entries, unreadable ones and foreign pods.

    For advice, such as a filter's, entries that are unclear count as over: only a bind reads their pods, so that a pod
    must come that far. What is granted is decided without this optimism.
    """
    grants = {uid: all_devices(one.grant) for uid, one in ledger.entries.items()}
    unreadable = dict.fromkeys(ledger.unreadable)
    known: Grants = {uid: one for uid, one in {**grants, **unreadable}.items() if uid not in over}
    # What is over uses nothing, also where the mirror has not heard yet that the pod is gone.
    placed = [one for one in facts.placed if one.uid not in over]

    def requesting(resource: str) -> list[RequestingPod]:
        return [RequestingPod(one.uid, amount) for one in placed if (amount := one.request.get(resource, 0)) > 0]

    charges = charges_of(capacity.keys(), known, requesting, {one.uid for one in placed})
    return DeviceUsage(capacity, charges)


def _standing(ledger: Ledger, request: R, facts: LedgerFacts[R]) -> Accepted | Refused | None:
    entry = ledger.entries.get(request.uid)
    if entry is None or entry.rv != request.rv:
        return None
    return facts.differs(request, entry) or Accepted(entry)


class _Draft(Generic[R]):
    """Ledger in the making."""

    def __init__(
        self,
        ledger: Ledger,
        facts: LedgerFacts[R],
        promises: Promises[R],
        over: frozenset[str],
        unclear: dict[str, AnyEntry],
    ) -> None:
        self.ledger, self.facts, self.promises, self.over, self.unclear = ledger, facts, promises, over, unclear
        self.put: dict[str, LedgerEntry] = {}
        self.in_force = {uid: one for uid, one in ledger.entries.items() if uid not in over}
        self.order = max((one.order for one in self.in_force.values()), default=0)

    def answer(self, request: R) -> Answer:
        if request.uid in self.ledger.unreadable and request.uid not in self.over:
            return Refused(f"the entry {request.uid} of the ledger cannot be read; remove it once the pod is gone")
        if (standing := _standing(self.ledger, request, self.facts)) is not None:
            # One that is over may be removed with this write; the pod is on a node, gone, or has a newer version.
            return StalePod() if request.uid in self.over else standing
        if (planned := self.put.get(request.uid)) is not None:
            if planned.rv != request.rv:
                return StalePod()
            return self.facts.differs(request, planned) or Accepted(planned)
        before = self.ledger.entries.get(request.uid)
        if before is not None and is_newer(before.rv, request.rv):
            return StalePod()
        if before is not None and request.uid not in self.over:
            # The request knows the pod unplaced at its version: that is a view like any other.
            if not is_newer(request.rv, before.rv):
                self.unclear[request.uid] = before
                return StalePod()
            self.promises.take_back(request.uid, before)
            self.over |= {request.uid}
            del self.in_force[request.uid]
        known = self.in_force if before is None else {**self.in_force, request.uid: before}
        entry = self.promises.add(request, MappingProxyType(known), self.order + 1)
        if isinstance(entry, Refused):
            return entry
        self.order += 1
        self.put[request.uid] = self.in_force[request.uid] = entry
        return Accepted(entry)


class DevicePromises:
    """Devices of a node that are granted."""

    def __init__(self, usage: DeviceUsage) -> None:
        self._usage = usage

    def take_back(self, uid: str, entry: LedgerEntry, /) -> None:
        """Free the devices of an entry that is over."""
        self._usage.charge_grant(uid, entry.grant, sign=-1)

    def add(self, request: GrantRequest, known: Mapping[str, LedgerEntry], order: int, /) -> LedgerEntry | Refused:
        """Have devices chosen that all have room, and grant them."""
        grant = request.devices.choose(self._usage.copy(), known)
        if isinstance(grant, Refused):
            return grant
        if (wrong := self._wrong(grant, request)) is not None:
            return Refused(f"the policy {request.devices.by} cannot be followed: {wrong}")
        self._usage.charge_grant(request.uid, grant)
        return LedgerEntry(request.pod, request.rv, request.devices.by, grant, order)

    def _wrong(self, grant: Grant, request: GrantRequest) -> str | None:
        return (
            self._usage.find_shortage(grant)
            if answers(grant, request.devices.ask)
            else "its choice is not what the pod asks for"
        )
