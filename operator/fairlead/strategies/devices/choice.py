"""Choice of devices for a pod: what it needs, which devices have room, and which of these it gets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from fairlead.api.devices import ChooseDevices, DeviceShare
from fairlead.grants.device_usage import Charge, DeviceAsk, DeviceUsage
from fairlead.grants.entry import GrantedDevice
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.charges import charges_on, usage_with
from fairlead.strategies.devices.layout import Device, Devices, layout_key, layout_of, natural_order
from fairlead.strategies.facts import Amounts, NodeFacts, Nominated, PodFacts, RequestingContainers, Unknown

CARDS_MAX: Final = 16
CARDS: Final = Unknown("the number of devices", f"is not a whole number from 1 to {CARDS_MAX}")

NO_DEVICE: Final = "no device of this kind"
TOO_LARGE: Final = "request is larger than any device"
TOO_FEW_HEALTHY: Final = "too few healthy devices"
NO_ROOM: Final = "no single device has room"
TOO_FEW_HAVE_ROOM: Final = "too few devices have room"
NEWER: Final = "granted by a newer version"
SEVERAL_CONTAINERS: Final = "more than one container asks for the share"
WAITING: Final = "waiting for the device plugin to take a pod of the same size"
RESOLVABLE: Final = frozenset({NO_ROOM, TOO_FEW_HAVE_ROOM})
"""Reasons that evictions from the node can change."""
REASONS: Final = (NO_DEVICE, TOO_LARGE, TOO_FEW_HEALTHY, NO_ROOM, TOO_FEW_HAVE_ROOM, NEWER, SEVERAL_CONTAINERS)
"""All reasons of the filter. WAITING is one of binding alone: it is over within seconds."""


class Refusal(NamedTuple):
    """Answer that no devices can be chosen, with one of the reasons."""

    reason: str

    @property
    def resolvable(self) -> bool:
        """Return whether evictions from the node can change it."""
        return self.reason in RESOLVABLE


def claims_of(entry: DeviceShare) -> frozenset[str]:
    """Return what one pod is granted by one entry only: a later entry that claims any of it is left out.

    Gpushare's annotations have room for one device, so that a second entry would overwrite the first.
    """
    of_plugin = ("record: Gpushare",) if entry.record == "Gpushare" else ()
    return frozenset((f"name: {entry.name}", *entry.resources, *of_plugin))


def need_of(share: CompiledShare, pod: PodFacts) -> DeviceAsk | Unknown | None:
    """Return what a pod needs; None if it asks for none of the resources."""
    if not any(pod.request.get(name, 0.0) > 0 for name in share.entry.resources):
        return None
    cards = share.cards(pod)
    if isinstance(cards, Unknown):
        return cards
    return need_with(share.entry, pod.request, cards) or CARDS


def need_with(entry: DeviceShare, request: Amounts, cards: int) -> DeviceAsk | None:
    """Return what a request needs on each of this many devices; None for a number that no pod gets."""
    if not 1 <= cards <= CARDS_MAX:
        return None
    parts = cards if entry.split == "Even" else 1
    asked = {name: math.ceil(request.get(name, 0.0)) for name in entry.resources}
    return DeviceAsk(entry.name, cards, {name: -(-amount // parts) for name, amount in asked.items() if amount > 0})


def refused_by_plugin(share: CompiledShare, pod: PodFacts) -> bool:
    """Report whether the gpushare plugin cannot give a pod its device: it is asked once for each container."""
    asked_by = [pod.requesting_containers(name) for name in share.entry.resources]
    return share.entry.record == "Gpushare" and any(one != RequestingContainers(containers=1) for one in asked_by)


def devices_with_room(node: NodeFacts, devices: Devices, usage: DeviceUsage, need: DeviceAsk) -> list[Device] | Refusal:
    """Return the devices of a node that have room for a pod; none if a newer version of Fairlead granted there."""
    found = with_room(devices, usage, need)
    if isinstance(found, Refusal) and found.resolvable and any(one.is_newer for one in node.granted):
        return Refusal(NEWER)
    return found


def with_room(devices: Devices, usage: DeviceUsage, need: DeviceAsk) -> list[Device] | Refusal:
    """Return the devices that have room for a pod, at least as many as it needs."""
    if not devices:
        return Refusal(NO_DEVICE)
    large = [device for device in devices if _is_enough(device.capacity, need.each)]
    if not large:
        return Refusal(TOO_LARGE)
    healthy = [device for device in large if device.healthy]
    if len(healthy) < need.devices:
        return Refusal(TOO_FEW_HEALTHY)
    found = [device for device in healthy if usage.has_room(device.id, need.each)]
    if len(found) < need.devices:
        return Refusal(NO_ROOM if need.devices == 1 else TOO_FEW_HAVE_ROOM)
    return found


def chosen_from(
    devices: Iterable[Device], usage: DeviceUsage, need: DeviceAsk, choose: ChooseDevices, first: str
) -> list[Device]:
    """Return the devices that a pod gets of those that have room, ranked by what is free of the first resource."""
    sign = {"BestFit": 1, "WorstFit": -1, "Lowest": 0}[choose]
    ranked = sorted(devices, key=lambda device: (sign * usage.free(first, device.id), natural_order(device.id)))
    return ranked[: need.devices]


def usage_for(
    share: CompiledShare, devices: Devices, node: NodeFacts, nominated: Iterable[Nominated], own: str | None = None
) -> DeviceUsage:
    """Return the usage of devices by pods, after the nominated pods have got theirs in thought.

    Nothing is charged for the pod with the UID `own`, nor twice for a nominated pod that has its grant already.
    """
    held = {one.uid for one in node.granted}
    left = [one for one in nominated if one.pod.uid not in held and one.pod.uid != own]
    if not left and not own:
        key = ("device usage", layout_key(share.entry))
        usage: DeviceUsage = node.cached(key, lambda: usage_with(devices, charges_on(node, share.entry.resources)))
        return usage
    charges = charges_on(node, share.entry.resources, but=own)
    for one in sorted(left, key=_order):
        need = need_of(share, one.pod)
        if isinstance(need, DeviceAsk):
            charges += _in_thought(share, devices, charges, one.pod.uid, need)
    return usage_with(devices, charges)


def _in_thought(
    share: CompiledShare, devices: Devices, charges: Sequence[Charge], uid: str, need: DeviceAsk
) -> list[Charge]:
    """Return what a nominated pod will hold; the pods that are evicted for it may still be there."""
    entry = share.entry
    for held in (charges, [charge for charge in charges if not charge.is_leaving]):
        usage = usage_with(devices, held)
        found = with_room(devices, usage, need)
        if not isinstance(found, Refusal):
            chosen = chosen_from(found, usage, need, entry.choose, entry.resources[0])
            return [Charge(uid, device.id, need.each) for device in chosen]
    return []


def _order(nominated: Nominated) -> tuple[int, int, str]:
    return -nominated.pod.priority, nominated.created, nominated.pod.uid


def _is_enough(capacity: Mapping[str, int], amounts: Mapping[str, int]) -> bool:
    return all(capacity.get(resource, 0) >= amount for resource, amount in amounts.items())


def choose_grants(
    share: CompiledShare, pod: PodFacts, need: DeviceAsk, node: NodeFacts
) -> tuple[GrantedDevice, ...] | Refusal | Unknown:
    """Return the devices that a pod with this need gets when it is bound to a node.

    The grants of the node are those of the newest ledger. A pod that has a grant there keeps its devices while they
    have room.
    """
    if refused_by_plugin(share, pod):
        return Refusal(SEVERAL_CONTAINERS)
    devices = layout_of(share.entry, node)
    if isinstance(devices, Unknown):
        return devices
    waiting = [one for one in node.nominated if one.pod.uid != pod.uid and one.pod.priority >= pod.priority]
    usage = usage_for(share, devices, node, waiting, pod.uid)
    found = devices_with_room(node, devices, usage, need)
    if isinstance(found, Refusal):
        return found
    by_id = {device.id: device for device in found}
    kept = frozenset(one.id for one in _grants(node, pod.uid) if one.amounts == need.each)
    if share.entry.record == "Gpushare" and (same := _devices_of_equals(node, pod.uid, need)):
        # The plugin finds a pod by its amount: it may take one for the other while both wait for it.
        if len(same) != 1 or not same <= by_id.keys():
            return Refusal(WAITING)
        kept = same
    if len(kept) == need.devices and kept <= by_id.keys():
        chosen = sorted((by_id[one] for one in kept), key=lambda device: natural_order(device.id))
    else:
        chosen = chosen_from(found, usage, need, share.entry.choose, share.entry.resources[0])
    return tuple(GrantedDevice(device.id, need.each) for device in chosen)


def _grants(node: NodeFacts, uid: str) -> tuple[GrantedDevice, ...]:
    return next((one.grants or () for one in node.granted if one.uid == uid), ())


def _devices_of_equals(node: NodeFacts, uid: str, need: DeviceAsk) -> frozenset[str]:
    """Return the devices of the pods of the same size that the device plugin has not taken yet."""
    return frozenset(
        grant.id
        for one in node.granted
        if one.uid != uid and not one.taken
        for grant in one.grants or ()
        if all(grant.amounts.get(name) == amount for name, amount in need.each.items())
    )
