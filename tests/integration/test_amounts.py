"""What the mirror says is requested on each node is what the real scheduler counts, whatever has become of the pods."""

import json
import random
import re
import signal
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from fairlead.mirror import decode as wire
from fairlead.mirror.mirror import PLACED, Mirror
from testbed import process
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster, Scheduler, StartScheduler

LABEL = "fairlead.dev/test-amounts"
FINALIZER = "fairlead.dev/test-amounts"
TRACE = "Dump of cached NodeInfo"
NODES = [f"amounts-{at}" for at in range(4)]
GPU = "example.org/gpu"
_NODES, _CLASSES = "/api/v1/nodes", "/apis/node.k8s.io/v1/runtimeclasses"
_NODE = re.compile(
    r"Node name: (?P<name>\S+)\s+Deleted: false\s+"
    r"Requested Resources: &\{(?P<requested>[^}]*)\}\s+"
    r"Allocatable Resources:\s*&\{(?P<allocatable>[^}]*)\}\s+"
    r"Scheduled Pods\(number: (?P<pods>\d+)\)"
)
_FIELD = re.compile(r"(?<!\S)(?P<field>[A-Z]\w+):(?P<amount>\d+)")
_SCALAR = re.compile(r"(?<=[\[ ])(?P<name>[a-z][^\s\[\]]*):(?P<amount>\d+)")
_CALLED = {"MilliCPU": "cpu", "Memory": "memory", "EphemeralStorage": "ephemeral-storage", "AllowedPodNumber": "pods"}


class Counted(NamedTuple):
    requested: Mapping[str, float]
    allocatable: Mapping[str, float]


def _container(name: str, **requests: str) -> Object:
    return {"name": name, "image": "example.org/none:1", "resources": {"requests": requests}}


def _sidecar(name: str, **requests: str) -> Object:
    return _container(name, **requests) | {"restartPolicy": "Always"}


_SPECS: Mapping[str, Object] = {
    "plain": {"containers": [_container("a", cpu="250m", memory="64Mi"), _container("b", cpu="1")]},
    "nothing": {"containers": [_container("a")]},
    "finely": {"containers": [_container("a", cpu="1m", memory="100"), _container("b", memory="1k")]},
    "others": {
        "containers": [
            {
                "name": "a",
                "image": "example.org/none:1",
                "resources": {"limits": {GPU: "2", "hugepages-2Mi": "4Mi", "cpu": "1", "ephemeral-storage": "1Gi"}},
            }
        ]
    },
    "init": {
        "initContainers": [_container("i", cpu="3"), _container("j", memory="1Gi")],
        "containers": [_container("a", cpu="500m", memory="32Mi")],
    },
    "sidecars": {
        "initContainers": [
            _container("i", cpu="2"),
            _sidecar("s", cpu="700m"),
            _container("j", cpu="2"),
            _sidecar("t"),
        ],
        "containers": [_container("a", cpu="1")],
    },
    "overhead": {"runtimeClassName": LABEL.partition("/")[2], "containers": [_container("a", cpu="100m")]},
    "whole": {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}, "containers": [_container("a", cpu="1")]},
}


class Ground:
    """A few nodes that are only objects, and pods on them; whoever resizes and ends them is this test."""

    def __init__(self, api: Api, namespace: str, version: str) -> None:
        self.api, self.namespace = api, namespace
        self.counts_otherwise = version.startswith(("1.33.", "1.34.", "1.35.", "1.36."))
        self.random = random.Random(1)  # noqa: S311
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.mirror = Mirror(lambda: 0)
        self.seen: set[tuple[str, str]] = set()

    def make_nodes(self) -> None:
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "200", "ephemeral-storage": "100Gi", GPU: "8"}
        capacity |= {"hugepages-2Mi": "1Gi"}
        status = {"capacity": capacity, "allocatable": capacity | {"cpu": "63500m"}}
        self.api.create_all(
            _NODES, [{"metadata": {"name": name, "labels": {LABEL: ""}}, "status": status} for name in NODES]
        )

    def make_pods(self, many: int, prefix: str) -> list[str]:
        made = [(f"{prefix}-{at}-{kind}", _SPECS[kind]) for at in range(many) for kind in _SPECS]
        self.api.create_all(self.pods, [self._pod(name, spec) for name, spec in made])
        return [name for name, _ in made]

    def _pod(self, name: str, spec: Object) -> Object:
        """Two in three are on a node from the start, the scheduler places the others."""
        on = self.random.choice([*NODES, *NODES, ""])
        common = {
            "schedulerName": self.namespace,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
        }
        return {"metadata": {"name": name}, "spec": common | spec | ({"nodeName": on} if on else {})}

    def all_placed(self) -> bool:
        return all(pod["spec"].get("nodeName") for pod in self.api.items(self.pods))

    def churn(self, names: list[str]) -> None:
        """Everything that can become of a pod, to some of each kind."""
        changes = [self.delete, self.delete_slowly, self.end, self.resize, self.resize_in_vain, self.leave]
        for name in names:
            self.random.choice(changes)(name)

    def leave(self, name: str) -> None: ...

    def delete(self, name: str) -> None:
        self.api.delete(f"{self.pods}/{name}")

    def delete_slowly(self, name: str) -> None:
        """It goes on counting until it is gone."""
        self.api.patch(f"{self.pods}/{name}", {"metadata": {"finalizers": [FINALIZER]}})
        self.api.delete(f"{self.pods}/{name}")

    def end(self, name: str) -> None:
        self._report(name, phase=self.random.choice(["Succeeded", "Failed"]))

    def resize(self, name: str) -> None:
        """One container or sidecar is wanted to have more or less; the kubelet may have come half the way."""
        pod = self._runs(name)
        container = self.random.choice([pod["spec"]["containers"][0], *_sidecars(pod)])
        cpu = container["resources"].get("requests", {}).get("cpu")
        if cpu is None or not _may_be_resized(pod):
            return
        wanted = self.random.choice(["50m", "3"])
        self._want(name, container["name"], wanted)
        allocated, how = self.random.choice([(cpu, "PodResizePending"), (wanted, "PodResizeInProgress"), (cpu, "")])
        condition = {"type": how, "status": "True", "reason": "Deferred" if how == "PodResizePending" else ""}
        conditions = {"conditions": [condition]} if how else {}
        self._report(name, **self._statuses(pod, {container["name"]: (allocated, cpu)}), **conditions)

    def resize_in_vain(self, name: str) -> None:
        """The kubelet says that the node will never have so much.

        Init containers that it reports nothing of then count for nothing, and did until 1.36.
        """
        pod = self._runs(name)
        if self.counts_otherwise and "initContainers" in pod["spec"]:
            return
        container = pod["spec"]["containers"][0]
        cpu = container["resources"].get("requests", {}).get("cpu")
        if cpu is None or not _may_be_resized(pod):
            return
        self._want(name, container["name"], "60")
        pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        self._report(name, conditions=[pending])

    def _runs(self, name: str) -> Object:
        pod = self.api.get(f"{self.pods}/{name}")
        self._report(name, phase="Running", **self._statuses(pod, {}))
        return pod

    def _want(self, name: str, container: str, cpu: str) -> None:
        spec = self.api.get(f"{self.pods}/{name}")["spec"]
        kind = "containers" if container in [one["name"] for one in spec["containers"]] else "initContainers"
        for one in spec[kind]:
            if one["name"] == container:
                one["resources"]["requests"]["cpu"] = cpu
        self.api.patch(f"{self.pods}/{name}/resize", {"spec": {kind: spec[kind]}})

    def _statuses(self, pod: Object, cpus: Mapping[str, tuple[str, str]]) -> dict[str, list[Object]]:
        """As a kubelet reports what is allocated and what is in effect."""

        def status(one: Object) -> Object:
            requests = one["resources"].get("requests", {})
            allocated, actual = cpus.get(one["name"], (None, None))
            return {
                "name": one["name"],
                "image": one["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {}},
                "allocatedResources": requests | ({"cpu": allocated} if allocated else {}),
                "resources": {"requests": requests | ({"cpu": actual} if actual else {})},
            }

        containers, sidecars = pod["spec"]["containers"], _sidecars(pod)
        return {
            "containerStatuses": [*map(status, containers)],
            "initContainerStatuses": [*map(status, sidecars)],
        }

    def _report(self, name: str, **status: Any) -> None:
        self.api.patch(f"{self.pods}/{name}/status", {"status": status})

    def mirrored(self) -> dict[str, Counted]:
        """What a mirror says that has been there from the start, once it has heard what happened since."""
        for node in self.api.items(_NODES, labelSelector=LABEL):
            self.mirror.node_sink.put(wire.node(json.dumps(node).encode()))
        decode = wire.PlacedDecoder()
        listed = [decode(json.dumps(pod).encode()) for pod in self.api.items("/api/v1/pods", fieldSelector=PLACED)]
        keys = {(one.metadata.namespace, one.metadata.name) for one in listed}
        for key in self.seen - keys:
            self.mirror.placed_sink.remove(key)
        self.seen = keys
        for one in listed:
            self.mirror.placed_sink.put(one)
        views = [view for view in self.mirror.nodes.views if view is not None]
        return {view.name: Counted(_some(view.requested), _some(view.allocatable)) for view in views}

    def close(self) -> None:
        for pod in self.api.items(self.pods):
            if pod["metadata"].get("finalizers"):
                self.api.patch(f"{self.pods}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
        self.api.delete(self.pods)
        self.api.delete(_NODES, labelSelector=LABEL)
        self.api.delete(f"{_CLASSES}/{LABEL.partition('/')[2]}")


@pytest.fixture
def stage(control_plane: Cluster, namespace: str, kubernetes_version: str) -> Iterator[Ground]:
    api = control_plane.api
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(account))
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "none"}
    overhead = {"podFixed": {"cpu": "150m", "memory": "96Mi"}}
    name = LABEL.partition("/")[2]
    api.apply(f"{_CLASSES}/{name}", {**kind, "metadata": {"name": name}, "overhead": overhead})
    made = Ground(api, namespace, kubernetes_version)
    made.make_nodes()
    yield made
    made.close()


def test_the_mirror_counts_as_the_scheduler_does(
    stage: Ground, control_plane: Cluster, scheduler: StartScheduler
) -> None:
    running = scheduler({"profiles": [{"schedulerName": stage.namespace}]})
    names: list[str] = []
    for number in range(3):
        names += stage.make_pods(4, f"r{number}")
        wait_for("all pods to be placed", stage.all_placed)
        _compare(stage, control_plane, running)
        stage.churn(names)
        names = [pod["metadata"]["name"] for pod in stage.api.items(stage.pods, fieldSelector="status.phase=Pending")]
        _compare(stage, control_plane, running)


def _sidecars(pod: Object) -> list[Object]:
    return [one for one in pod["spec"].get("initContainers", ()) if one.get("restartPolicy")]


def _may_be_resized(pod: Object) -> bool:
    """Limits would have to be resized with it, and a pod as a whole needs a node that says that it can."""
    return "resources" not in pod["spec"] and not any(
        one["resources"].get("limits") for one in pod["spec"]["containers"]
    )


def _compare(stage: Ground, cluster: Cluster, running: Scheduler) -> None:
    """Both are behind what there is, for a moment."""

    def agree() -> bool:
        return stage.mirrored() == _dumped(cluster, running)

    try:
        wait_for("the scheduler and the mirror to agree", agree)
    except ClusterError:
        assert stage.mirrored() == _dumped(cluster, running)


def _dumped(cluster: Cluster, running: Scheduler) -> dict[str, Counted]:
    """What the scheduler says that it has counted; it says so when it gets this signal."""
    before = running.says().count(TRACE)
    found = process.find(cluster.folder, running.process)
    assert found is not None
    found.send_signal(signal.SIGUSR2)
    wait_for("the dump to begin", lambda: running.says().count(TRACE) > before)
    text = wait_for("the dump to end", lambda: _whole(running.says().rpartition(TRACE)[2]))
    nodes = {}
    for node in _NODE.finditer(text):
        requested, allocatable = _amounts(node["requested"]), _amounts(node["allocatable"])
        nodes[node["name"]] = Counted(requested | {"pods": float(node["pods"])}, allocatable)
    return {name: counted for name, counted in nodes.items() if name in NODES}


def _whole(text: str) -> str | None:
    """The dump of the queue comes after that of the nodes."""
    nodes, queue, _ = text.partition("Dump of scheduling queue")
    return nodes if queue else None


def _amounts(text: str) -> dict[str, float]:
    found = {
        _CALLED[field["field"]]: float(field["amount"]) for field in _FIELD.finditer(text) if field["field"] in _CALLED
    }
    found["cpu"] /= 1000
    scalars = {scalar["name"]: float(scalar["amount"]) for scalar in _SCALAR.finditer(text.partition("map")[2])}
    return {name: amount for name, amount in (found | scalars).items() if amount}


def _some(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in amounts.items() if amount}
