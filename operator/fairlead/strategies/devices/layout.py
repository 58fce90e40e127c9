"""Devices of a node, and how much of each resource a device has.

Equal devices follow from two numbers of the node. Its capacity counts, not what is allocatable: that leaves out sick
devices, and would make every device smaller. Other devices are listed in an annotation of the node.
"""

import json
import re
from collections.abc import Collection, Hashable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fairlead.api.devices import DeviceShare, UnhealthyDevices
from fairlead.strategies.facts import NodeFacts, Unknown

DEVICES_MAX: Final = 1024
TEXT_MAX: Final = 65_536
_AMOUNT_MAX: Final = 1 << 53  # larger ones are not exact in JSON
_ID: Final = re.compile(r"[^\s,\x00-\x1f\x7f\ud800-\udfff]{1,128}")  # what a ledger and an environment can hold
_CAPACITY_MAX: Final = float(1 << 62)  # "1e309" is a quantity, but infinite as a float
_DIGITS: Final = re.compile("([0-9]+)")
_LAYOUT: Final = "device layout"

WHICH_IS_SICK: Final = Unknown(_LAYOUT, "does not say which device is unhealthy")
NO_SUCH_DEVICE: Final = Unknown("the list of unhealthy devices", "names an id that no device of the node has")
"""It may stand for a device that is sick: `0;3` and `card-0` look as if they named one."""
TOO_MANY: Final = Unknown(_LAYOUT, f"has more than {DEVICES_MAX} devices")


class Device(NamedTuple):
    """Device of a node."""

    id: str
    capacity: Mapping[str, int]
    """Amounts that it has, by resource."""
    healthy: bool = True


Devices = tuple[Device, ...]


def layout_key(entry: DeviceShare) -> Hashable:
    """Return a key that entries have in common whose devices are the same on every node."""
    source, there = entry.unhealthy, unhealthy_source(entry)
    return entry.resources, entry.layout.count, entry.layout.annotation, source and source.annotation, there


def layout_of(entry: DeviceShare, node: NodeFacts) -> Devices | Unknown:
    """Return the devices of a node; none if it has no device of this kind."""
    found: Devices | Unknown = node.cached((_LAYOUT, layout_key(entry)), lambda: _layout_of(entry, node))
    return found


def _layout_of(entry: DeviceShare, node: NodeFacts) -> Devices | Unknown:
    if entry.layout.annotation is not None:
        found = parse_layout(node.annotations.get(entry.layout.annotation), entry.resources)
    elif entry.layout.count is not None:
        found = _equal(node, entry.layout.count, entry.resources)
    else:
        raise AssertionError("a layout has a count or an annotation")
    if isinstance(found, Unknown) or not found:
        return found
    sick = unhealthy_ids(entry.unhealthy, node)
    if isinstance(sick, Unknown):
        return sick
    if not sick <= {one.id for one in found}:
        return NO_SUCH_DEVICE
    devices = tuple(one._replace(healthy=False) if one.id in sick else one for one in found)
    if entry.layout.count is not None and _hides_a_sick_one(devices, node, entry.resources):
        return WHICH_IS_SICK
    return devices


def size_of(device: str, entry: DeviceShare, node: NodeFacts) -> int:
    """Return what a device has of the first resource of an entry; 0 if that is not known."""
    devices = layout_of(entry, node)
    if isinstance(devices, Unknown):
        return 0
    return next((one.capacity[entry.resources[0]] for one in devices if one.id == device), 0)


def unhealthy_source(entry: DeviceShare) -> tuple[str, str, str] | None:
    """Return the namespace, the prefix and the key of the ConfigMaps of unhealthy devices; None without them."""
    there = None if entry.unhealthy is None else entry.unhealthy.config_map
    return None if there is None else (there.namespace, there.prefix, there.key)


def unhealthy_ids(source: UnhealthyDevices | None, node: NodeFacts) -> frozenset[str] | Unknown:
    """Return the ids of the devices that must not be used."""
    text: str | Unknown = ""
    if source is not None and source.annotation is not None:
        text = node.annotations.get(source.annotation, "")
    elif source is not None and (there := source.config_map) is not None:
        text = node.unhealthy(there.namespace, there.prefix, there.key)
    if isinstance(text, Unknown):
        return text
    return frozenset(id_ for part in text.split(",") if (id_ := part.strip()))


def listed_as_unhealthy(entry: DeviceShare, node: NodeFacts) -> str:
    """Return the ids that the list of unhealthy devices names, for people; empty if it is not read."""
    found = unhealthy_ids(entry.unhealthy, node)
    return "" if isinstance(found, Unknown) else ", ".join(sorted(found, key=natural_order))


def natural_order(device_id: str) -> tuple[tuple[str | int, ...], str]:
    """Return the sort key of an id: 2 is before 10."""
    # Parts alternate, text first, so that numbers are never compared with text.
    parts = _DIGITS.split(device_id)
    return tuple(int(part) if at % 2 else part for at, part in enumerate(parts)), device_id


def _equal(node: NodeFacts, count: str, resources: Collection[str]) -> Devices | Unknown:
    number, *amounts = [int(max(0.0, min(node.capacity.get(name, 0.0), _CAPACITY_MAX))) for name in (count, *resources)]
    totals = dict(zip(resources, amounts, strict=True))
    if number <= 0 or not any(total > 0 for total in totals.values()):
        return ()
    if number > DEVICES_MAX:
        return TOO_MANY
    each = {name: total // number for name, total in totals.items()}
    return tuple(Device(str(at), each) for at in range(number))


def _hides_a_sick_one(devices: Devices, node: NodeFacts, resources: Collection[str]) -> bool:
    """Report whether more is missing from what the node can allocate than its unhealthy devices have."""
    for name in resources:
        missing = node.capacity.get(name, 0.0) - node.allocatable.get(name, 0.0)
        if missing > 0 and missing > sum(one.capacity[name] for one in devices if not one.healthy):
            return True
    return False


def parse_layout(text: str | None, resources: tuple[str, ...]) -> Devices | Unknown:
    """Return the devices that an annotation lists; none if there is no annotation."""
    if text is None:
        return ()
    if len(text) > TEXT_MAX:
        return Unknown(_LAYOUT, f"has more than {TEXT_MAX} characters")
    return _parsed(text, resources)


@lru_cache(maxsize=128)
def _parsed(text: str, resources: tuple[str, ...]) -> Devices | Unknown:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return Unknown(_LAYOUT, "is not JSON")
    if not isinstance(listed, list):
        return Unknown(_LAYOUT, "is no list of devices")
    if len(listed) > DEVICES_MAX:
        return TOO_MANY
    found: dict[str, Device] = {}
    for one in listed:
        device = _device(one, resources)
        if isinstance(device, Unknown):
            return device
        if device.id in found:
            return Unknown(_LAYOUT, "has an id twice")
        found[device.id] = device
    return tuple(found.values())


def _device(listed: Any, resources: tuple[str, ...]) -> Device | Unknown:
    if not isinstance(listed, dict):
        return Unknown(_LAYOUT, "has a device that is no object")
    device_id, capacity, healthy = listed.get("id"), listed.get("capacity"), listed.get("healthy", True)
    if not isinstance(device_id, str) or not _ID.fullmatch(device_id):
        return Unknown(_LAYOUT, "has a device without an id, which is text without spaces and commas")
    if not isinstance(capacity, dict) or not all(map(is_amount, capacity.values())):
        return Unknown(_LAYOUT, "has a device without a capacity, which is an object of whole numbers")
    if not isinstance(healthy, bool):
        return Unknown(_LAYOUT, "has a device that is neither healthy nor not")
    return Device(device_id, {name: capacity.get(name, 0) for name in resources}, healthy)


def is_amount(value: object) -> bool:
    """Report whether a value of a JSON document is an amount of a device."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _AMOUNT_MAX
