"""Usage of the devices of a node: what each one has, and what is charged to it. Filters and commits charge alike.

A pod is charged what it was granted. A resource that it requests, and of which it was granted nothing, is charged in
full to every device, as it may be on any of them; so is what it was granted of a resource if the node no longer has one
of the devices.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from fairlead.grants.entry import Grant, GrantedDevice, Resources

Capacity: TypeAlias = Mapping[str, Mapping[str, int]]
"""Amount that each device has: by resource, then by the id of the device."""
Grants: TypeAlias = Mapping[str, Collection[GrantedDevice] | None]
"""Devices that pods were granted, by UID; None where that cannot be read."""


class PodGrant(Struct, frozen=True):
    """Grant of devices of a node to a pod that is bound to it, or is being bound."""

    uid: str
    grants: tuple[GrantedDevice, ...] | None
    """None if the entry cannot be read."""
    is_newer: bool = False
    """Whether the entry is of a newer version of Fairlead, so that nothing may be granted on the node."""
    taken: bool = True
    """Whether the device plugin has given the pod its device, as far as is known."""
    assumed_at: int = 0
    """Time in nanoseconds that the pod's annotations for the gpushare plugin name; 0 without such annotations."""
    is_placed: bool = False
    """Whether the pod is on the node, as far as is known."""


class DeviceAsk(Struct, frozen=True):
    """Devices of one kind that a pod asks for."""

    name: str
    """Name that the policy gives this kind."""
    devices: int
    """Number of different devices."""
    each: Resources
    """Amounts that it needs on each of them."""


Ask: TypeAlias = tuple[DeviceAsk, ...]


def answers(grant: Grant, ask: Ask) -> bool:
    """Return whether a grant is what was asked for: these kinds, this many devices, these amounts."""
    return grant.keys() == {one.name for one in ask} and all(
        len({device.id for device in grant[one.name]}) == len(grant[one.name]) == one.devices
        and all(device.amounts == one.each for device in grant[one.name])
        for one in ask
    )


class RequestingPod(Struct, frozen=True):
    """Placed pod that requests a resource."""

    uid: str
    amount: float
    deleting: bool = False


PodsRequesting: TypeAlias = Callable[[str], Sequence[RequestingPod]]
"""Returns the placed pods that request a resource and have not ended."""


class Charge(Struct, frozen=True):
    """Amounts that a pod uses, or may use."""

    uid: str
    device: str | None
    """Id of the device; None: every device."""
    amounts: Resources | None
    """Amounts by resource; None: all that the device has."""
    is_leaving: bool = False
    """Whether the pod is being deleted."""


def foreign_pods(resource: str, requesting: PodsRequesting, grants: Grants) -> list[RequestingPod]:
    """Return the placed pods that request a resource and were granted nothing of it, as far as is known."""
    return [
        pod for pod in requesting(resource) if not any(one.amounts.get(resource) for one in grants.get(pod.uid) or ())
    ]


def charges_of(
    resources: Collection[str],
    grants: Grants,
    requesting: PodsRequesting,
    placed: Collection[str],
    *,
    but: str | None = None,
) -> list[Charge]:
    """Return what pods use of the devices with these resources, without the pod of one UID.

    `placed` has the UIDs of pods on the node: of those whose grant cannot be read it is known what they request.
    """
    leaving = {pod.uid for resource in resources for pod in requesting(resource) if pod.deleting}
    charges = list[Charge]()
    for uid, devices in grants.items():
        if uid == but:
            continue
        if devices is not None:
            charges += [Charge(uid, one.id, one.amounts, uid in leaving) for one in devices]
        elif uid not in placed:
            charges.append(Charge(uid, None, None))
    charges += [
        Charge(pod.uid, None, {resource: math.ceil(pod.amount)}, pod.deleting)
        for resource in resources
        for pod in foreign_pods(resource, requesting, grants)
        if pod.uid != but
    ]
    return charges


class DeviceUsage:
    """Usage of the devices of one node. Charges are signed sums: a device may be charged more than it has."""

    __slots__ = ("capacity", "charged")

    def __init__(self, capacity: Capacity, charges: Iterable[Charge] = ()) -> None:
        self.capacity = capacity
        self.charged: dict[str, dict[str, int]] = {
            resource: dict.fromkeys(devices, 0) for resource, devices in capacity.items()
        }
        self.charge(charges)

    def copy(self) -> "DeviceUsage":
        """Return the same usage, to be charged on its own."""
        made = DeviceUsage(self.capacity)
        made.charged = {resource: dict(devices) for resource, devices in self.charged.items()}
        return made

    def free(self, resource: str, device: str) -> int:
        """Return what is left of a device; negative if it is overbooked, 0 if there is no such device."""
        return self.capacity.get(resource, {}).get(device, 0) - self.charged.get(resource, {}).get(device, 0)

    def has_room(self, device: str, amounts: Resources) -> bool:
        """Return whether a device has room for amounts, and is overbooked in no resource."""
        return all(
            devices[device] - self.charged[resource][device] >= amounts.get(resource, 0)
            for resource, devices in self.capacity.items()
        )

    def charge(self, charges: Iterable[Charge], sign: int = 1) -> None:
        """Add what pods use; with sign -1 take it away again."""
        listed, known = [*charges], self.charged
        lost = {
            (one.uid, resource)
            for one in listed
            if one.device is not None and one.amounts is not None
            for resource, amount in one.amounts.items()
            if amount and resource in known and one.device not in known[resource]
        }
        for one in listed:
            for resource in known if one.amounts is None else one.amounts:
                charged = known.get(resource)
                amount = None if one.amounts is None else one.amounts[resource]
                if charged is None or amount == 0:
                    continue
                if one.device is not None and amount is not None and (one.uid, resource) not in lost:
                    charged[one.device] += sign * amount
                    continue
                for device in charged:
                    charged[device] += sign * (self.capacity[resource][device] if amount is None else amount)

    def charge_grant(self, uid: str, grant: Grant, sign: int = 1) -> None:
        """Add the grant of a pod; with sign -1 take it away again."""
        self.charge([Charge(uid, one.id, one.amounts) for devices in grant.values() for one in devices], sign)

    def find_shortage(self, grant: Grant) -> str | None:
        """Return which device has no room for a grant, as text; None if all have."""
        for resource, by_device in amounts_of(grant).items():
            for device, amount in by_device.items():
                if device not in self.capacity.get(resource, {}):
                    return f"there is no device {device} with {resource}"
                if amount > self.free(resource, device):
                    return f"device {device} has no room for {amount} of {resource}"
        return None


def amounts_of(grant: Grant) -> dict[str, dict[str, int]]:
    """Return the amounts of a grant by resource and device, whatever policies call the kind of device."""
    found: dict[str, dict[str, int]] = {}
    for devices in grant.values():
        for device in devices:
            for resource, amount in device.amounts.items():
                of_resource = found.setdefault(resource, {})
                of_resource[device.id] = of_resource.get(device.id, 0) + amount
    return found
