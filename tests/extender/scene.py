"""A stage for one fact: a few nodes and pods that are only objects, and a real scheduler that calls the recorder.

Nothing runs on these nodes. The pods tolerate everything, since the node controller taints a node that no kubelet
reports.
"""

import datetime as dt
import re
from dataclasses import dataclass, field

from extender.recorder import Call, Recorder
from extender.stage import Stage
from testbed.api import Object, wait_for

_ATTEMPT = r'moved to an internal scheduling queue" pod="[^"]*/{}" event="ScheduleAttemptFailure" queue="(\w+)"'
_LABEL = "scene"
_NODES = "/api/v1/nodes"


@dataclass(slots=True, kw_only=True)
class Scene(Stage):
    """Nodes of its own, and the recorder."""

    recorder: Recorder
    nodes: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Take the nodes away: what runs next counts on its own."""
        self.api.delete(self.path)
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

    def bind(self, request: Object, **metadata: object) -> Object:
        """Bind: what the extender owes the scheduler; `metadata` goes to the Binding."""
        name, uid, node = (str(request[key]) for key in ("PodName", "PodUID", "Node"))
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid, **metadata}}
        self.api.create(f"{self.path}/{name}/binding", binding | {"target": target})
        return {"Error": ""}

    def called(self, path: str, *, pod: str, times: int = 1) -> list[Call]:
        """The calls of an entry's verb about a pod, once there are that many."""

        def enough() -> list[Call] | None:
            calls = self.recorder.of(path, pod=pod)
            return calls if len(calls) >= times else None

        return wait_for(f"{times} calls of {path} about {pod}", enough)

    def calls_when_parked(self, pod: str) -> int | None:
        """How often a pod was tried, if each attempt is over and the last one put it among the unschedulable."""
        queues = re.findall(_ATTEMPT.format(pod), self.log())
        calls = len(self.recorder.of("gate/filter", pod=pod))
        return calls if queues and queues[-1] == "Unschedulable" and len(queues) == calls else None

    def _is_settled(self) -> bool:
        """Whether nothing will change a node any more: each has lost the taints of a new one."""
        mine = [node for node in self.api.items(_NODES) if node["metadata"]["name"] in self.nodes]
        return not any(node["spec"].get("taints") for node in mine)
