"""Commits: what a batch of requests for grants on one node makes of a version of its ledger.

Three rules hold here, however devices are chosen: an entry is added only if all entries and the new one fit every
device of the version that the write names; an entry is removed or changed only if it is over; and the entry of a pod
at one version is its grant, however often it is asked for.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from fairlead.grants.device_usage import Ask, Capacity, DeviceUsage, Grants, RequestingPod, answers, charges_of
from fairlead.grants.entry import AnyEntry, Grant, LedgerEntry, all_devices
from fairlead.grants.entry_state import EntryState, PodState
from fairlead.grants.ledger import Ledger, merge_patch
from fairlead.resource_versions import is_newer

NEWER: Final = "granted by a newer version: roll all replicas to one version of Fairlead"


class Refused(Struct, frozen=True):
    """Answer that no devices are granted."""

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


class GrantRequest(Struct, frozen=True, eq=False):
    """Request for devices of one node, of a pod that is unplaced at this version."""

    uid: str
    pod: str
    rv: str
    devices: DeviceRequest


class NodeInventory(Struct, frozen=True):
    """Devices of a node, and its pods."""

    capacity: Capacity | Refused
    """Its devices, without resources whose layout is not known; or why no request can be answered."""
    placed: Sequence[PodState] = ()
    """Pods on it that have not ended, as the mirror shows them."""


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


def plan(
    ledger: Ledger, requests: Sequence[GrantRequest], facts: NodeInventory, states: Mapping[str, EntryState]
) -> LedgerPlan:
    """Answer requests by this version of a ledger, with the state of each of its entries by UID."""
    if isinstance(facts.capacity, Refused):
        return _closed(ledger, requests, facts.capacity)
    # What an entry says of its pod may be wrong where it cannot be read; its UID is the key.
    states = {**states, **{one.uid: EntryState.HOLDS for one in facts.placed if one.uid in ledger.unreadable}}
    over = frozenset(uid for uid, state in states.items() if state.is_over)
    unclear = {uid: one for uid, one in ledger.all.items() if states[uid] is EntryState.UNCLEAR}
    if not ledger.newer.keys() <= over:
        # What a newer version promised is not known: only what its pods are now can open the node.
        unclear = {uid: one for uid, one in unclear.items() if uid in ledger.newer}
        return _closed(ledger, requests, Refused(NEWER), unclear)
    draft = _Draft(ledger, usage_of(ledger, facts, facts.capacity, over), over, unclear)
    found = [draft.answer(one) for one in requests]
    wants_room = any(not isinstance(one, Accepted) for one in found)
    drop = draft.over if draft.put else frozenset[str]()
    return LedgerPlan(ledger, draft.put, drop - draft.put.keys(), found, draft.unclear, wants_room)


def _closed(
    ledger: Ledger,
    requests: Sequence[GrantRequest],
    why: Refused,
    unclear: Mapping[str, AnyEntry] = MappingProxyType({}),
) -> LedgerPlan:
    """Return the plan that grants nothing but what stands in the ledger."""
    found = [_standing(ledger, one) or why for one in requests]
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


def _standing(ledger: Ledger, request: GrantRequest) -> Accepted | None:
    entry = ledger.entries.get(request.uid)
    return Accepted(entry) if entry is not None and entry.rv == request.rv else None


class _Draft:
    """Ledger in the making."""

    def __init__(self, ledger: Ledger, usage: DeviceUsage, over: frozenset[str], unclear: dict[str, AnyEntry]) -> None:
        self.ledger, self.usage, self.over, self.unclear = ledger, usage, over, unclear
        self.put: dict[str, LedgerEntry] = {}
        self.in_force = {uid: one for uid, one in ledger.entries.items() if uid not in over}
        self.order = max((one.order for one in self.in_force.values()), default=0)

    def answer(self, request: GrantRequest) -> Answer:
        if request.uid in self.ledger.unreadable and request.uid not in self.over:
            return Refused(f"the entry {request.uid} of the ledger cannot be read; remove it once the pod is gone")
        if (standing := _standing(self.ledger, request)) is not None:
            # One that is over may be removed with this write; the pod is on a node, gone, or has a newer version.
            return StalePod() if request.uid in self.over else standing
        if (planned := self.put.get(request.uid)) is not None:
            return Accepted(planned) if planned.rv == request.rv else StalePod()
        before = self.ledger.entries.get(request.uid)
        if before is not None and is_newer(before.rv, request.rv):
            return StalePod()
        if before is not None and request.uid not in self.over:
            # The request knows the pod unplaced at its version: that is a view like any other.
            if not is_newer(request.rv, before.rv):
                self.unclear[request.uid] = before
                return StalePod()
            self.usage.charge_grant(request.uid, before.grant, sign=-1)
            self.over |= {request.uid}
            del self.in_force[request.uid]
        known = self.in_force if before is None else {**self.in_force, request.uid: before}
        grant = request.devices.choose(self.usage.copy(), MappingProxyType(known))
        if isinstance(grant, Refused):
            return grant
        if (wrong := self._wrong(grant, request)) is not None:
            return Refused(f"the policy {request.devices.by} cannot be followed: {wrong}")
        self.usage.charge_grant(request.uid, grant)
        self.order += 1
        entry = LedgerEntry(request.pod, request.rv, request.devices.by, grant, self.order)
        self.put[request.uid] = self.in_force[request.uid] = entry
        return Accepted(entry)

    def _wrong(self, grant: Grant, request: GrantRequest) -> str | None:
        return (
            self.usage.find_shortage(grant)
            if answers(grant, request.devices.ask)
            else "its choice is not what the pod asks for"
        )
