"""DeviceUsage on the devices of a node: what each one has, and what is charged to it."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from fairlead.grants.entry import Grant, Resources

Capacity: TypeAlias = Mapping[str, Mapping[str, int]]
"""What each device has: by resource, then by the id of the device."""


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


class DeviceUsage:
    """DeviceUsage on the devices of one node. Charges are signed sums: a device may be charged more than it has."""

    __slots__ = ("capacity", "charged")

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.charged: dict[str, dict[str, int]] = {
            resource: dict.fromkeys(devices, 0) for resource, devices in capacity.items()
        }

    def copy(self) -> "DeviceUsage":
        """Return the same room, to be charged on its own."""
        made = DeviceUsage(self.capacity)
        made.charged = {resource: dict(devices) for resource, devices in self.charged.items()}
        return made

    def free(self, resource: str, device: str) -> int:
        """Return what is left of a device; negative if it is overbooked, 0 if there is no such device."""
        return self.capacity.get(resource, {}).get(device, 0) - self.charged.get(resource, {}).get(device, 0)

    def charge(self, grant: Grant) -> None:
        """Charge a grant to its devices, and to every device where the layout does not know one of them."""
        for resource, by_device in amounts_of(grant).items():
            charged = self.charged.get(resource)
            if charged is None:
                continue
            if by_device.keys() <= charged.keys():
                for device, amount in by_device.items():
                    charged[device] += amount
            else:
                self.charge_everywhere({resource: sum(by_device.values())})

    def charge_everywhere(self, amounts: Resources) -> None:
        """Charge amounts in full to every device, as nobody knows which of them are used."""
        for resource, amount in amounts.items():
            charged = self.charged.get(resource, {})
            for device in charged:
                charged[device] += amount

    def close(self) -> None:
        """Charge every device with all that it has, as nobody knows how much of it is used."""
        for resource, devices in self.capacity.items():
            self.charge_everywhere({resource: max(devices.values(), default=0)})

    def lacking(self, grant: Grant) -> str | None:
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
