"""Filters of kube-scheduler 1.37: whether a node has capacity for a pod and admits it.

Its plugins NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts and NodeResourcesFit, with their
messages, and its node selectors and tolerations. They need only the pod, the node and the node's pods; whatever needs
more is `NOT_SIMULATED`.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.policy.affinity.label_requirement import Labels, node_selection
from fairlead.policy.affinity.published_parts import PublishedOfPod, PublishedPart
from fairlead.policy.explain.units import is_in_bytes
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.facts import Amounts

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
PREEMPTION: Final = "preemption"
NOT_SIMULATED: Final = (
    "affinity between pods",
    "topology spread",
    "volumes",
    "resource claims",
    "other pods of a group",
    "the scheduler's own scores",
    PREEMPTION,
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
    policies: tuple[str, ...] = ()
    """Policies that publish node affinity which rejects it."""
    by_terms: bool = False
    """True if required node affinity rejects it, and the pod's nodeSelector does not."""

    @property
    def reason(self) -> str:
        """The message, with the policies that publish what rejects the node."""
        return f"{self.what}, published by {' and '.join(self.policies)}" if self.policies else self.what

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


_COLUMNS: Final = 512
_AFFINITY: Final = "node(s) didn't match Pod's node affinity/selector"
FitFailures = tuple[FitFailure, ...]
FITS: Final[FitFailures] = ()


class SchedulerFilter(NamedTuple):
    """One filter for one pod; pods with the same key get the same results."""

    key: Hashable
    judge: Callable[[NodeView], FitFailures]
    of_pods: bool = False
    """True if the result depends on the node's pods."""


class FitColumns:
    """Failures to fit, by filter and node. A pod that has a node, its home, is removed from it while it is judged."""

    def __init__(self, nodes: Nodes, names: Sequence[str]) -> None:
        self._nodes: Final = nodes
        self._names: Final = names
        self._at: Final = {name: at for at, name in enumerate(names)}
        self._kept: Final[dict[Hashable, list[FitFailures]]] = {}
        self._outdated: Final[dict[Hashable, str]] = {}
        """By filter, the node that was judged without one of its pods."""

    def unfit(self, filters: Sequence[SchedulerFilter], home: str) -> Sequence[FitFailures]:
        """Return for each node why the scheduler itself rejects it; `home` is "" for a pod that has no node."""
        columns = [column for column in [self._column(one, home) for one in filters] if any(column)]
        if not columns:
            return [FITS] * len(self._names)
        return columns[0] if len(columns) == 1 else [sum(row, FITS) for row in zip(*columns, strict=True)]

    def _column(self, check: SchedulerFilter, home: str) -> Sequence[FitFailures]:
        kept = self._kept.get(check.key)
        is_other = bool(home) and check.of_pods
        if kept is None:
            kept = [check.judge(view) for name in self._names if (view := self._nodes.view_of(name)) is not None]
            if len(self._kept) >= _COLUMNS:
                self._kept.clear()
            self._kept[check.key] = kept
            if is_other:
                self._outdated[check.key] = home
            return kept
        if (outdated := self._outdated.get(check.key, "")) not in ("", home):
            self._judge(check, outdated, kept)
            del self._outdated[check.key]
        if is_other:
            kept = [*kept]
            self._judge(check, home, kept)
        return kept

    def _judge(self, check: SchedulerFilter, name: str, column: list[FitFailures]) -> None:
        """Judge one node again, as it is now."""
        if (view := self._nodes.view_of(name)) is not None:
            column[self._at[name]] = check.judge(view)


def filters_for(pod: PodView, *, named: bool = True, published: PublishedOfPod | None = None) -> list[SchedulerFilter]:
    """Return the filters for a pod in the scheduler's order; it stops at the first that fails.

    `named`: nodeName is a constraint, unless a scheduler has set it. `published` is the published part of
    its node affinity.
    """
    spec = pod.pod.spec
    filters = [_name(str(spec.nodeName))] if named and spec.nodeName and not was_bound(pod.pod) else []
    filters.append(_taints(spec.tolerations))
    required = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if spec.nodeSelector or required:
        filters.append(_affinity(spec.nodeSelector, required, published.parts if published else ()))
    if ports := sorted(set(_host_ports(pod.pod))):
        filters.append(_ports(ports))
    filters.append(_resources(pod.request))
    return filters


def unsimulated_constraints(pod: Any, *, is_of_group: bool = False) -> Iterator[str]:
    """Yield the constraints of a pod that are not simulated; `is_of_group`: by a policy."""
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
    if spec.schedulingGroup or is_of_group:
        yield "other pods of a group"


def was_bound(pod: Any) -> bool:
    """Return whether a scheduler placed the pod, and not its author."""
    return any(one.type == "PodScheduled" and one.status == "True" for one in pod.status.conditions)


def _taints(tolerations: Sequence[Any]) -> SchedulerFilter:
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

    return SchedulerFilter(("taints", _tolerations(tolerations)), judge)


def _tolerations(tolerations: Sequence[Any]) -> Hashable:
    return tuple(sorted({(one.key, one.operator, one.value, one.effect) for one in tolerations}))


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}{f'={value}' if value else ''}:{effect}"


def _name(name: str) -> SchedulerFilter:
    other = (FitFailure("node(s) didn't match the requested node name", f"spec.nodeName is {name}"),)
    return SchedulerFilter(("name", name), lambda view: FITS if view.name == name else other)


def _affinity(selector: Labels, required: Any, published: Sequence[PublishedPart]) -> SchedulerFilter:
    matches, key = node_selection(selector, required)
    chosen, _ = node_selection(selector, None)
    known: dict[tuple[tuple[str, ...], bool], FitFailures] = {}

    def judge(view: NodeView) -> FitFailures:
        labels = view.labels
        if matches(labels, view.name):
            return FITS
        by = tuple([one.policy for one in published if not one.selects(labels)]), chosen(labels, view.name)
        return known.get(by) or known.setdefault(by, (FitFailure(_AFFINITY, key, policies=by[0], by_terms=by[1]),))

    return SchedulerFilter(("affinity", key, tuple(published)), judge)


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


def _ports(wanted: Sequence[HostPort]) -> SchedulerFilter:
    def judge(view: NodeView) -> FitFailures:
        for pod in view.pods:
            for number, protocol, address in _host_ports(pod):
                for mine, its, where in wanted:
                    if (mine, its) == (number, protocol) and (address == where or _ANY in (address, where)):
                        said = f"{protocol} {number} is taken by {pod.namespace}/{pod.name}"
                        return (FitFailure("node(s) didn't have free ports for the requested pod ports", said),)
        return FITS

    return SchedulerFilter(("ports", tuple(wanted)), judge, of_pods=True)


def _resources(request: Amounts) -> SchedulerFilter:
    wanted = sorted((name, amount) for name, amount in request.items() if amount > 0.0)
    known: dict[tuple[str, float], FitFailure] = {}

    def judge(view: NodeView) -> FitFailures:
        free = view.free
        lacking = [(name, free.get(name, 0.0)) for name, amount in wanted if free.get(name, 0.0) < amount]
        return tuple([known.get(one) or known.setdefault(one, _lacks(*one, request[one[0]])) for one in lacking])

    return SchedulerFilter(("resources", tuple(wanted)), judge, of_pods=True)


def _lacks(name: str, free: float, value: float) -> FitFailure:
    if name == "pods":
        return FitFailure("Too many pods", "no capacity for another pod")
    free = max(free, 0.0)
    said = f"requests {amount(name, value)}, {amount(name, free)} is free"
    return FitFailure(f"Insufficient {name}", said, 1.0 - free / value)


_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount(name: str, value: float) -> str:
    """Return an amount as people write it: 250m, 1.5, 16Gi."""
    if name == "cpu" and value < 1 and value:
        return f"{value * 1000:.10g}m"
    if is_in_bytes(name):
        for unit, size in _UNITS:
            if abs(value) >= size:
                return f"{value / size:.4g}{unit}"
    return f"{value:.10g}"


def tolerates(tolerations: Sequence[Any], key: str, value: str, effect: str) -> bool:
    """Return whether a toleration matches a taint."""
    return any(_tolerates(one, key, value, effect) for one in tolerations)


def _tolerates(toleration: Any, key: str, value: str, effect: str) -> bool:
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    if toleration.operator == "Exists":
        return True
    # Without a key only `Exists` works. Lt and Gt are behind a feature gate that is off.
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == value
