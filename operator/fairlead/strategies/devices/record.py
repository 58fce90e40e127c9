"""Annotations that tell a pod's containers and device plugins what was granted.

They are copies: what holds is in the ledger. They are read back only where a ledger begins, and to show where a copy
differs from the ledger.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from fairlead.api.devices import DeviceShare
from fairlead.grants.device_usage import DeviceAsk
from fairlead.grants.entry import COPY, Grant, GrantedDevice, decode_copy, ids_key, ids_of
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.choice import claims_of, need_of, need_with
from fairlead.strategies.facts import Amounts, PodFacts

GPUSHARE: Final = "ALIYUN_COM_GPU_MEM_"
ASSIGNED: Final = f"{GPUSHARE}ASSIGNED"
"""Annotation that the gpushare plugin sets to `true` when it has given the pod its device."""
ASSUME_TIME: Final = f"{GPUSHARE}ASSUME_TIME"
_RECORDED: Final = frozenset({COPY, ASSIGNED, f"{GPUSHARE}IDX", f"{GPUSHARE}POD"})
_TEXT_MAX: Final = 65_536
_DIGITS_MAX: Final = 19
_TAKEN_PHASES: Final = ("Running", "Succeeded", "Failed")


class ShareGrant(NamedTuple):
    """Devices that a pod was granted by an entry of `binding.deviceShare`."""

    share: CompiledShare
    devices: tuple[GrantedDevice, ...]


def gpushare_annotations(device: GrantedDevice, entry: DeviceShare, size: int, assumed_at: int) -> dict[str, str]:
    """Return the annotations for the gpushare plugin; `size` is what the device has of the first resource."""
    return {
        f"{GPUSHARE}IDX": device.id,
        f"{GPUSHARE}POD": str(device.amounts[entry.resources[0]]),
        f"{GPUSHARE}DEV": str(size),
        ASSIGNED: "false",
        ASSUME_TIME: str(assumed_at),
    }


def assumed_at(annotations: Mapping[str, str]) -> int:
    """Return the time in nanoseconds that annotations for the gpushare plugin name; 0 if they name none."""
    return _number(annotations.get(ASSUME_TIME, "")) or 0


def recorded_in(entry: DeviceShare) -> frozenset[str]:
    """Return the annotations of placed pods that are read for an entry."""
    if entry.record == "Fairlead":
        return frozenset({COPY, ids_key(entry.name)})
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
    return found if found is not None and need is not None and need.each and _fits(found, need) else None


def grants_in(entry: DeviceShare, annotations: Mapping[str, str]) -> tuple[GrantedDevice, ...] | None:
    """Return the grants of an entry that annotations record; None if they record none or cannot be read."""
    if entry.record == "Fairlead":
        return _of_fairlead(annotations.get(COPY, ""), entry.name, entry.resources)
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
    return found if isinstance(need, DeviceAsk) and found is not None and _fits(found, need) else None


def recorded_by_shares(shares: Iterable[CompiledShare], pod: PodFacts) -> Grant:
    """Return the grants by device shares that a placed pod's annotations record, if they are what the pod asks for."""
    return together((one.entry, recorded_grants(one, pod)) for one in shares)


def together(recorded: Iterable[tuple[DeviceShare, tuple[GrantedDevice, ...] | None]]) -> Grant:
    """Return the grants by those entries of device shares that one pod can be granted together, in their order."""
    grant, taken = dict[str, tuple[GrantedDevice, ...]](), set[str]()
    for entry, devices in recorded:
        if devices is not None and taken.isdisjoint(claims := claims_of(entry)):
            taken |= claims
            grant[entry.name] = devices
    return grant


def differs(granted: Sequence[ShareGrant], annotations: Mapping[str, str]) -> bool:
    """Report whether the annotations of a pod say something else than the ledger."""
    return any(
        share.entry.record == "Fairlead" and annotations.get(ids_key(share.entry.name), "") != ids_of(grants)
        for share, grants in granted
    ) or any(_by_id(grants_in(share.entry, annotations) or ()) != _by_id(grants) for share, grants in granted)


def ids_in(share: CompiledShare, granted: Iterable[GrantedDevice], annotations: Mapping[str, str]) -> list[str] | None:
    """Return the ids of devices that annotations tell, if one of them differs from what was granted that one's."""
    if share.entry.record == "Fairlead":
        told = annotations.get(ids_key(share.entry.name))
        if told is not None and told != ids_of(granted):
            return told.split(",")
    found = grants_in(share.entry, annotations)
    return None if found is None else [one.id for one in found]


def _by_id(grants: Iterable[GrantedDevice]) -> dict[str, dict[str, int]]:
    return {grant.id: {name: amount for name, amount in grant.amounts.items() if amount} for grant in grants}


def _fits(grants: Sequence[GrantedDevice], need: DeviceAsk) -> bool:
    by_id = _by_id(grants)
    return len(grants) == len(by_id) == need.devices and all(amounts == need.each for amounts in by_id.values())


def _of_fairlead(text: str, name: str, resources: Collection[str]) -> tuple[GrantedDevice, ...] | None:
    grant = decode_copy(text) if 0 < len(text) <= _TEXT_MAX else None
    devices = None if grant is None else grant.get(name)
    if devices is None:
        return None
    # Others may have written more than the resources of the entry.
    return tuple(
        GrantedDevice(one.id, {key: one.amounts[key] for key in resources if key in one.amounts}) for one in devices
    )


def _number(text: str) -> int | None:
    """Return a number as the gpushare extender writes it; -1 and others that mean nothing are None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None
