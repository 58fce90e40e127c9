"""Text of `fairlead devices`. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from fairlead.cli.console.output import clean, columns, pluralize
from fairlead.mirror.device_report import ANNOTATIONS, ReportData

_TOTAL: Final = ("DEVICES", "CAPACITY", "GRANTED", "FREE", "LARGEST FREE")
_DEVICE: Final = ("DEVICE", "RESOURCE", "CAPACITY", "GRANTED", "FREE", "HEALTHY")
_POD: Final = ("POD", "DEVICE", "GRANTED", "STATE", "POLICY")
_UNREADABLE_CURE: Final = "the next grant on the node removes it once that pod has ended or is gone"
_NO_POLICY: Final = "no policy shares devices (binding.deviceShare)"
_NO_DEVICE: Final = "no node has devices that a policy shares"


def cluster_lines(report: ReportData, *, shares: bool) -> Iterator[str]:
    """Yield a line for each node and resource, the totals of the cluster, and what is wrong."""
    if not shares:
        yield _NO_POLICY
        return
    if not report["nodes"]:
        yield _NO_DEVICE
        return
    rows: list[Sequence[str]] = [("NODE", "RESOURCE", *_TOTAL)]
    rows += [(node["node"], one["resource"], *_amounts(one)) for node in report["nodes"] for one in node["totals"]]
    rows += [(f"all {one['nodes']}", one["resource"], *_amounts(one)) for one in report["totals"] if one["nodes"] > 1]
    yield from columns(rows)
    yield from _remarks(report["nodes"])


def node_lines(report: ReportData) -> Iterator[str]:
    """Yield the devices of one node, who has what of them, and what is wrong."""
    if not report["nodes"]:
        yield _NO_DEVICE.replace("no node has", "the node has no")
        return
    (node,) = report["nodes"]
    rows: list[Sequence[str]] = [_DEVICE]
    rows += [
        (one["id"], one["resource"], *_numbers(one, "capacity", "granted", "free"), "yes" if one["healthy"] else "no")
        for one in node["devices"]
    ]
    yield from columns(rows)
    yield ""
    rows = [("RESOURCE", *_TOTAL), *((one["resource"], *_amounts(one)) for one in node["totals"])]
    yield from columns(rows)
    if node["pods"]:
        yield ""
        rows = [_POD]
        for one in node["pods"]:
            amounts = ", ".join(f"{amount} {resource}" for resource, amount in one["amounts"].items())
            rows.append((one["pod"], one["device"], amounts, one["state"], one["policy"]))
        yield from columns(rows)
    yield from _remarks([node])


def _amounts(total: ReportData) -> tuple[str, ...]:
    granted = f"{total['granted']} ({total['grantedPercent']:.0f}%)"
    return (*_numbers(total, "devices", "capacity"), granted, *_numbers(total, "free", "largestFree"))


def _numbers(report: ReportData, *keys: str) -> Iterator[str]:
    yield from (str(report[key]) for key in keys)


def _remarks(nodes: Iterable[ReportData]) -> Iterator[str]:
    found = [clean(f"{node['node']}: {text}") for node in nodes for text in _remarks_on(node)]
    if found:
        yield ""
        yield from found


def _remarks_on(node: ReportData) -> Iterator[str]:
    for one in node["unknownLayouts"]:
        yield f"no share of {', '.join(one['resources'])} is granted: {one['why']}"
    if sick := sorted({one["id"] for one in node["devices"] if not one["healthy"]}):
        yield f"unhealthy: {', '.join(sick)}"
    if missing := node["missingDevices"]:
        yield f"granted, but not in the layout: {', '.join(missing)}; this is charged to every device"
    for one in node["foreignPods"]:
        yield f"{one['pod']} was granted no {one['resource']}: its {one['amount']} are charged to every device"
    for one in node["differingAnnotations"]:
        told, held = _ids(one["annotations"]), _ids(one["ledger"])
        yield f"annotations of {one['pod']} are wrong: they say {told}, and it was granted {held}"
    for uid, why in node["unreadableEntries"].items():
        yield f"the entry of pod {uid} cannot be read: {why}; {_UNREADABLE_CURE}"
    for uid, version in node["newerEntries"].items():
        cure = "nothing is granted here until that pod has ended or is gone, or all replicas run that version"
        yield f"the entry of pod {uid} was written by a newer version of Fairlead (format {version}): {cure}"
    if count := node["endedEntries"]:
        yield f"{pluralize(count, 'entry', 'entries')} of pods that ended or are gone, which the next write removes"
    if node["source"] == ANNOTATIONS and node["pods"]:
        yield "without a ledger; this is what annotations of its pods say"


def _ids(ids: Sequence[Any] | None) -> str:
    return "nothing" if not ids else ", ".join(map(str, ids))
