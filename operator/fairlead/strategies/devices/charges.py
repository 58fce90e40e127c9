"""Amounts that pods hold of the devices of a node.

A pod holds what it was granted. One that requests a resource without a grant may be on any device, so it is charged in
full to every device. So is a grant if the node no longer has one of its devices.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from fairlead.strategies.devices.layout import Device, Devices
from fairlead.strategies.facts import Asking, NodeFacts


class Charge(NamedTuple):
    """Amount that a pod holds."""

    uid: str
    device: str | None
    """Id of the device; None: every device."""
    amounts: Mapping[str, int] | None
    """Amounts by resource; None: all that the device has."""
    is_leaving: bool = False
    """Whether the pod is being deleted."""


class DeviceRoom:
    """Device with what is charged to it."""

    __slots__ = ("charged", "device")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.charged: dict[str, int] = dict.fromkeys(device.capacity, 0)

    def free(self, resource: str) -> int:
        """Return what is left of a resource: below 0 if more is charged than the device has."""
        return self.device.capacity[resource] - self.charged[resource]

    def holds(self, amounts: Mapping[str, int]) -> bool:
        """Report whether there is room for amounts, of every resource of the device."""
        return all(self.free(resource) >= amounts.get(resource, 0) for resource in self.device.capacity)

    def charge(self, amounts: Mapping[str, int] | None) -> None:
        """Charge amounts to the device; None: all that it has."""
        for resource, capacity in self.device.capacity.items():
            self.charged[resource] += capacity if amounts is None else amounts.get(resource, 0)


def charges_of(node: NodeFacts, resources: Collection[str], *, but: str | None = None) -> list[Charge]:
    """Return what pods hold of the devices of a node, without the pod of one UID."""
    asking = {resource: node.asking(resource) for resource in resources}
    leaving = {pod.uid for pods in asking.values() for pod in pods if pod.deleting}
    placed = {pod.uid for pods in asking.values() for pod in pods}
    found = list[Charge]()
    granted: dict[str, frozenset[str]] = {}
    for one in node.granted:
        if one.is_newer:
            found.append(Charge(one.uid, None, None))
        elif one.uid == but:
            continue
        elif one.grants is not None:
            granted[one.uid] = frozenset(name for grant in one.grants for name, many in grant.amounts.items() if many)
            found += [Charge(one.uid, grant.id, grant.amounts, one.uid in leaving) for grant in one.grants]
        elif one.uid not in placed:  # of a placed pod it is known what it asks for
            found.append(Charge(one.uid, None, None))
    found += [
        Charge(pod.uid, None, {resource: math.ceil(pod.amount)}, pod.deleting)
        for resource, pods in asking.items()
        for pod in pods
        if pod.uid != but and resource not in granted.get(pod.uid, ())
    ]
    return found


def rooms_of(devices: Devices, charges: Iterable[Charge]) -> list[DeviceRoom]:
    """Return the devices with these charges."""
    rooms = [DeviceRoom(device) for device in devices]
    by_id = {room.device.id: room for room in rooms}
    listed = [*charges]
    resources = devices[0].capacity.keys() if devices else ()
    lost = {
        one.uid
        for one in listed
        if one.device not in by_id and one.device is not None and any(map((one.amounts or {}).get, resources))
    }
    for charge in listed:
        known = None if charge.uid in lost else by_id.get(charge.device or "")
        for room in rooms if known is None else (known,):
            room.charge(charge.amounts)
    return rooms


def foreign_pods(node: NodeFacts, resource: str) -> list[Asking]:
    """Return the placed pods that ask for a resource of which they were granted nothing."""
    granted = {one.uid for one in node.granted if any(grant.amounts.get(resource) for grant in one.grants or ())}
    return [pod for pod in node.asking(resource) if pod.uid not in granted]
