"""Filters of kube-scheduler 1.37: whether a node has capacity for a pod and admits it.

Its plugins NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts and NodeResourcesFit, with their
messages. They need only the pod, the node and the node's pods; whatever needs more is `NOT_SIMULATED`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.policy.views.pod_and_node import Amounts, NodeView, PodView
from fairlead.simulation.node_selectors import node_affinity, tolerates

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_SIMULATED: Final = (
    "affinity between pods",
    "topology spread",
    "volumes",
    "resource claims",
    "other pods of a group",
    "the scheduler's own scores",
    "preemption",
)
"""What the scheduler also decides, and the simulation does not."""


class FitFailure(msgspec.Struct, frozen=True, gc=False):
    """Reason for which the scheduler rejects a node."""

    what: str
    """The scheduler's message, one of few, so that nodes can be counted by it."""
    detail: str = ""
    """The values that were compared."""
    shortfall: float = 1.0
    """Distance from fitting: the missing share of an amount."""

    def __str__(self) -> str:
        return f"{self.what} ({self.detail})" if self.detail else self.what


FitFailures = tuple[FitFailure, ...]
FITS: Final[FitFailures] = ()


class Check(NamedTuple):
    """One filter for one pod; pods with the same key get the same results."""

    key: Hashable
    judge: Callable[[NodeView], FitFailures]
    of_pods: bool = False
    """True if the result depends on the node's pods."""


def checks(pod: PodView, *, named: bool = True) -> list[Check]:
    """Return the filters for a pod in the scheduler's order; it stops at the first that fails.

    `named`: nodeName is a constraint.
    """
    spec = pod.pod.spec
    found = [_name(str(spec.nodeName))] if named and spec.nodeName else []
    found.append(_taints(spec.tolerations))
    required = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if spec.nodeSelector or required:
        found.append(_affinity(spec.nodeSelector, required))
    if ports := sorted(set(_host_ports(pod.pod))):
        found.append(_ports(ports))
    found.append(_resources(pod.request))
    return found


def unsimulated_constraints(pod: Any) -> Iterator[str]:
    """Yield the constraints of a pod that are not simulated."""
    spec = pod.spec
    affinity = spec.affinity
    if affinity.podAffinity or affinity.podAntiAffinity:
        yield "affinity between pods"
    if spec.topologySpreadConstraints:
        yield "topology spread"
    if any(one.persistentVolumeClaim or one.ephemeral or one.csi for one in spec.volumes):
        yield "volumes"
    if spec.resourceClaims:
        yield "resource claims"
    if spec.schedulingGroup:
        yield "other pods of a group"


def _taints(tolerations: Sequence[Any]) -> Check:
    known: dict[tuple[tuple[str, str, str], ...], FitFailures] = {}
    cordoned = (FitFailure("node(s) were unschedulable", "it is cordoned"),)
    may_cordoned = tolerates(tolerations, UNSCHEDULABLE, "", "NoSchedule")

    def judge(view: NodeView) -> FitFailures:
        spec = view.node.spec
        if spec.unschedulable and not may_cordoned:
            return cordoned
        if not spec.taints:
            return FITS
        key = tuple([(one.key, one.value, one.effect) for one in spec.taints])
        if key not in known:
            bad = [one for one in key if one[2] in ("NoSchedule", "NoExecute") and not tolerates(tolerations, *one)]
            known[key] = tuple([FitFailure("node(s) had untolerated taint(s)", _taint(*one)) for one in bad])
        return known[key]

    return Check(("taints", _tolerations(tolerations)), judge)


def _tolerations(tolerations: Sequence[Any]) -> Hashable:
    return tuple(sorted({(one.key, one.operator, one.value, one.effect) for one in tolerations}))


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}{f'={value}' if value else ''}:{effect}"


def _name(name: str) -> Check:
    other = (FitFailure("node(s) didn't match the requested node name", f"spec.nodeName is {name}"),)
    return Check(("name", name), lambda view: FITS if view.name == name else other)


def _affinity(selector: Mapping[str, str], required: Any) -> Check:
    matches, key = node_affinity(selector, required)
    other = (FitFailure("node(s) didn't match Pod's node affinity/selector", key),)
    return Check(("affinity", key), lambda view: FITS if matches(view.labels, view.name) else other)


HostPort = tuple[int, str, str]
"""Port, protocol, address."""
_ANY: Final = "0.0.0.0"  # noqa: S104 - compared, never bound


def _host_ports(pod: Any) -> Iterator[HostPort]:
    spec = pod.spec
    sidecars = [one for one in spec.initContainers if getattr(one, "restartPolicy", "") == "Always"]
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.hostPort or (port.containerPort if getattr(spec, "hostNetwork", False) else 0)
            if number:
                yield int(number), str(port.protocol) or "TCP", str(port.hostIP) or _ANY


def _ports(wanted: Sequence[HostPort]) -> Check:
    def judge(view: NodeView) -> FitFailures:
        for pod in view.pods:
            for number, protocol, address in _host_ports(pod):
                for mine, its, where in wanted:
                    if (mine, its) == (number, protocol) and (address == where or _ANY in (address, where)):
                        said = f"{protocol} {number} is taken by {pod.namespace}/{pod.name}"
                        return (FitFailure("node(s) didn't have free ports for the requested pod ports", said),)
        return FITS

    return Check(("ports", tuple(wanted)), judge, of_pods=True)


def _resources(request: Amounts) -> Check:
    wanted = sorted((name, amount) for name, amount in request.items() if amount > 0.0)
    known: dict[tuple[str, float], FitFailure] = {}

    def judge(view: NodeView) -> FitFailures:
        free = view.free
        lacking = [(name, free.get(name, 0.0)) for name, amount in wanted if free.get(name, 0.0) < amount]
        return tuple([known.get(one) or known.setdefault(one, _lacks(*one, request[one[0]])) for one in lacking])

    return Check(("resources", tuple(wanted)), judge, of_pods=True)


def _lacks(name: str, free: float, asked: float) -> FitFailure:
    if name == "pods":
        return FitFailure("Too many pods", "no capacity for another pod")
    free = max(free, 0.0)
    said = f"requests {amount(name, asked)}, {amount(name, free)} is free"
    return FitFailure(f"Insufficient {name}", said, 1.0 - free / asked)


_BYTES: Final = ("memory", "ephemeral-storage")
_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount(name: str, value: float) -> str:
    """Return an amount as people write it: 250m, 1.5, 16Gi."""
    if name == "cpu" and value < 1 and value:
        return f"{value * 1000:.10g}m"
    if name in _BYTES or name.startswith("hugepages-"):
        for unit, size in _UNITS:
            if value >= size:
                return f"{value / size:.4g}{unit}"
    return f"{value:.10g}"
