"""Filter and score by the devices of a node."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from fairlead.grants.device_usage import DeviceAsk, DeviceUsage
from fairlead.strategies.contract import (
    ANNOTATIONS,
    PASS,
    CompiledShare,
    Decide,
    Filter,
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Reject,
    Score,
    Trace,
    Unknown,
    Value,
    Verdict,
)
from fairlead.strategies.devices.charges import foreign_pods_on
from fairlead.strategies.devices.choice import (
    REASONS,
    RESOLVABLE,
    SEVERAL_CONTAINERS,
    Refusal,
    chosen_from,
    devices_with_room,
    need_of,
    refused_by_plugin,
    usage_for,
)
from fairlead.strategies.devices.layout import Device, Devices, layout_of, listed_as_unhealthy
from fairlead.strategies.facts import Nominated
from fairlead.strategies.reads import Path

DeviceObjective = Literal["Pack", "Spread"]
_REJECTIONS: Final = {reason: Reject(reason, reason in RESOLVABLE) for reason in REASONS}
_POD: Final[frozenset[Path]] = frozenset({("spec", "priority"), ("status", "nominatedNodeName")})


class _Fitting(NamedTuple):
    """Devices of a node that have room for a pod, or why there are too few."""

    devices: list[Device] | Refusal
    usage: DeviceUsage


_Judge = Callable[[NodeFacts, Trace | None], "_Fitting | Unknown"]


def device_filter(share: CompiledShare) -> Filter:
    """Compile the filter that passes nodes on which devices have room for the pod."""

    def for_pod(pod: PodFacts) -> Decide:
        need = need_of(share, pod)
        if need is None or isinstance(need, Unknown):
            always: Verdict = PASS if need is None else need
            return lambda *_: always
        if refused_by_plugin(share, pod):
            return lambda *_: _REJECTIONS[SEVERAL_CONTAINERS]
        judge = _judge(share, pod, need)

        def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Verdict:
            found = judge(node, trace)
            if isinstance(found, Unknown):
                return found
            return _REJECTIONS[found.devices.reason] if isinstance(found.devices, Refusal) else PASS

        return one

    return Filter(reads=_reads(share), for_pod=for_pod, reasons=REASONS, resolvable=True)


def device_score(share: CompiledShare, objective: DeviceObjective) -> Score:
    """Compile the score that prefers nodes by how full the devices are that the pod would get."""
    first = share.entry.resources[0]

    def for_pod(pod: PodFacts) -> NodeScorer[NodeFacts]:
        need = need_of(share, pod)
        if need is None or isinstance(need, Unknown):
            always: Value = 0.0 if need is None else need
            return lambda *_: always
        judge = _judge(share, pod, need)

        def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
            found = judge(node, trace)
            if isinstance(found, Unknown):
                return found
            if isinstance(found.devices, Refusal):
                return 0.0
            chosen = chosen_from(found.devices, found.usage, need, share.entry.choose, first)
            fill = sum(_fill(device, found.usage, first, need) for device in chosen) / len(chosen)
            if trace is not None:
                trace.note(objective=objective, fill=fill)
            return 100.0 * (fill if objective == "Pack" else 1.0 - fill)

        return one

    return Score(reads=_reads(share), for_pod=for_pod)


def _judge(share: CompiledShare, pod: PodFacts, need: DeviceAsk) -> _Judge:
    entry, nominated_to, priority, own = share.entry, pod.nominated, pod.priority, pod.granted_uid or None
    first = entry.resources[0]

    def judge(node: NodeFacts, trace: Trace | None) -> _Fitting | Unknown:
        if trace is not None:
            _note_node(share, node, trace)
        devices = layout_of(entry, node)
        if isinstance(devices, Unknown):
            return devices
        waiting = [one for one in node.nominated if one.pod.priority >= priority]
        if own is None and nominated_to and nominated_to == node.name:
            waiting = [*_without_itself(share, waiting, need, priority)]
        usage = usage_for(share, devices, node, waiting, own)
        found = devices_with_room(node, devices, usage, need)
        if trace is not None:
            _note_usage(devices, usage, found, need, first, trace)
            trace.note(nominatedPods=len(waiting))
            if not isinstance(found, Refusal):
                chosen = chosen_from(found, usage, need, entry.choose, first)
                trace.note(chosen=", ".join(device.id for device in chosen))
        return _Fitting(found, usage)

    return judge


def _without_itself(
    share: CompiledShare, waiting: Sequence[Nominated], need: DeviceAsk, priority: int
) -> Iterator[Nominated]:
    """Yield the nominated pods without one that is like the pod.

    Verdicts are for a class of pods, of which no one knows its own name. Pods of a class that are nominated to one node
    need the same.
    """
    is_left_out = False
    for one in waiting:
        if not is_left_out and one.pod.priority == priority and need_of(share, one.pod) == need:
            is_left_out = True
        else:
            yield one


def _fill(device: Device, usage: DeviceUsage, first: str, need: DeviceAsk) -> float:
    capacity = device.capacity[first]
    return (usage.charged[first][device.id] + need.each.get(first, 0)) / capacity if capacity else 1.0


def _reads(share: CompiledShare) -> Reads:
    entry = share.entry
    resources = frozenset(entry.resources)
    node: set[Path] = {("metadata", "name")}
    if entry.layout.annotation is not None:
        node.add((*ANNOTATIONS, entry.layout.annotation))
    if entry.unhealthy is not None and entry.unhealthy.annotation is not None:
        node.add((*ANNOTATIONS, entry.unhealthy.annotation))
    by_count = entry.layout.count is not None
    return share.reads | Reads(
        pod=_POD,
        request=resources,
        node=frozenset(node),
        capacity=resources | {entry.layout.count} if entry.layout.count is not None else frozenset(),
        allocatable=resources if by_count else frozenset(),
        devices=resources,
    )


def _note_node(share: CompiledShare, node: NodeFacts, trace: Trace) -> None:
    entry = share.entry
    if entry.layout.count is not None:
        trace.item(entry.layout.count, capacity=node.capacity.get(entry.layout.count))
        for name in entry.resources:
            trace.item(name, capacity=node.capacity.get(name), allocatable=node.allocatable.get(name))
    if entry.layout.annotation is not None:
        trace.note(layout=node.annotations.get(entry.layout.annotation))
    if entry.unhealthy is not None and entry.unhealthy.annotation is not None:
        trace.note(unhealthy=node.annotations.get(entry.unhealthy.annotation))
    elif entry.unhealthy is not None:
        trace.note(unhealthy=listed_as_unhealthy(entry, node) or None)
    foreign = {pod.uid for name in entry.resources for pod in foreign_pods_on(node, name)}
    trace.note(foreignPods=len(foreign))


def _note_usage(
    devices: Devices,
    usage: DeviceUsage,
    outcome: Sequence[Device] | Refusal,
    need: DeviceAsk,
    first: str,
    trace: Trace,
) -> None:
    fitting = {device.id for device in outcome} if not isinstance(outcome, Refusal) else set[str]()
    for device in devices:
        fits = device.id in fitting or (device.healthy and usage.has_room(device.id, need.each))
        amounts = dict[str, int]()
        for name, capacity in device.capacity.items():
            of_name = f" {name}" if len(device.capacity) > 1 else ""
            amounts |= {f"free{of_name}": usage.free(name, device.id), f"capacity{of_name}": capacity}
        trace.item(f"device {device.id}", **amounts, healthy=device.healthy, fits=fits)
    largest = max((usage.free(first, device.id) for device in devices if device.healthy), default=None)
    wanted = {f"each {name}": amount for name, amount in need.each.items()}
    trace.note(devices=need.devices, **wanted, largestFree=largest)
