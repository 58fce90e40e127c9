"""A stage for one fact: a few nodes and pods that are only objects, and a real scheduler that calls the recorder.

Nothing runs on these nodes: a pod counts as placed when it names a node, and a deleted one is gone at once, because it
is given no time to end. The pods tolerate everything, since the node controller taints a node that no kubelet reports.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from extender.recorder import Call, Recorder
from testbed.api import Api, Object, wait_for

URGENT = "urgent"
_LABEL = "scene"
_NODES, _CLASSES = "/api/v1/nodes", "/apis/scheduling.k8s.io/v1/priorityclasses"


@dataclass(slots=True)
class Scene:
    """Pods of one namespace, which is also the name of their scheduler."""

    api: Api
    name: str
    recorder: Recorder
    start_scheduler: Callable[[Object], Callable[[], str]]
    """Starts a scheduler and gives what reads its log."""
    log: Callable[[], str] = str
    nodes: list[str] = field(default_factory=list)

    def open(self) -> None:
        """Have what pods need before the first one is made."""
        account = f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
        wait_for("the namespace's service account", lambda: self.api.exists(account))
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        self.api.apply(f"{_CLASSES}/{URGENT}", {**kind, "metadata": {"name": URGENT}, "value": 1000})

    def close(self) -> None:
        """Take the nodes away: what runs next counts on its own."""
        self.api.delete(self._pods)
        self.api.delete(_NODES, labelSelector=f"{_LABEL}={self.name}")

    def make_nodes(self, count: int, *, cpu: str = "4", memory: str = "64Gi", pods: int = 110) -> list[str]:
        """Equal nodes `n1`, `n2` and so on, ready and without taints; before the scheduler, which then knows them."""
        names = [f"n{number}" for number in range(1, count + 1)]
        self.nodes += names
        capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)}
        # without a time, a node is taken for the one of its name that an earlier test left without a heartbeat
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        heartbeat = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **heartbeat}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        labels = {_LABEL: self.name}
        self.api.create_all(
            _NODES, [{"metadata": {"name": name, "labels": labels}, "status": status} for name in names]
        )
        wait_for("the controllers to have seen the nodes", self._is_settled)
        return names

    def start(self, *entries: Object, **config: object) -> None:
        """Start the scheduler with these entries of `extenders`."""
        self.log = self.start_scheduler({"profiles": [{"schedulerName": self.name}], "extenders": [*entries]} | config)

    def make_pod(self, name: str, *, on: str = "", cpu: str = "0", urgent: bool = False, **metadata: object) -> None:
        """A pod that waits for the scheduler, or that is `on` a node from the start; with these labels, annotations."""
        self.api.create(self._pods, self._pod(name, on=on, cpu=cpu, urgent=urgent, metadata=metadata))

    def make_pods(self, names: Iterable[str], *, on: str = "", cpu: str = "0", urgent: bool = False) -> None:
        """Equal pods."""
        self.api.create_all(self._pods, [self._pod(name, on=on, cpu=cpu, urgent=urgent, metadata={}) for name in names])

    def bind(self, request: Object, **metadata: object) -> Object:
        """Bind: what the extender owes the scheduler; `metadata` goes to the Binding."""
        name, uid, node = (str(request[key]) for key in ("PodName", "PodUID", "Node"))
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid, **metadata}}
        self.api.create(f"{self._pods}/{name}/binding", binding | {"target": target})
        return {"Error": ""}

    def pod(self, name: str) -> Object:
        """The pod as it is now."""
        return self.api.get(f"{self._pods}/{name}")

    def placed(self, name: str) -> str:
        """The node that the pod is placed on, once it is."""
        return wait_for(f"{name} to be placed", lambda: str(self.pod(name)["spec"].get("nodeName", "")) or None)

    def all_placed(self) -> list[str]:
        """The node of each pod, once all have one."""

        def nodes() -> list[str] | None:
            found = [pod["spec"].get("nodeName", "") for pod in self.api.items(self._pods)]
            return found if all(found) else None

        return wait_for("all pods to be placed", nodes)

    def refusal(self, name: str, reason: str = "Unschedulable") -> str:
        """Why the pod is not placed, once the scheduler says so for that reason."""

        def message() -> str | None:
            conditions = self.pod(name).get("status", {}).get("conditions", [])
            return next((str(one["message"]) for one in conditions if one.get("reason") == reason), None)

        return wait_for(f"{name} to be refused as {reason}", message)

    def events(self, name: str) -> set[tuple[str, str]]:
        """Reason and note of the pod's events, once there are any."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.name}/events"

        def notes() -> set[tuple[str, str]] | None:
            found = self.api.items(path, fieldSelector=f"regarding.name={name}")
            return {(str(one["reason"]), str(one["note"])) for one in found} or None

        return wait_for(f"an event about {name}", notes)

    def living(self) -> set[str]:
        """The pods that nobody deletes."""
        found = [pod["metadata"] for pod in self.api.items(self._pods)]
        return {str(metadata["name"]) for metadata in found if "deletionTimestamp" not in metadata}

    def called(self, path: str, *, pod: str, times: int = 1) -> list[Call]:
        """The calls of an entry's verb about a pod, once there are that many."""

        def enough() -> list[Call] | None:
            calls = self.recorder.of(path, pod=pod)
            return calls if len(calls) >= times else None

        return wait_for(f"{times} calls of {path} about {pod}", enough)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    def _pod(self, name: str, *, on: str, cpu: str, urgent: bool, metadata: Mapping[str, object]) -> Object:
        spec = {
            "schedulerName": self.name,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": on} if on else {}),
            **({"priorityClassName": URGENT} if urgent else {}),
        }
        return {"metadata": {"name": name, **metadata}, "spec": spec}

    def _is_settled(self) -> bool:
        """Whether nothing will change a node any more: each has lost the taints of a new one."""
        mine = [node for node in self.api.items(_NODES) if node["metadata"]["name"] in self.nodes]
        return not any(node["spec"].get("taints") for node in mine)
