"""What becomes of pods on a real kubelet is learned once, by whichever replica leads, and ends with its policy."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.learned.published import LABEL, decode
from support.kube.crd import let_all_go, policies_served
from support.process.operating import Operating
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, StartScheduler
from testbed.node_config import NODE, POD_IMAGE

SETTLE_S: Final = 30
"""Longer than a pod takes to start on a busy machine: one that has not started by then is a failure."""
NEVER_PULLED: Final = "image.invalid/none:1"
OUTCOMES: Final[dict[str, tuple[float, int]]] = {
    "succeeds": (1.0, 1),
    "runs": (1.0, 1),
    "fails-at-once": (0.0, 1),
    "fails-late": (0.5, 1),
    "is-not-pulled": (0.0, 1),
    "init-fails": (0.0, 1),
}
"""Mean reward and number of outcomes of each type."""
TELLS_NOTHING: Final = ("is-deleted", "is-evicted", "is-not-admitted")


@pytest.fixture
def replicas(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[list[Operating]]:
    made = []
    with policies_served(cluster.api):
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            made.append(Operating(cluster, namespace, folder))
        try:
            for one in made:
                one.start()
            yield made
        finally:
            for one in made:
                one.kill()
            let_all_go(cluster.api)


def pod_of(kind: str, scheduler: str, *arguments: str, **fields: Any) -> Object:
    """Return a pod that is on the node from the beginning, as if that scheduler had placed it."""
    container = {"name": "main", "image": POD_IMAGE, "imagePullPolicy": "IfNotPresent", "args": [*arguments]}
    container |= fields.pop("container", {})
    spec: dict[str, Any] = {"nodeName": NODE, "schedulerName": scheduler, "restartPolicy": "Never"}
    spec |= {"containers": [container], "terminationGracePeriodSeconds": 1} | fields
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": kind, "labels": {"app": kind}}, "spec": spec}


class Scene:
    """Pods of one scheduler, and what is published of them."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.api, self.namespace = cluster.api, namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.config_maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def make(self, kind: str, *arguments: str, **fields: Any) -> None:
        self.api.create(self.pods, pod_of(kind, self.namespace, *arguments, **fields))

    def runs(self, kind: str) -> None:
        wait_for(f"{kind} to run", lambda: self.api.get(f"{self.pods}/{kind}")["status"].get("phase") == "Running")

    def reason(self, kind: str) -> str:
        return str(self.api.get(f"{self.pods}/{kind}")["status"].get("reason", ""))

    def learned(self) -> dict[str, tuple[float, int]]:
        """Return mean reward and number of outcomes of each type, as published."""
        found: dict[str, tuple[float, int]] = {}
        for config_map in self.api.items(self.config_maps, labelSelector=LABEL):
            state = decode(config_map)
            assert state is not None
            pairs: Any = state.document.value or {}
            for key, pair in pairs.items():
                kind = str(key[0]).removeprefix(f"{self.namespace}/")
                found[kind] = round(pair.rewards / pair.weight, 3), round(pair.weight)
        return found

    def until_learned(self, what: str, holds: Callable[[dict[str, tuple[float, int]]], bool]) -> None:
        seen: dict[str, tuple[float, int]] = {}

        def look() -> bool:
            seen.clear()
            seen.update(self.learned())
            return holds(seen)

        try:
            wait_for(what, look, timeout_s=180)
        except Exception as error:
            error.add_note(f"published is {seen}")
            raise


def test_what_becomes_of_pods_is_learned_once(replicas: list[Operating], cluster: Cluster, namespace: str) -> None:
    first, second = replicas
    rule = {"name": "works", "kubeRL": {"settle": f"{SETTLE_S}s", "halfLife": "720h"}}
    for one in replicas:
        one.put("learns", scores=[rule])
    scene = Scene(cluster, namespace)
    scene.make("succeeds", "exit", "0")
    scene.make("runs", "pause")
    scene.make("fails-at-once", "exit", "1")
    probe = {"tcpSocket": {"port": 1}, "initialDelaySeconds": SETTLE_S + 2, "periodSeconds": 1, "failureThreshold": 1}
    never_ready = {"readinessProbe": {"tcpSocket": {"port": 1}}}  # else it would have settled before it fails
    scene.make("fails-late", "sleep", "600", container={"livenessProbe": probe, **never_ready})
    scene.make("is-not-pulled", "pause", container={"image": NEVER_PULLED})
    init = {"name": "beside", "image": POD_IMAGE, "imagePullPolicy": "IfNotPresent", "args": ["exit", "3"]}
    scene.make("init-fails", "sleep", "600", initContainers=[init])
    scene.make("is-not-admitted", "pause", container={"resources": {"requests": {"cpu": "1000"}}})
    for kind in ("is-deleted", "is-evicted"):
        scene.make(kind, "sleep", "600", terminationGracePeriodSeconds=1)
        scene.runs(kind)
    cluster.api.delete(f"{scene.pods}/is-deleted")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "is-evicted"}}
    cluster.api.create(f"{scene.pods}/is-evicted/eviction", eviction)
    scene.until_learned("all outcomes to be published", lambda seen: OUTCOMES.items() <= seen.items())

    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/fairlead"
    leader = first if cluster.api.get(lease)["spec"]["holderIdentity"].startswith(first.name) else second
    leader.kill()
    scene.make("fails-while-none-leads", "exit", "1")
    more = {"fails-while-none-leads": (0.0, 1)}
    scene.until_learned("what failed meanwhile", lambda seen: more.items() <= seen.items())
    following = second if leader is first else first
    following.put("learns", scores=[rule | {"weight": 7}])
    scene.make("fails-after-the-edit", "exit", "1")
    more |= {"fails-after-the-edit": (0.0, 1)}
    scene.until_learned("what failed after the edit", lambda seen: more.items() <= seen.items())
    assert scene.learned() == OUTCOMES | more
    assert not {*TELLS_NOTHING} & scene.learned().keys()

    wait_for("it to be seen by the replica", lambda: "[+] outcomes" in following.probe("readyz")[1])
    cluster.api.delete("/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/learns")
    wait_for("its ConfigMaps to go", lambda: not cluster.api.items(scene.config_maps, labelSelector=LABEL))
    began = time.monotonic()
    wait_for(
        "nobody to write them again",
        lambda: time.monotonic() - began > 20 or scene.learned(),
    )
    assert scene.learned() == {}


ENDED_BY_THE_NODE: Final[dict[str, tuple[float, int]]] = {"runs-out-of-memory": (0.0, 1), "fills-its-disk": (0.0, 1)}
_SLOT: Final = "example.com/slot"


@pytest.fixture
def slot(cluster: Cluster) -> Iterator[None]:
    """A resource of which the node has one."""
    status = f"/api/v1/nodes/{NODE}/status"
    cluster.api.patch(status, {"status": {"capacity": {_SLOT: "1"}}})
    wait_for("a slot", lambda: cluster.api.get(f"/api/v1/nodes/{NODE}")["status"]["allocatable"].get(_SLOT) == "1")
    yield
    cluster.api.patch(status, {"status": {"capacity": {_SLOT: None}, "allocatable": {_SLOT: None}}})


@pytest.mark.usefixtures("slot")
def test_what_the_node_ends_is_learned_and_what_the_scheduler_preempts_is_not(
    replicas: list[Operating], cluster: Cluster, namespace: str, scheduler: StartScheduler
) -> None:
    rule = {"name": "works", "kubeRL": {"settle": "10m", "halfLife": "720h"}}
    for one in replicas:
        one.put("learns", scores=[rule])
    scheduler({"profiles": [{"schedulerName": namespace}]})
    scene = Scene(cluster, namespace)
    scene.make("runs-out-of-memory", "cat", "/dev/zero", container={"resources": {"limits": {"memory": "64Mi"}}})
    mount = {"name": "small", "mountPath": "/small"}
    small = {"name": "small", "emptyDir": {"sizeLimit": "1Mi"}}
    scene.make("fills-its-disk", "fill", "/small", container={"volumeMounts": [mount]}, volumes=[small])
    one_slot = {"resources": {"limits": {_SLOT: "1"}}}
    scene.make("is-preempted", "pause", nodeName=None, container=one_slot)
    scene.runs("is-preempted")
    scene.make("preempts", "pause", nodeName=None, container=one_slot, priorityClassName="system-cluster-critical")
    wait_for("the pod to go", lambda: not cluster.api.exists(f"{scene.pods}/is-preempted"))
    scene.runs("preempts")
    ended = ENDED_BY_THE_NODE.items()
    scene.until_learned("what the node has ended to be published", lambda seen: ended <= seen.items())
    assert scene.reason("fills-its-disk") == "Evicted"
    status = cluster.api.get(f"{scene.pods}/runs-out-of-memory")["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"
    assert scene.learned() == ENDED_BY_THE_NODE


def test_requests_of_pods_that_wait_are_learned(replicas: list[Operating], cluster: Cluster, namespace: str) -> None:
    rule = {"name": "packs", "pigeon": {"resources": ["cpu"], "samples": 3, "minSamples": 3}}
    for one in replicas:
        one.put("packs", scores=[rule])
    scene = Scene(cluster, namespace)
    for number, cpu in enumerate(("4", "500m", "1", "2")):  # nobody places them: their scheduler does not run
        scene.make(f"waits-{number}", "pause", nodeName=None, container={"resources": {"requests": {"cpu": cpu}}})

    def learned() -> list[float] | None:
        for config_map in cluster.api.items(scene.config_maps, labelSelector=LABEL):
            state = decode(config_map)
            assert state is not None
            demands: Any = state.document.value or {}
            if len(demands) == 3:
                return sorted(amounts[0] for amounts in demands.values())
        return None

    found = wait_for("three requests to be published", learned)
    assert len({*found} & {4.0, 0.5, 1.0, 2.0}) == 3, "the newest; within a second their UIDs decide"
