"""Annotations that tell a pod's containers and device plugins what was granted.

They are copies: what holds is in the ledger. They are read back only where a ledger begins, and to show where a copy
differs from the ledger.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairlead.api.devices import DeviceShare
from fairlead.grants.entry import GrantedDevice
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.choice import Need, need_of, need_with
from fairlead.strategies.devices.layout import is_amount
from fairlead.strategies.facts import Amounts, PodFacts

DEVICES: Final = "fairlead.dev/devices"
"""Annotation with all grants of a pod; with a dot and the name of an entry behind it, the ids of its devices."""
GPUSHARE: Final = "ALIYUN_COM_GPU_MEM_"
ASSIGNED: Final = f"{GPUSHARE}ASSIGNED"
"""Annotation that the gpushare plugin sets to `true` when it has given the pod its device."""
ASSUME_TIME: Final = f"{GPUSHARE}ASSUME_TIME"
_RECORDED: Final = frozenset({DEVICES, ASSIGNED, f"{GPUSHARE}IDX", f"{GPUSHARE}POD"})
VERSION: Final = 1
_TEXT_MAX: Final = 65_536
_DIGITS_MAX: Final = 19
_TAKEN_PHASES: Final = ("Running", "Succeeded", "Failed")


class ShareGrant(NamedTuple):
    """Devices that a pod was granted by an entry of `binding.deviceShare`."""

    share: CompiledShare
    grants: tuple[GrantedDevice, ...]
    device_size: int = 0
    """What the first device has of the first resource, which the gpushare plugin is told."""


def annotations_of(granted: Sequence[ShareGrant], assumed_at: int) -> dict[str, str]:
    """Return the annotations to write with the Binding, in place of those that the pod has."""
    made: dict[str, str] = {}
    listed: dict[str, object] = {}
    for share, grants, device_size in granted:
        entry = share.entry
        if not grants:
            continue
        if entry.record == "Fairlead":
            listed[entry.name] = [{"id": grant.id, **grant.amounts} for grant in grants]
            made[f"{DEVICES}.{entry.name}"] = ",".join(grant.id for grant in grants)
        else:
            made |= _for_gpushare(grants[0], entry.resources[0], device_size, assumed_at)
    if listed:
        made[DEVICES] = json.dumps({"v": VERSION, **listed}, separators=(",", ":"))
    return made


def _for_gpushare(grant: GrantedDevice, resource: str, device_size: int, assumed_at: int) -> dict[str, str]:
    return {
        f"{GPUSHARE}IDX": grant.id,
        f"{GPUSHARE}POD": str(grant.amounts[resource]),
        f"{GPUSHARE}DEV": str(device_size),
        ASSIGNED: "false",
        ASSUME_TIME: str(assumed_at),
    }


def assumed_at(annotations: Mapping[str, str]) -> int:
    """Return the time in nanoseconds that annotations for the gpushare plugin name; 0 if they name none."""
    return _number(annotations.get(ASSUME_TIME, "")) or 0


def recorded_in(entry: DeviceShare) -> frozenset[str]:
    """Return the annotations of placed pods that are read for an entry."""
    if entry.record == "Fairlead":
        return frozenset({DEVICES, f"{DEVICES}.{entry.name}"})
    return frozenset({ASSIGNED, f"{GPUSHARE}IDX", f"{GPUSHARE}POD"})


def is_taken(annotations: Mapping[str, str], phase: str) -> bool:
    """Report whether the gpushare plugin has given a placed pod its device."""
    return annotations.get(ASSIGNED) == "true" or phase in _TAKEN_PHASES


def may_record(annotations: Mapping[str, str]) -> bool:
    """Report whether annotations of a placed pod tell what it was granted, rightly or not."""
    return not _RECORDED.isdisjoint(annotations)


def recorded_by(
    entry: DeviceShare, annotations: Mapping[str, str], request: Amounts
) -> tuple[GrantedDevice, ...] | None:
    """Return the grants that annotations of a placed pod record, if their amounts are what it requests.

    Of a placed pod it is not kept by which its number of devices is decided, so any number is believed here.
    """
    found = grants_in(entry, annotations)
    need = None if found is None else need_with(entry, request, len(found))
    return found if found is not None and need is not None and need.amounts and _fits(found, need) else None


def grants_in(entry: DeviceShare, annotations: Mapping[str, str]) -> tuple[GrantedDevice, ...] | None:
    """Return the grants of an entry that annotations record; None if they record none or cannot be read."""
    if entry.record == "Fairlead":
        return _of_fairlead(annotations.get(DEVICES, ""), entry.name, entry.resources)
    index, amount = _number(annotations.get(f"{GPUSHARE}IDX", "")), _number(annotations.get(f"{GPUSHARE}POD", ""))
    if index is None or amount is None:
        return None
    return (GrantedDevice(str(index), {entry.resources[0]: amount}),)


def recorded_grants(share: CompiledShare, pod: PodFacts) -> tuple[GrantedDevice, ...] | None:
    """Return the grants that a placed pod's annotations record, if they are what the pod asks for.

    None if not: the pod is then foreign.
    """
    need = need_of(share, pod)
    found = grants_in(share.entry, pod.annotations)
    return found if isinstance(need, Need) and found is not None and _fits(found, need) else None


def differs(granted: Sequence[ShareGrant], annotations: Mapping[str, str]) -> bool:
    """Report whether the annotations of a pod say something else than the ledger."""
    return any(
        share.entry.record == "Fairlead" and annotations.get(f"{DEVICES}.{share.entry.name}", "") != _ids(grants)
        for share, grants, _ in granted
    ) or any(_by_id(grants_in(share.entry, annotations) or ()) != _by_id(grants) for share, grants, _ in granted)


def ids_in(share: CompiledShare, granted: Iterable[GrantedDevice], annotations: Mapping[str, str]) -> list[str] | None:
    """Return the ids of devices that annotations tell, if one of them differs from what was granted that one's."""
    if share.entry.record == "Fairlead":
        told = annotations.get(f"{DEVICES}.{share.entry.name}")
        if told is not None and told != _ids(granted):
            return told.split(",")
    found = grants_in(share.entry, annotations)
    return None if found is None else [one.id for one in found]


def _ids(grants: Iterable[GrantedDevice]) -> str:
    return ",".join(grant.id for grant in grants)


def _by_id(grants: Iterable[GrantedDevice]) -> dict[str, dict[str, int]]:
    return {grant.id: {name: amount for name, amount in grant.amounts.items() if amount} for grant in grants}


def _fits(found: Sequence[GrantedDevice], need: Need) -> bool:
    by_id = _by_id(found)
    return len(found) == len(by_id) == need.cards and all(amounts == need.amounts for amounts in by_id.values())


def _of_fairlead(text: str, name: str, resources: Iterable[str]) -> tuple[GrantedDevice, ...] | None:
    if not text or len(text) > _TEXT_MAX:
        return None
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = document.get(name) if isinstance(document, dict) and document.get("v") == VERSION else None
    if not isinstance(listed, list):
        return None
    found = list[GrantedDevice]()
    for one in listed:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            return None
        amounts = {resource: one[resource] for resource in resources if resource in one}
        if not all(map(is_amount, amounts.values())):
            return None
        found.append(GrantedDevice(one["id"], amounts))
    return tuple(found)


def _number(text: str) -> int | None:
    """Return a number as the gpushare extender writes it; -1 and others that mean nothing are None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None
