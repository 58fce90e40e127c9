"""Facts written down, so that a test says only what matters to it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.strategies.contract import (
    Amounts,
    ControllerRef,
    LearnedOutcomes,
    NodeCondition,
    Nominated,
    PodGrant,
    PodOnNode,
    Predicted,
    RecentPlacement,
    RequestingContainers,
    RequestingPod,
    Stamped,
    Unknown,
)

NOT_LEARNED = Unknown("what the rule has learned", "is not known here")
DAEMONS = ("DaemonSet", "Node")


@dataclass(frozen=True)
class Pod:
    namespace: str = "ml"
    name: str = "train"
    uid: str = "u-train"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    controller: ControllerRef | None = None
    request: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    expected: Mapping[str, Predicted] = field(default_factory=dict)
    priority: int = 0
    nominated: str = ""
    granted_uid: str = ""
    askers_of: Mapping[str, RequestingContainers] = field(default_factory=dict)

    def requesting_containers(self, resource: str) -> RequestingContainers:
        return self.askers_of.get(resource, RequestingContainers(containers=1 if self.request.get(resource) else 0))

    def predicted(self, resource: str) -> Predicted:
        return self.expected.get(resource, Predicted())


@dataclass(frozen=True)
class OnNode:
    namespace: str = "kube-system"
    name: str = "agent-x"
    uid: str = "u-agent-x"
    labels: Mapping[str, str] = field(default_factory=dict)
    controller: ControllerRef | None = None
    phase: str = "Running"
    ready: bool = True
    ready_since: int | None = 0
    deleting: bool = False
    placed_at: int = 0
    request: Amounts = field(default_factory=dict)
    expected: Mapping[str, Predicted] = field(default_factory=dict)


class UnmeasuredPods:
    """Pods that a measurement cannot contain yet."""

    def __init__(self, pods: Sequence[OnNode]) -> None:
        self._pods = pods

    def request(self, resource: str) -> float:
        return sum((pod.request.get(resource, 0.0) for pod in self._pods), 0.0)

    def predicted(self, resource: str) -> Predicted:
        parts = [pod.expected.get(resource, Predicted()) for pod in self._pods]
        return Predicted(
            sum((one.limits for one in parts), 0.0),
            sum((one.requests for one in parts), 0.0),
            sum(one.unsaid for one in parts),
        )


@dataclass(frozen=True)
class Node:
    name: str = "n1"
    uid: str = "u-n1"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created: int | None = 0
    pods: Sequence[OnNode] = ()
    conditions: Mapping[str, NodeCondition] = field(default_factory=dict)
    stamps: Mapping[tuple[Stamped, str], int] = field(default_factory=dict)
    values: Mapping[str, float | Unknown] = field(default_factory=dict)
    measured_at: Mapping[str, int] = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    unlimited: Mapping[str, int] = field(default_factory=dict)
    granted: Sequence[PodGrant] = ()
    nominated: Sequence[Nominated] = ()
    unhealthy_texts: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    learned: LearnedOutcomes | Unknown = NOT_LEARNED

    def pods_requesting(self, resource: str) -> Sequence[RequestingPod]:
        return [
            RequestingPod(pod.uid, pod.request[resource], pod.deleting)
            for pod in self.pods
            if pod.request.get(resource, 0.0) > 0 and pod.phase not in ("Succeeded", "Failed")
        ]

    def cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        return compute()

    def unhealthy(self, namespace: str, prefix: str, key: str) -> str | Unknown:
        return self.unhealthy_texts.get((namespace, prefix, key), Unknown("the list", "is not read"))

    def controlled(self, namespace: str, controller: ControllerRef) -> Sequence[PodOnNode]:
        return [pod for pod in self.pods if pod.namespace == namespace and pod.controller == controller]

    def condition(self, kind: str) -> NodeCondition | None:
        return self.conditions.get(kind)

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        found = (self.labels if where == "labels" else self.annotations).get(key)
        if found is None or value not in (None, found):
            return None
        return self.stamps.get((where, key))

    def data(self, name: str) -> float | Unknown:
        return self.values.get(name, Unknown(f"data {name}", "is missing"))

    def unmeasured(self, name: str, lag_s: int) -> UnmeasuredPods:
        at = self.measured_at.get(name)
        return UnmeasuredPods([] if at is None else [pod for pod in self.pods if pod.placed_at > at - lag_s * 10**9])

    def placed(self, after: int) -> Sequence[RecentPlacement]:
        found = [
            RecentPlacement(pod.placed_at, pod, pod.request)
            for pod in self.pods
            if pod.placed_at > after and (pod.controller is None or pod.controller.kind not in DAEMONS)
        ]
        return sorted(found, key=lambda one: -one.at)

    def without(self, *uids: str) -> "Node":
        left = [pod for pod in self.pods if pod.uid not in uids]
        return replace(self, pods=left, granted=[one for one in self.granted if one.uid not in uids])


class Notes:
    """A trace that keeps what it is told."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.items: dict[str, dict[str, object]] = {}

    def note(self, **values: object) -> None:
        self.values |= values

    def item(self, name: str, /, **values: object) -> None:
        self.items.setdefault(name, {}).update(values)

    def mentions(self, value: object) -> bool:
        noted = [*self.values.values(), *(one for item in self.items.values() for one in item.values())]
        return any(one is value or (type(one) is type(value) and one == value) for one in noted)
