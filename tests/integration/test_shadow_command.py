"""`fairlead shadow` against a real API server: statuses as the operator writes them, and the rights of whoever asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.main import main
from support.kube.crd import POLICIES, policies_served
from support.kube.service_account import kubeconfig_of
from support.kube.taints import wait_until_untainted
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes
from testbed.node_template import equal

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SCHEDULER = "shadowed"
_COUNTS: Object = {
    "generation": 1,
    "since": "2026-01-01T00:00:00Z",
    "calls": 20,
    "skipped": 1,
    "pods": 7,
    "restricted": 2,
    "rules": [{"kind": "Filter", "name": "zone", "pods": 2}],
}


@pytest.fixture(scope="module")
def served(control_plane: Cluster) -> Iterator[Cluster]:
    with policies_served(control_plane.api):
        yield control_plane


@pytest.fixture
def policy(served: Cluster) -> Iterator[str]:
    rule = {"name": "zone", "expression": "node.metadata.labels[?'zone'].orValue('') == 'a'", "reason": "other zone"}
    spec = {"schedulerName": _SCHEDULER, "mode": "Shadow", "filters": [rule]}
    body = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "zones"}}
    served.api.create(POLICIES, {**body, "spec": spec})
    yield "zones"
    served.api.delete(f"{POLICIES}/zones")


def _count(cluster: Cluster, **changes: Any) -> None:
    cluster.api.patch(f"{POLICIES}/zones/status", {"status": {"shadow": {**_COUNTS, **changes}}})


def _shadow(file: Path, *more: str) -> int:
    return main(["shadow", *more, "--kubeconfig", str(file)])


def test_its_exit_code_follows_the_counts(served: Cluster, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = served.kubeconfig
    assert _shadow(file, policy) == 1
    assert "Not yet: its status has no counts" in capsys.readouterr().out
    _count(served)
    assert _shadow(file, policy) == 0
    assert _shadow(file) == 0
    out = capsys.readouterr().out
    assert "coverage: 19 of 20 calls compared (1 skipped)" in out
    assert "Filter   zone   2      0" in out
    assert _shadow(file, policy, "--min-pods", "8") == 1
    _count(served, unschedulable=1)
    assert _shadow(file, policy) == 1
    assert "Not yet: 1 pod would have been left without a node." in capsys.readouterr().out
    _count(served, calls=0, pods=0)
    assert _shadow(file, policy) == 1
    assert "Not yet: no call was seen." in capsys.readouterr().out


def test_an_edit_has_no_counts_yet(served: Cluster, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    _count(served)
    served.api.patch(f"{POLICIES}/{policy}", {"spec": {"priority": 3}})
    assert _shadow(served.kubeconfig, policy) == 1
    assert "generation 2 has no counts yet: these are of generation 1" in capsys.readouterr().out


def test_present_pods_are_those_of_its_scheduler(
    served: Cluster, kwok_nodes: MakeNodes, namespace: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kwok_nodes(2, equal(labels={"zone": "b"}))
    wait_until_untainted(served.api, *(one["metadata"]["name"] for one in served.api.items("/api/v1/nodes")))
    _count(served)
    path = f"/api/v1/namespaces/{namespace}"
    wait_for("its service account", lambda: served.api.exists(f"{path}/serviceaccounts/default"))
    for name, scheduler in (("mine", _SCHEDULER), ("another", "nobody")):
        spec = {"containers": [{"name": "c", "image": "example.com/none:1"}], "schedulerName": scheduler}
        served.api.create(f"{path}/pods", {"metadata": {"name": name}, "spec": spec})
    assert _shadow(served.kubeconfig, policy, "--pods", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    [pod] = found["pods"]
    assert (pod["name"], found["unchanged"]) == ("mine", 0)
    lost = {rule["reason"] for one in pod["lost"] for rule in one["rules"]}
    assert lost == {"other zone"}
    served.api.delete(f"{path}/pods")


def test_who_may_not_read_policies_learns_it_and_ends_with_2(
    served: Cluster, namespace: str, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    wait_for("its service account", lambda: served.api.exists(f"{path}/default"))
    file = kubeconfig_of(served, namespace, "default", tmp_path)
    assert _shadow(file, policy) == 2
    assert "forbidden" in capsys.readouterr().err
    assert _shadow(served.kubeconfig, "zone") == 2
    assert "there is no policy 'zone': did you mean zones?" in capsys.readouterr().err


def test_who_may_not_read_pods_sees_the_counts_only(
    served: Cluster, namespace: str, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _count(served)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    wait_for("its service account", lambda: served.api.exists(f"{path}/default"))
    name = f"{namespace}.shadow"
    rule = {"apiGroups": ["fairlead.dev"], "resources": ["schedulerextenderpolicies"], "verbs": ["get", "list"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    served.api.create(f"{_RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    served.api.create(
        f"{_RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    )
    try:
        file = kubeconfig_of(served, namespace, "default", tmp_path)
        assert _shadow(file, policy) == 0
        assert _shadow(file, policy, "--pods") == 2
        assert "you may not list" in capsys.readouterr().err
    finally:
        served.api.delete(f"{_RBAC}/clusterrolebindings/{name}")
        served.api.delete(f"{_RBAC}/clusterroles/{name}")
