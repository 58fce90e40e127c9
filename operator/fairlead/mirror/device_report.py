"""Devices of nodes as plain data: what each has, what is granted of it and to whom. Pure.

The ledger tells what is granted; without one, annotations of the pods on the node do. Where both are there and differ,
the annotations are wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.grants.device_usage import DeviceUsage, PodGrant
from fairlead.grants.ledger import Ledger
from fairlead.mirror.pod_entry import PodEntry
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.charges import charges_on, foreign_pods_on, usage_with
from fairlead.strategies.devices.layout import NO_SUCH_DEVICE, Devices, layout_of, listed_as_unhealthy
from fairlead.strategies.devices.record import ShareGrant, differs, ids_in
from fairlead.strategies.facts import Unknown

ReportData = dict[str, Any]
PLACED: Final = "Placed"
BINDING: Final = "Binding"
LEDGER: Final = "Ledger"
ANNOTATIONS: Final = "Annotations"
NamedShares = Sequence[tuple[str, CompiledShare]]
"""Device shares with the name of their policy."""


def node_report(
    view: NodeView, placed: Iterable[PodEntry], ledger: Ledger | None, shares: NamedShares
) -> ReportData | None:
    """Return the devices of a node, who has what of them, and what is wrong; None if the node has none."""
    layouts, unknown = _layouts((share for _, share in shares), view)
    if not layouts and not unknown and (ledger is None or not _entries(ledger)):
        return None
    by_uid = {one.pod.uid or _name(one): one for one in placed}  # pods from files may have none
    resources = [resource for found, _ in layouts for resource in found]
    groups = [(found, devices, usage_with(devices, charges_on(view, found))) for found, devices in layouts]
    return {
        "node": view.name,
        "source": ANNOTATIONS if ledger is None else LEDGER,
        "devices": [row for group in groups for row in _devices(*group, view.granted)],
        "totals": [_total(one, devices, usage, view.granted) for found, devices, usage in groups for one in found],
        "pods": [*_pods(view.granted, by_uid, ledger)],
        "foreignPods": [*_foreign(resources, view, by_uid)],
        "differingAnnotations": [] if ledger is None else [*_differing(shares, ledger, by_uid)],
        "unknownLayouts": unknown,
        "missingDevices": [*_missing(layouts, view.granted)],
        "unreadableEntries": {} if ledger is None else {uid: one.why for uid, one in ledger.unreadable.items()},
        "newerEntries": {} if ledger is None else {uid: one.version for uid, one in ledger.newer.items()},
        "endedEntries": 0 if ledger is None else len(ledger.entries.keys() - {one.uid for one in view.granted}),
    }


def _name(placed: PodEntry) -> str:
    namespace, name = placed.key
    return f"{namespace or 'default'}/{name}"


def _entries(ledger: Ledger) -> set[str]:
    return {*ledger.entries, *ledger.unreadable, *ledger.newer}


def _layouts(
    shares: Iterable[CompiledShare], view: NodeView
) -> tuple[list[tuple[list[str], Devices]], list[ReportData]]:
    """Return the layout of each resource once, by the first policy that gives it one, and those that are unknown."""
    found, unknown, seen = list[tuple[list[str], Devices]](), list[ReportData](), set[str]()
    for share in shares:
        new = [one for one in share.entry.resources if one not in seen]
        devices = layout_of(share.entry, view) if new else ()
        if isinstance(devices, Unknown):
            listed = listed_as_unhealthy(share.entry, view) if devices is NO_SUCH_DEVICE else ""
            unknown.append({"resources": new, "why": f"{devices}: {listed}" if listed else str(devices)})
        elif devices:
            found.append((new, devices))
        if devices:
            seen.update(new)
    return found, unknown


def _granted(granted: Iterable[PodGrant], device: str, resource: str) -> int:
    return sum(one.amounts.get(resource, 0) for entry in granted for one in entry.grants or () if one.id == device)


def _devices(
    resources: Sequence[str], devices: Devices, usage: DeviceUsage, granted: Sequence[PodGrant]
) -> Iterator[ReportData]:
    for device in devices:
        for resource in resources:
            yield {
                "id": device.id,
                "resource": resource,
                "healthy": device.healthy,
                "capacity": device.capacity[resource],
                "granted": _granted(granted, device.id, resource),
                "free": usage.free(resource, device.id),
            }


def _total(resource: str, devices: Devices, usage: DeviceUsage, granted: Sequence[PodGrant]) -> ReportData:
    free = [max(0, usage.free(resource, one.id)) for one in devices if one.healthy]
    capacity = sum(one.capacity[resource] for one in devices)
    held = sum(one.amounts.get(resource, 0) for entry in granted for one in entry.grants or ())
    return {
        "resource": resource,
        "devices": len(devices),
        "unhealthy": sum(not one.healthy for one in devices),
        "capacity": capacity,
        "granted": held,
        "grantedPercent": _percent(held, capacity),
        "free": sum(free),
        "largestFree": max(free, default=0),
    }


def _percent(part: int, of: int) -> float:
    return round(100.0 * part / of, 1) if of else 0.0


def sum_of(totals: Iterable[ReportData]) -> list[ReportData]:
    """Return what the totals of nodes add up to, by resource."""
    found: dict[str, ReportData] = {}
    for one in totals:
        before = found.get(one["resource"])
        if before is None:
            found[one["resource"]] = {**one, "nodes": 1}
            continue
        for key in ("devices", "unhealthy", "capacity", "granted", "free"):
            before[key] += one[key]
        before["nodes"] += 1
        before["grantedPercent"] = _percent(before["granted"], before["capacity"])
        before["largestFree"] = max(before["largestFree"], one["largestFree"])
    return [*found.values()]


def _pods(granted: Iterable[PodGrant], placed: Mapping[str, PodEntry], ledger: Ledger | None) -> Iterator[ReportData]:
    """Yield each device of each grant that counts."""
    entries = {} if ledger is None else ledger.entries
    for one in granted:
        entry, at = entries.get(one.uid), placed.get(one.uid)
        name = one.uid if at is None else _name(at)
        if entry is not None:
            name = entry.pod
        for grant in one.grants or ():
            yield {
                "pod": name,
                "uid": one.uid,
                "state": BINDING if at is None and ledger is not None else PLACED,
                "policy": "" if entry is None else entry.by,
                "device": grant.id,
                "amounts": {resource: amount for resource, amount in grant.amounts.items() if amount},
            }


def _foreign(resources: Iterable[str], view: NodeView, placed: Mapping[str, PodEntry]) -> Iterator[ReportData]:
    for resource in resources:
        for one in foreign_pods_on(view, resource):
            at = placed.get(one.uid)
            yield {"pod": "" if at is None else _name(at), "resource": resource, "amount": int(one.amount)}


def _differing(shares: NamedShares, ledger: Ledger, placed: Mapping[str, PodEntry]) -> Iterator[ReportData]:
    """Yield the pods on the node whose annotations say something else than the ledger."""
    for uid, at in placed.items():
        if (entry := ledger.entries.get(uid)) is None:
            if uid not in ledger.unreadable and uid not in ledger.newer:
                yield from _forged(shares, at)
            continue
        annotations = at.pod.metadata.annotations
        policies = entry.by.split(",")
        for policy, share in shares:
            if policy not in policies or (devices := entry.grant.get(share.entry.name)) is None:
                continue
            if differs([ShareGrant(share, devices)], annotations):
                yield {
                    "pod": entry.pod,
                    "ledger": [one.id for one in devices],
                    "annotations": ids_in(share, devices, annotations),
                }


def _forged(shares: NamedShares, at: PodEntry) -> Iterator[ReportData]:
    """Yield what annotations of a pod say that was granted nothing, once."""
    for _, share in shares:
        if (found := ids_in(share, (), at.pod.metadata.annotations)) is not None:
            yield {"pod": _name(at), "ledger": [], "annotations": found}
            return


def _missing(layouts: Iterable[tuple[Sequence[str], Devices]], granted: Sequence[PodGrant]) -> Iterator[str]:
    """Yield the devices that something was granted of and that are in no layout any more."""
    for resources, devices in layouts:
        known = {one.id for one in devices}
        named = {one.id for entry in granted for one in entry.grants or () if any(map(one.amounts.get, resources))}
        yield from sorted(named - known)
