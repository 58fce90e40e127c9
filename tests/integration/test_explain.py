"""The offline commands against a real API server and a real kube-scheduler."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.pki.identities import REPLICAS
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.simulation.results import NodeResult
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Snapshot
from support.chart.chart import template
from support.kube.crd import POLICIES, policies_served
from support.kube.service_account import kubeconfig_of
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, Kubectl, MakeNodes
from testbed.node_template import Pool, Template, equal

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_IMAGE = "example.com/none:1"
_GPU = "example.com/gpu"


def _pod(name: str, *, asks: Object | None = None, ports: list[Object] | None = None, **spec: Any) -> Object:
    container = {"name": "main", "image": _IMAGE, "resources": {"requests": asks or {}, "limits": {}}}
    if asks and _GPU in asks:
        container["resources"]["limits"] = {_GPU: asks[_GPU]}  # type: ignore[index]
    return {"metadata": {"name": name}, "spec": {"containers": [container | {"ports": ports or []}], **spec}}


def _required(*terms: Object) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}}


def _needs(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


_TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
_EVICTS = {"key": "drain", "effect": "NoExecute"}
_NODES = Template(
    [
        Pool("small", {"metadata": {"labels": {"zone": "a", "size": "2"}}, "status": {"capacity": {"cpu": "2"}}}),
        Pool("large", {"metadata": {"labels": {"zone": "b", "size": "16"}}, "status": {"capacity": {"cpu": "16"}}}),
        Pool("gpu", {"spec": {"taints": [_TAINT]}, "status": {"capacity": {"cpu": "8", _GPU: "2"}}}),
        Pool("drained", {"spec": {"taints": [_EVICTS, _TAINT]}, "status": {"capacity": {"cpu": "8"}}}),
        Pool("cordoned", {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "8"}}}),
        Pool("full", {"status": {"capacity": {"cpu": "8", "pods": "0"}}}),
    ],
    "fit",
)
_GPU_TOLERATED = [{"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}]
_ALL_TOLERATED = [{"operator": "Exists"}]
PODS: dict[str, Object] = {
    "nothing is asked for": _pod("p"),
    "more than any has": _pod("p", asks={"cpu": "17"}),
    "more of two things": _pod("p", asks={"cpu": "17", "memory": "9999Gi"}),
    "some have so much": _pod("p", asks={"cpu": "9"}),
    "a device": _pod("p", asks={_GPU: "1"}),
    "a device where it is": _pod("p", asks={_GPU: "1"}, tolerations=_GPU_TOLERATED),
    "more devices than there are": _pod("p", asks={_GPU: "3"}, tolerations=_GPU_TOLERATED),
    "everything is tolerated": _pod("p", asks={"cpu": "17"}, tolerations=_ALL_TOLERATED),
    "a selector": _pod("p", nodeSelector={"zone": "a"}),
    "a selector that none has": _pod("p", nodeSelector={"zone": "z"}),
    "an affinity": _pod("p", affinity=_required({"matchExpressions": [_needs("size", "Gt", "8")]})),
    "an affinity that none has": _pod("p", affinity=_required({"matchExpressions": [_needs("size", "Lt", "2")]})),
    "one of two terms": _pod(
        "p",
        affinity=_required(
            {"matchExpressions": [_needs("zone", "In", "x"), _needs("size", "Exists")]},
            {"matchExpressions": [_needs("zone", "NotIn", "a", "b"), _needs("size", "DoesNotExist")]},
        ),
    ),
    "both a selector and an affinity": _pod(
        "p", nodeSelector={"zone": "a"}, affinity=_required({"matchExpressions": [_needs("zone", "In", "b")]})
    ),
    "a port that is taken on one": _pod("p", ports=[{"containerPort": 80, "hostPort": 80}]),
    "a port that is taken on the only one": _pod(
        "p", ports=[{"containerPort": 80, "hostPort": 80}], nodeSelector={"taken": "yes"}
    ),
    "the room that others leave": _pod("p", asks={"cpu": "15"}, nodeSelector={"taken": "yes"}),
    "an init container needs more": _pod(
        "p", initContainers=[{"name": "i", "image": _IMAGE, "resources": {"requests": {"cpu": "17"}}}]
    ),
}


@pytest.fixture
def nodes(ground: Cluster, kwok_nodes: MakeNodes, namespace: str) -> list[str]:
    """Nodes of every pool, and one on which something runs."""
    names = kwok_nodes(18, _NODES)
    large = next(one for one in ground.api.items("/api/v1/nodes", labelSelector="zone=b"))["metadata"]["name"]
    ground.api.patch(f"/api/v1/nodes/{large}", {"metadata": {"labels": {"taken": "yes"}}})
    taken = _pod("taken", asks={"cpu": "1500m"}, ports=[{"containerPort": 80, "hostPort": 80}], nodeName=large)
    ground.api.create(f"/api/v1/namespaces/{namespace}/pods", taken)
    return names


@pytest.mark.parametrize("asked", PODS.values(), ids=PODS)
def test_nodes_fit_as_the_scheduler_says(ground: Cluster, nodes: list[str], namespace: str, asked: Object) -> None:
    snapshot = Snapshot()
    for kind in ("Node", "Pod"):
        for one in ground.api.items(f"/api/v1/{kind.lower()}s"):
            snapshot.put(one | {"kind": kind, "apiVersion": "v1"})
    seen = _scheduled(ground.api, namespace, asked)
    judged = Simulation(PolicySet(), snapshot, 0).judge(json.dumps(seen).encode())
    fitting = [node.name for node in judged.nodes if node.fits]
    if where := seen["spec"].get("nodeName"):
        assert where in fitting
    else:
        (why,) = [one["message"] for one in seen["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert fitting == []
        assert _counted(why) == Counter(reason for node in judged.nodes for reason in _first(node))


def _scheduled(api: Api, namespace: str, asked: Object) -> Object:
    """The pod when the scheduler has looked at it."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    api.create(path, asked)

    def looked_at() -> Object | None:
        pod = api.get(f"{path}/p")
        said = [one for one in pod.get("status", {}).get("conditions", []) if one["type"] == "PodScheduled"]
        return pod if said else None

    try:
        return wait_for("the scheduler to look at the pod", looked_at)
    finally:
        api.delete(f"{path}/p", gracePeriodSeconds="0")


def _counted(message: str) -> Counter[str]:
    """Of `0/18 nodes are available: 3 Insufficient cpu, 2 Too many pods. preemption: ...` what there is to count."""
    found = re.match(r"0/\d+ nodes are available: (.*?)\.( |$)", message)
    assert found is not None, message
    reasons = re.sub(r"untolerated taint {[^}]*}", "untolerated taint(s)", found[1])  # named one by one before 1.34
    counted = Counter[str]()
    for count, _, reason in (one.partition(" ") for one in reasons.split(", ")):
        counted[reason] += int(count)
    return counted


def _first(node: NodeResult) -> list[str]:
    """What the scheduler says, who stops at the first plugin that refuses."""
    first = node.unfit[0].what
    amounts = [one.what for one in node.unfit if one.what.startswith(("Insufficient ", "Too many "))]
    return amounts if first in amounts else [first]


# What follows is about the rights of whoever asks.

POLICY = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "SchedulerExtenderPolicy",
    "metadata": {"name": "zones"},
    "spec": {
        "filters": [
            {"name": "zone", "expression": "node.metadata.labels[?'zone'].orValue('') == 'a'", "reason": "wrong zone"},
            {"name": "room", "expression": "free['cpu'] > 1.0", "reason": "too full"},
        ]
    },
}


@pytest.fixture
def policies(ground: Cluster) -> Iterator[Api]:
    with policies_served(ground.api):
        ground.api.create(POLICIES, POLICY)
        yield ground.api


def _may(api: Api, namespace: str, *, cluster: dict[str, list[str]], own: dict[str, list[str]]) -> None:
    """Let the account `asker` read these kinds, by group, in all the cluster and in its namespace."""
    subject = [{"kind": "ServiceAccount", "name": "asker", "namespace": namespace}]
    api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "asker"}})
    for kind, path, rights in (
        ("ClusterRole", _RBAC, cluster),
        ("Role", f"{_RBAC}/namespaces/{namespace}", own),
    ):
        rules = [
            {"apiGroups": [group], "resources": kinds, "verbs": ["get", "list"]} for group, kinds in rights.items()
        ]
        plural = f"{kind.lower()}s"
        name = f"asker-{namespace}"
        api.create(f"{path}/{plural}", {"metadata": {"name": name}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        bound = {"metadata": {"name": name}, "roleRef": reference, "subjects": subject}
        api.create(f"{path}/{plural.removesuffix('s')}bindings", bound)


@pytest.fixture
def asked(policies: Api, namespace: str, kwok_nodes: MakeNodes) -> Iterator[str]:
    """A namespace with a pod that waits, in a cluster with two nodes that will do."""
    kwok_nodes(2, equal(labels={"zone": "a"}, name="kwok"))
    policies.create(f"/api/v1/namespaces/{namespace}/pods", _pod("train", asks={"cpu": "2"}, schedulerName="fairlead"))
    yield namespace
    for plural in ("clusterroles", "clusterrolebindings"):
        policies.delete(f"{_RBAC}/{plural}/asker-{namespace}")


def test_whoever_may_read_all_is_told_all(ground: Cluster, asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["explain", "pod/train", "-n", asked, "--kubeconfig", str(ground.kubeconfig)])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "scheduler fairlead: NOT READY: there is no Deployment of it in fairlead-system" in out
    assert "operator: NO ANSWER: it has no replicas in fairlead-system" in out
    assert "Otherwise 2 of 2 nodes would be possible" in out
    assert " are possible" not in out
    assert "Serving: zones: generation 1; no replica serves it, as none is ready" in out
    options = ["--snapshot", "live", "--pods", "live", "-o", "json", "--kubeconfig", str(ground.kubeconfig)]
    file = Path(ground.folder) / "zones.yaml"
    file.write_text(yaml.safe_dump(POLICY))
    assert main(["simulate", "--policies", str(file), *options]) == 0
    (one,) = json.loads(capsys.readouterr().out)["pods"]
    assert (one["name"], [node["passed"] for node in one["nodes"]]) == ("train", [True, True])


def test_what_kubectl_writes_says_the_same_as_the_cluster(
    ground: Cluster, asked: str, kubectl: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("json", "yaml"):
        (tmp_path / f"now.{form}").write_text(kubectl("get", "nodes,pods,namespaces", "-A", "-o", form))
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(POLICY))
    answers = []
    given = ["explain", "train", "-n", asked, "-o", "json", "--now", "2027-01-15T12:00:00Z"]
    for cluster in ("live", str(tmp_path / "now.json"), str(tmp_path / "now.yaml")):
        where = ["--kubeconfig", str(ground.kubeconfig), "--policies", str(tmp_path / "p.yaml"), "--snapshot", cluster]
        assert main([*given, *where]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["nodes"] == answers[1]["nodes"] == answers[2]["nodes"]
    assert answers[0]["preferred"] == answers[1]["preferred"] != []


def test_whoever_may_not_read_pods_everywhere_is_told_what_is_not_known(
    ground: Cluster, asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rights = {"": ["nodes"], "fairlead.dev": ["schedulerextenderpolicies"]}
    _may(ground.api, asked, cluster=rights, own={"": ["pods"]})
    file = kubeconfig_of(ground, asked, "asker", tmp_path)
    code = main(["explain", "pod/train", "-n", asked, "--kubeconfig", str(file)])
    out, err = capsys.readouterr()
    assert (code, err) == (1, "")
    assert "scheduler fairlead: not known: " in out
    assert "operator: not known: " in out
    assert "UNKNOWN: 2 of 2 nodes cannot be judged, as zones/room was not evaluated" in out
    assert "possible" not in out
    assert (
        "Note: pods on nodes are unknown, and free capacity is counted as if nodes were empty: pods is forbidden: "
        in out
    )
    assert "Note: namespaces are unknown: namespaces " in out
    assert "Note: not evaluated: zones/room: it reads the pods on nodes." in out


def test_the_role_of_the_chart_is_enough(
    ground: Cluster, asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ClusterRole alone says all of a pod; with the Role beside it, also what the operator's namespace knows."""
    path = f"/api/v1/namespaces/{asked}/pods"
    replica = _pod("fairlead", nodeName=ground.api.items("/api/v1/nodes")[0]["metadata"]["name"])
    labels = dict(one.split("=") for one in REPLICAS.split(","))
    ground.api.create(path, replica | {"metadata": {"name": "fairlead", "labels": labels}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    ground.api.patch(f"{path}/fairlead/status", {"status": ready})
    roles = [one for one in template(namespace=asked) if one["metadata"]["name"] == f"fairlead.{asked}.explain"]
    assert [one["kind"] for one in roles] == ["ClusterRole", "Role"]
    ground.api.create(f"/api/v1/namespaces/{asked}/serviceaccounts", {"metadata": {"name": "asker"}})
    subjects = [{"kind": "ServiceAccount", "name": "asker", "namespace": asked}]
    file = str(kubeconfig_of(ground, asked, "asker", tmp_path))
    out = ""
    for role in roles:
        within = f"/namespaces/{asked}" if role["kind"] == "Role" else ""
        ground.api.create(f"{_RBAC}{within}/{role['kind'].lower()}s", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]}
        bound = {"metadata": {"name": f"asker-{asked}"}, "roleRef": reference, "subjects": subjects}
        ground.api.create(f"{_RBAC}{within}/{role['kind'].lower()}bindings", bound)
        assert main(["explain", "pod/train", "-n", asked, "--kubeconfig", file]) == 0
        out, err = capsys.readouterr()
        assert "operator: 1 of 1 replica ready" in out
        assert "2 of 2 nodes " in out
        others = [line for line in out.splitlines() if not line.startswith("scheduler fairlead: not known: ")]
        assert (re.findall("unknown|forbidden|may not|not evaluated", "\n".join(others)), err) == ([], "")
    assert f"scheduler fairlead: NOT READY: there is no Deployment of it in {asked}" in out
    main(["status", "-n", asked, "--kubeconfig", file, "-o", "json"])
    assert "forbidden" not in capsys.readouterr().out
    for kind in ("clusterrole", "clusterrolebinding"):
        name = f"fairlead.{asked}.explain" if kind == "clusterrole" else f"asker-{asked}"
        ground.api.delete(f"{_RBAC}/{kind}s/{name}")


def test_a_name_that_no_scheduler_has_is_told_from_those_of_others(
    ground: Cluster, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the API server selects pods and Leases; nothing is called so but for one that has placed a pod."""
    api, path = ground.api, f"/api/v1/namespaces/{asked}/pods"
    api.create(path, _pod("typo", schedulerName="fairleed"))
    api.create(path, _pod("own", schedulerName="volcanic"))
    api.create(
        path,
        _pod("placed", schedulerName="volcanic", nodeName=ground.api.items("/api/v1/nodes")[0]["metadata"]["name"]),
    )

    def run(*arguments: str) -> str:
        main([*arguments, "--kubeconfig", str(ground.kubeconfig)])
        return capsys.readouterr().out

    said = run("explain", "typo", "-n", asked)
    assert "scheduler fairleed: no policy and no scheduler has this name: did you mean fairlead? " in said
    assert "NOT SCHEDULED: there is no scheduler fairleed (did you mean fairlead?)" in said
    said = run("explain", "own", "-n", asked)
    assert "scheduler volcanic: not known: no policy names it; another scheduler named volcanic has placed pods" in said
    found = json.loads(run("status", "-o", "json"))["strays"]
    ours = [one for one in found if one["pod"].startswith(f"{asked}/")]
    assert [(one["scheduler"], one["pods"], one["pod"], one["meant"]) for one in ours] == [
        ("fairleed", 1, f"{asked}/typo", "fairlead")
    ]


def test_whoever_may_not_read_nodes_is_told_which_right_is_missing(
    ground: Cluster, asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _may(ground.api, asked, cluster={"fairlead.dev": ["schedulerextenderpolicies"]}, own={"": ["pods"]})
    file = kubeconfig_of(ground, asked, "asker", tmp_path)
    assert main(["explain", "pod/train", "-n", asked, "--kubeconfig", str(file)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("fairlead explain: you may not list nodes, which this command needs: ")
    assert 'a ClusterRole of that user lacks the rule {apiGroups: [""], resources: [nodes], verbs: [list]}' in err
    assert err.count("\n") == 1


def test_workloads_and_what_waits_are_explained_as_the_api_server_stores_them(
    ground: Cluster, asked: str, kubectl: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Live and of what kubectl writes; of a Deployment with a pod, and of one that has none."""
    api, apps = ground.api, f"/apis/apps/v1/namespaces/{asked}"
    made = _pod("", asks={"cpu": "17"}, schedulerName="fairlead")
    for name, replicas in (("web", 2), ("idle", 0)):
        template_ = {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template_}
        api.create(f"{apps}/deployments", {"metadata": {"name": name}, "spec": spec})
    pods = f"/api/v1/namespaces/{asked}/pods"
    wait_for("the pods of the Deployment", lambda: len(api.items(pods)) == 3 or None)
    web = {one["metadata"]["name"] for one in api.items(pods)} - {"train"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(POLICY))
    (tmp_path / "now.json").write_text(kubectl("get", "nodes,pods,namespaces,deployments", "-A", "-o", "json"))
    files = ["--policies", str(tmp_path / "p.yaml"), "--snapshot", str(tmp_path / "now.json")]
    live = ["--kubeconfig", str(ground.kubeconfig)]

    def run(*asked_: str) -> str:
        assert main(["explain", *asked_, "-n", asked]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    for where in (live, files):
        first = run("deployment.apps/web", *where).splitlines()[0]
        assert first.startswith(f"deployment {asked}/web: 2 of 2 pods, 2 waiting; this explains web-")
        assert first.endswith(", as 1 more waits for the same reason.")
        first = run("deploy/idle", *where).splitlines()[0]
        assert first == f"deployment {asked}/idle has no pods (0 wanted): this explains its template."
        waiting = json.loads(run("--pending", *where, "-o", "json"))
        assert {pod["name"] for group in waiting["groups"] for pod in group["pods"]} == {"train", *web}
    assert main(["explain", "deploy/wep", "-n", asked, *live]) == 2
    assert f"there is no deployment {asked}/wep in the cluster: did you mean web?" in capsys.readouterr().err
    strict = yaml.safe_load((tmp_path / "p.yaml").read_text())
    strict["spec"]["filters"][0]["expression"] = "false"
    (tmp_path / "edit.yaml").write_text(yaml.safe_dump(strict))
    assert main(["diff", "--from", "live", "--to", str(tmp_path / "edit.yaml"), *live, "-o", "json"]) == 1
    changed = json.loads(capsys.readouterr().out)["pods"]
    assert [(one["name"], len(one["lost"])) for one in changed if one["namespace"] == asked] == [("train", 2)]
