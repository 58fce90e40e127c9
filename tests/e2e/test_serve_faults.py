"""What breaks does not lose pods: policies that are spoilt, a process that is killed, rights that are missing."""

import threading
from collections import Counter
from pathlib import Path

import yaml

from extender import Stage
from support.process.serving import MakeServing, Serving
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, MakeNodes
from testbed.node_template import equal

_NONSENSE: Object = {"name": "pool", "expression": "node.metadata.lables['pool'] == 'ours'"}


def _first_only(nodes: list[str]) -> Object:
    return {"name": "first", "expression": f"node.metadata.name == '{nodes[0]}'", "reason": "not the first"}


def _kept(api: Api, namespace: str) -> list[Object]:
    return api.items(f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions")


def test_the_last_good_policy_goes_on_when_it_is_spoilt_and_after_a_restart(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(3)
    serving.put("pool", filters=[_first_only(nodes)])
    serving.start()
    stage.start(*serving.entries())
    wait_for("the good policy to be kept", lambda: len(_kept(stage.api, stage.name)) == 1)
    serving.put("pool", filters=[_NONSENSE])
    said = serving.says("pool: generation", "does not compile, generation")
    assert "lables" in said
    stage.make_pod("spoilt")
    assert stage.placed("spoilt") == nodes[0]
    serving.kill()
    serving.start()
    assert "does not compile, generation" in serving.readyz()
    stage.make_pod("restarted")
    assert stage.placed("restarted") == nodes[0]
    serving.edit(lambda: serving.put("pool", filters=[_first_only(nodes[1:])]))
    stage.make_pod("mended")
    assert stage.placed("mended") == nodes[1]


def test_a_file_that_is_no_yaml_goes_on_and_after_a_restart(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(3)
    serving.put("pool", filters=[_first_only(nodes)])
    serving.start()
    stage.start(*serving.entries())
    wait_for("the good policy to be kept", lambda: len(_kept(stage.api, stage.name)) == 1)
    serving.write("pool", "spec: [")
    serving.says("is not YAML")
    stage.make_pod("spoilt")
    assert stage.placed("spoilt") == nodes[0]
    serving.kill()
    serving.start()
    serving.says("is not YAML")
    stage.make_pod("restarted")
    assert stage.placed("restarted") == nodes[0]


_RIGHTS: list[Object] = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
]


def _kubeconfig_of(cluster: Cluster, namespace: str, file: Path) -> Path:
    """Of an account that may do what serving takes, but keep nothing."""
    api, rbac = cluster.api, "/apis/rbac.authorization.k8s.io/v1"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "serve"}})
    api.create(f"{rbac}/clusterroles", {"metadata": {"name": namespace}, "rules": _RIGHTS})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    subject = {"kind": "ServiceAccount", "name": "serve", "namespace": namespace}
    api.create(f"{rbac}/clusterrolebindings", {"metadata": {"name": namespace}, "roleRef": role, "subjects": [subject]})
    token = api.create(f"{accounts}/serve/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in document["users"]:
        user["user"] = {"token": token}
    file.write_text(yaml.safe_dump(document))
    return file


def test_without_the_right_to_keep_policies_it_serves_and_says_so(
    ground: Cluster, stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path
) -> None:
    """Then there is nothing to go on with after a restart: the pods are treated by the failure policy."""
    nodes = kwok_nodes(2)
    serving = make_serving(_kubeconfig_of(ground, stage.name, tmp_path / "kubeconfig"))
    serving.put("pool", filters=[_first_only(nodes)])
    serving.start()
    stage.start(*serving.entries())
    assert "controllerrevisions" in serving.says("last good policies: kept in memory only: ")
    stage.make_pod("good")
    assert stage.placed("good") == nodes[0]
    serving.put("pool", filters=[_NONSENSE])
    serving.says("does not compile, generation")
    stage.make_pod("spoilt")
    assert stage.placed("spoilt") == nodes[0]
    serving.kill()
    serving.start()
    serving.says("does not compile, its failurePolicy decides for its pods")
    stage.make_pod("refused")
    assert stage.refusal("refused").startswith("0/2 nodes are available: 2 policy pool does not compile.")
    serving.edit(lambda: serving.put("pool", failurePolicy="Ignore", filters=[_NONSENSE]))
    stage.make_pod("let-pass")
    stage.placed("let-pass")


def test_a_gate_that_may_be_ignored_lets_pods_pass_while_nobody_answers(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(3)
    serving.put("pool", failurePolicy="Ignore", filters=[_first_only(nodes)])
    serving.put(
        "none",
        failurePolicy="Ignore",
        filters=[{"name": "never", "expression": "false"}],
        match={"podSelector": {"matchLabels": {"for": "later"}}},
    )
    serving.start()
    stage.start(*serving.entries(gate=False))
    stage.make_pod("answered")
    assert stage.placed("answered") == nodes[0]
    stage.make_pod("refused", labels={"for": "later"})
    stage.refusal("refused")
    serving.kill()
    stage.make_pod("unanswered", labels={"for": "later"})
    stage.placed("unanswered")


def test_a_gate_that_must_be_asked_holds_pods_until_somebody_answers(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(3)
    serving.put("pool", filters=[_first_only(nodes)])
    serving.start()
    stage.start(*serving.entries())
    serving.kill()
    stage.make_pod("web")
    assert "connection refused" in stage.refusal("web", "SchedulerError")
    serving.start()
    assert stage.placed("web") == nodes[0]


_NODES, _EACH, _KILLS = 20, 20, 4


def test_a_process_that_is_killed_under_load_loses_no_pod_and_binds_none_twice(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """The pods fill the nodes, so that a place that is lost would be seen.

    One may be given twice: of a bind whose answer was cut off, the scheduler thinks that it failed until it hears more.
    """
    kwok_nodes(_NODES, equal(cpu=str(_EACH)))
    annotation = {"key": "fairlead.dev/node", "expression": "node.metadata.name"}
    serving.put(
        "all",
        filters=[{"name": "room", "expression": "node.metadata.labels['kubernetes.io/hostname'] != ''"}],
        scores=[{"name": "even", "expression": "100.0 * free['cpu'] / allocatable['cpu']"}],
        binding={"annotations": [annotation]},
    )
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    count = _NODES * _EACH
    names = [f"web-{number}" for number in range(count)]
    making = threading.Thread(target=stage.make_pods, args=(names,), kwargs={"cpu": "1"})
    making.start()
    seen: dict[str, str] = {}
    for kill in range(1, _KILLS + 1):
        _wait_until_placed(stage, count * kill // (_KILLS + 1), seen)
        serving.kill()
        serving.start()
    making.join()
    _wait_until_placed(stage, count, seen)
    pods = stage.api.items(stage.path)
    assert len(pods) == count
    assert {pod["metadata"]["annotations"]["fairlead.dev/node"] == pod["spec"]["nodeName"] for pod in pods} == {True}
    times = _times_scheduled(stage)
    print(f"{count - len(times)} of {count} binds came through unheard")  # pytest -rP shows it
    assert {*times.values()} == {1}
    _check_it_binds_once(serving, pods[0])


def _wait_until_placed(stage: Stage, count: int, seen: dict[str, str]) -> None:
    """Wait until so many pods are; no pod may change its node."""

    def look() -> bool:
        for pod, node in stage.places().items():
            assert not node or seen.setdefault(pod, node) == node, f"{pod} was on {seen[pod]}"
        return len(seen) >= count

    wait_for(f"{count} pods to be placed", look, every_s=0.02)


def _times_scheduled(stage: Stage) -> Counter[str]:
    """By pod, how often the scheduler said that it bound it; a bind whose answer was cut off it never hears of."""
    path = f"/apis/events.k8s.io/v1/namespaces/{stage.name}/events"
    times: Counter[str] = Counter()
    for event in stage.api.items(path):
        if event["reason"] == "Scheduled":
            times[event["regarding"]["name"]] += (event.get("series") or {}).get("count", 1)
    return times


def _check_it_binds_once(serving: Serving, pod: Object) -> None:
    """A call that comes again is told that all is well; one for another node, that it is too late."""
    metadata, node = pod["metadata"], pod["spec"]["nodeName"]
    asked = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
    assert serving.call("bind", asked | {"Node": node}) == {"Error": ""}
    assert f"already bound to node {node}" in serving.call("bind", asked | {"Node": "another"})["Error"]
