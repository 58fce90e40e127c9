from collections.abc import Callable
from typing import Any

import pytest

from testbed import kwok, nodes, process
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster, Kubectl, MakeNodes
from testbed.node_template import Pool, Template, equal, make

CONTAINER = {"name": "main", "image": "example.com/none:1"}
AFTER_THE_NODE_MONITOR_S = 120


def conditions(seen: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in seen.get("status", {}).get("conditions", [])}


def taints(node: Object) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints", [])]


def make_pod(api: Api, namespace: str, name: str = "pod", **fields: Any) -> str:
    """Create a pod on the nodes that the default scheduler finds; its path."""
    metadata = {"name": name} | fields.pop("metadata", {})
    api.create(
        f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": {"containers": [CONTAINER]} | fields}
    )
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def wait_until(api: Api, path: str, what: str, is_so: Callable[[Object], bool], *, timeout_s: float = 120) -> Object:
    """Wait until the object is as wanted."""
    return wait_for(f"{path}: {what}", lambda: seen if is_so(seen := api.get(path)) else None, timeout_s=timeout_s)


def test_a_thousand_nodes_become_ready(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    names = kwok_nodes(1000)
    there = ground.api.items("/api/v1/nodes", labelSelector=kwok.SELECTOR)
    assert sorted(node["metadata"]["name"] for node in there) == names
    assert all(conditions(node)["Ready"] == "True" for node in there)


def test_nodes_keep_what_their_template_says(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    capacity = {"cpu": "3", "memory": "5Gi", "example.com/fpga": "2"}
    part = {
        "metadata": {"labels": {"example.com/rack": "r1"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": capacity, "allocatable": {"cpu": "2900m"}, "nodeInfo": {"architecture": "arm64"}},
    }
    (name,) = kwok_nodes(1, Template([Pool("one", part)]))
    node = ground.api.get(f"/api/v1/nodes/{name}")
    assert node["status"]["capacity"] == capacity | {"pods": "110"}
    assert node["status"]["allocatable"] == capacity | {"pods": "110", "cpu": "2900m"}
    assert node["status"]["nodeInfo"]["architecture"] == "arm64"
    assert node["metadata"]["labels"]["example.com/rack"] == "r1"
    assert taints(node) == ["a"]


def test_nodes_are_added_removed_and_replaced_as_it_takes(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    def uids() -> dict[str, str]:
        there = ground.api.items("/api/v1/nodes", labelSelector=kwok.SELECTOR)
        return {node["metadata"]["name"]: node["metadata"]["uid"] for node in there}

    kwok_nodes(5, equal())
    first = uids()
    kwok_nodes(8, equal())
    more = uids()
    assert len(more) == 8
    assert first.items() <= more.items()
    kwok_nodes(3, equal())
    assert uids().items() <= first.items()
    assert len(uids()) == 3
    kwok_nodes(3, equal(cpu="1"))
    assert uids().keys() == {*[*first][:3]}
    assert not {*uids().values()} & {*first.values()}


def test_a_node_that_is_not_ours_is_never_touched(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    foreign = make(1, equal(name="foreign"))[0]
    foreign["metadata"] = {"name": "foreign"}
    ground.api.create("/api/v1/nodes", foreign)
    try:
        kwok_nodes(3)
        kwok_nodes(0)
        seen = ground.api.get("/api/v1/nodes/foreign")
        assert "Ready" not in {kind for kind, status in conditions(seen).items() if status == "True"}
        assert not ground.api.exists("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/foreign")
        ground.api.create("/api/v1/nodes", foreign | {"metadata": {"name": "foreign-00000"}})
        with pytest.raises(
            ClusterError, match="1 nodes have names that are wanted for kwok nodes, such as foreign-00000"
        ):
            kwok_nodes(1, equal(name="foreign"))
    finally:
        for name in ("foreign", "foreign-00000"):
            ground.api.delete(f"/api/v1/nodes/{name}")


def test_the_pods_of_a_deployment_run(ground: Cluster, kwok_nodes: MakeNodes, namespace: str, kubectl: Kubectl) -> None:
    names = kwok_nodes(5)
    kubectl("-n", namespace, "create", "deployment", "web", "--image=example.com/none:1", "--replicas=20")
    kubectl("-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s")
    pods = ground.api.items(f"/api/v1/namespaces/{namespace}/pods")
    assert {pod["spec"]["nodeName"] for pod in pods} <= {*names}
    assert len({pod["status"]["podIP"] for pod in pods}) == 20
    assert all(pod["status"]["hostIP"].startswith("10.192.") for pod in pods)


def test_a_pod_with_everything_runs(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    kwok_nodes(1, equal())
    path = make_pod(
        ground.api,
        namespace,
        initContainers=[CONTAINER | {"name": "before"}, CONTAINER | {"name": "beside", "restartPolicy": "Always"}],
        readinessGates=[{"conditionType": "example.com/open"}],
    )
    pod = wait_until(ground.api, path, "runs", lambda pod: pod["status"]["phase"] == "Running")
    before, beside = pod["status"]["initContainerStatuses"]
    assert before["state"]["terminated"]["reason"] == "Completed"
    assert "running" in beside["state"]
    assert (conditions(pod)["ContainersReady"], conditions(pod)["Ready"]) == ("True", "False")

    pod["status"]["conditions"].append({"type": "example.com/open", "status": "True"})
    ground.api.patch(f"{path}/status", {"status": {"conditions": pod["status"]["conditions"]}})
    wait_until(ground.api, path, "is Ready", lambda pod: conditions(pod)["Ready"] == "True")


def test_a_job_completes(ground: Cluster, kwok_nodes: MakeNodes, namespace: str, kubectl: Kubectl) -> None:
    kwok_nodes(1, equal())
    kubectl("-n", namespace, "create", "job", "work", "--image=example.com/none:1")
    kubectl("-n", namespace, "wait", "--for=condition=complete", "job/work", "--timeout=60s")


def test_a_job_runs_for_as_long_as_its_annotation_says(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    kwok_nodes(1, equal())
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    for name, runs_for in (("short", "10ms"), ("long", "1h")):
        template = {
            "metadata": {"annotations": {kwok.RUNS_FOR: runs_for}},
            "spec": {"containers": [CONTAINER], "restartPolicy": "Never"},
        }
        ground.api.create(jobs, {"metadata": {"name": name}, "spec": {"template": template}})
    wait_until(ground.api, f"{jobs}/long", "its pod is ready", lambda job: job["status"].get("ready") == 1)
    wait_until(ground.api, f"{jobs}/short", "is complete", lambda job: job["status"].get("succeeded") == 1)
    assert ground.api.get(f"{jobs}/long")["status"]["active"] == 1


def test_a_pod_is_deleted_gracefully(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    kwok_nodes(1, equal())
    path = make_pod(
        ground.api, namespace, metadata={"finalizers": ["example.com/wait"]}, terminationGracePeriodSeconds=3600
    )
    wait_until(ground.api, path, "runs", lambda pod: pod["status"]["phase"] == "Running")
    ground.api.delete(path)
    ended = wait_until(ground.api, path, "its containers end", lambda pod: pod["status"]["phase"] == "Failed")
    assert ended["metadata"]["deletionGracePeriodSeconds"] == 3600
    ground.api.patch(path, {"metadata": {"finalizers": None}})
    wait_for("the pod is gone", lambda: not ground.api.exists(path))


def test_a_pod_that_cannot_start_says_why_until_it_can(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    kwok_nodes(1, equal())
    path = make_pod(ground.api, namespace, metadata={"annotations": {kwok.WAITING: "ImagePullBackOff"}})

    def waits(pod: Object) -> bool:
        return any(
            one["state"].get("waiting", {}).get("reason") == "ImagePullBackOff"
            for one in pod["status"].get("containerStatuses", [])
        )

    pod = wait_until(ground.api, path, "waits", waits)
    assert (pod["status"]["phase"], conditions(pod)["Ready"]) == ("Pending", "False")
    ground.api.patch(path, {"metadata": {"annotations": {kwok.WAITING: None}}})
    pod = wait_until(ground.api, path, "is Ready", lambda pod: conditions(pod)["Ready"] == "True")
    assert not waits(pod)


@pytest.mark.parametrize(
    ("why", "want_status", "want_taint"),
    [
        ("container runtime is down", "False", "node.kubernetes.io/not-ready"),
        ("Unknown", "Unknown", "node.kubernetes.io/unreachable"),
    ],
)
def test_a_node_is_lost_and_comes_back(
    ground: Cluster, kwok_nodes: MakeNodes, namespace: str, why: str, want_status: str, want_taint: str
) -> None:
    name, other = kwok_nodes(2, equal())
    node, pod = f"/api/v1/nodes/{name}", make_pod(ground.api, namespace, nodeName=name)
    wait_until(ground.api, pod, "is Ready", lambda pod: conditions(pod).get("Ready") == "True")
    ground.api.patch(node, {"metadata": {"annotations": {kwok.NOT_READY: why}}})
    lost = wait_until(
        ground.api, node, "is tainted", lambda node: want_taint in taints(node), timeout_s=AFTER_THE_NODE_MONITOR_S
    )
    assert conditions(lost)["Ready"] == want_status
    assert conditions(ground.api.get(f"/api/v1/nodes/{other}"))["Ready"] == "True"
    ground.api.patch(node, {"metadata": {"annotations": {kwok.NOT_READY: None}}})
    back = wait_until(ground.api, node, "is well", lambda node: not taints(node), timeout_s=AFTER_THE_NODE_MONITOR_S)
    assert conditions(back)["Ready"] == "True"
    wait_until(ground.api, pod, "is Ready again", lambda pod: conditions(pod)["Ready"] == "True")


def test_kwok_that_was_killed_is_brought_back_by_up(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    names = kwok_nodes(20, equal())
    killed = process.find(ground.folder, "kwok")
    assert killed
    process.kill([killed])
    assert [part.state for part in ground.provider.status() if part.name == "kwok"] == ["dead"]
    ground.provider.up()
    leases = ground.api.items("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
    renewed = {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in leases}
    assert renewed.keys() >= {*names}
    assert len({*renewed.values()}) == 1
    there = ground.api.items("/api/v1/nodes", labelSelector=kwok.SELECTOR)
    assert all(conditions(node)["Ready"] == "True" and not taints(node) for node in there)
    wait_until(ground.api, make_pod(ground.api, namespace), "runs", lambda pod: pod["status"]["phase"] == "Running")


def test_kwok_is_left_alone_when_it_is_well(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    kwok_nodes(3, equal())
    before = process.find(ground.folder, "kwok")
    kwok.heal(ground.folder, ground.kubeconfig)
    assert process.find(ground.folder, "kwok") == before


def test_kwok_is_started_anew_when_the_cluster_is_reached_otherwise(ground: Cluster, kwok_nodes: MakeNodes) -> None:
    kwok_nodes(3, equal())
    before = process.find(ground.folder, "kwok")
    assert before
    with ground.kubeconfig.open("a") as file:
        file.write("# changed\n")
    kwok.heal(ground.folder, ground.kubeconfig)
    assert process.find(ground.folder, "kwok") not in (before, None)


def test_nothing_is_left_when_no_nodes_are_wanted(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> None:
    kwok_nodes(3, equal())
    path = make_pod(ground.api, namespace)
    wait_until(ground.api, path, "runs", lambda pod: pod["status"]["phase"] == "Running")
    kwok_nodes(0)
    assert not ground.api.exists(path)
    assert not ground.api.items("/api/v1/nodes", labelSelector=kwok.SELECTOR)
    assert not process.find(ground.folder, "kwok")
    kwok.heal(ground.folder, ground.kubeconfig)
    assert not process.find(ground.folder, "kwok")


def test_nodes_that_do_not_become_ready_are_counted_and_one_is_named(
    ground: Cluster, kwok_nodes: MakeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_takes_pods", lambda node: not node["metadata"]["name"].endswith("1"))
    monkeypatch.setattr(nodes, "_WITHIN_S", 1)
    with pytest.raises(ClusterError, match="1 of 3 kwok nodes are not Ready, such as kwok-00001"):
        kwok_nodes(3, equal())
