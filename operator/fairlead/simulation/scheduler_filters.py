"""Filters of kube-scheduler 1.37: whether a node has capacity for a pod and admits it.

Its plugins NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts and NodeResourcesFit, with their
messages, and its node selectors and tolerations. They need only the pod, the node and the node's pods; whatever needs
more is `NOT_SIMULATED`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.policy.explain.units import is_in_bytes
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

    def __str__(self) -> str:
        return f"{self.what} ({self.detail})" if self.detail else self.what


FitFailures = tuple[FitFailure, ...]
FITS: Final[FitFailures] = ()


class SchedulerFilter(NamedTuple):
    """One filter for one pod; pods with the same key get the same results."""

    key: Hashable
    judge: Callable[[NodeView], FitFailures]
    of_pods: bool = False
    """True if the result depends on the node's pods."""


def filters_for(pod: PodView, *, named: bool = True) -> list[SchedulerFilter]:
    """Return the filters for a pod in the scheduler's order; it stops at the first that fails.

    `named`: nodeName is a constraint.
    """
    spec = pod.pod.spec
    filters = [_name(str(spec.nodeName))] if named and spec.nodeName else []
    filters.append(_taints(spec.tolerations))
    required = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if spec.nodeSelector or required:
        filters.append(_affinity(spec.nodeSelector, required))
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


def _affinity(selector: Mapping[str, str], required: Any) -> SchedulerFilter:
    matches, key = node_affinity(selector, required)
    other = (FitFailure("node(s) didn't match Pod's node affinity/selector", key),)
    return SchedulerFilter(("affinity", key), lambda view: FITS if matches(view.labels, view.name) else other)


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


Labels = Mapping[str, str]
Matches = Callable[[Labels, str], bool]
"""Predicate of a node's labels and name."""
_OPERATORS: Final = {"Exists": "", "DoesNotExist": "!"}


def node_affinity(selector: Labels, required: Any) -> tuple[Matches, str]:
    """Return a predicate for the nodes that a pod selects, and its text."""
    exact = sorted(selector.items())
    written = [f"{key}={value}" for key, value in exact]
    if not required:
        return lambda labels, _: all(labels.get(key) == value for key, value in exact), ", ".join(written)
    terms = [one for one in map(_term, required.nodeSelectorTerms) if one is not None]
    written.append(" or ".join(text for _, text in terms) or "no term")

    def matches(labels: Labels, name: str) -> bool:
        return all(labels.get(key) == value for key, value in exact) and any(term(labels, name) for term, _ in terms)

    return matches, ", ".join(written)


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


def _term(term: Any) -> tuple[Matches, str] | None:
    """Return a term that needs all its requirements; None for one without any, which selects nothing."""
    labelled = [_requirement(one) for one in term.matchExpressions]
    named = [_requirement(one) for one in term.matchFields]
    if not labelled and not named:
        return None
    written = " and ".join([_text(one) for one in (*term.matchExpressions, *term.matchFields)])

    def matches(labels: Labels, name: str) -> bool:
        return all(one(labels) for one in labelled) and all(one({"metadata.name": name}) for one in named)

    return matches, written


def _requirement(value: Any) -> Callable[[Labels], bool]:
    key, values = str(value.key), frozenset(value.values)
    match value.operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case "Gt" | "Lt" if len(value.values) == 1:
            wanted, sign = _whole(value.values[0]), 1 if value.operator == "Gt" else -1

            def is_beyond(labels: Labels) -> bool:
                found = _whole(labels.get(key, ""))
                return wanted is not None and found is not None and (found - wanted) * sign > 0

            return is_beyond
    return lambda _: False  # the API server rejects other operators


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _text(value: Any) -> str:
    match value.operator:
        case "Exists" | "DoesNotExist":
            return f"{_OPERATORS[value.operator]}{value.key}"
        case "In" | "NotIn" if len(value.values) == 1:
            return f"{value.key}{'=' if value.operator == 'In' else '!='}{value.values[0]}"
        case "Gt" | "Lt":
            return f"{value.key} {'>' if value.operator == 'Gt' else '<'} {', '.join(value.values)}"
    return f"{value.key} {'in' if value.operator == 'In' else 'not in'} ({', '.join(sorted(value.values))})"
