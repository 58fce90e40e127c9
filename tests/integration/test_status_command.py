"""`fairlead status` against a real API server, with the rights of whoever asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli.main import main
from support.kube.crd import POLICIES, policies_served
from support.kube.service_account import kubeconfig_of, may
from testbed.api import wait_for
from testbed.fixtures import Cluster

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_OPERATOR = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator"}


@pytest.fixture
def with_policy(control_plane: Cluster) -> Iterator[str]:
    body = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "p"}}
    spec = {"schedulerName": "s", "filters": [{"name": "f", "expression": "true"}]}
    with policies_served(control_plane.api):
        control_plane.api.create(POLICIES, {**body, "spec": spec})
        yield "p"


def test_before_the_kind_is_there_it_says_how_to_have_it(
    control_plane: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_for("the kind to be gone", lambda: not control_plane.api.exists(POLICIES))
    assert main(["status", "--kubeconfig", str(control_plane.kubeconfig)]) == 2
    assert "this cluster has no CustomResourceDefinition of policies" in capsys.readouterr().err


def test_who_may_read_everything_learns_what_is_wrong_first(
    control_plane: Cluster, namespace: str, with_policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ports = [{"name": "probes", "containerPort": 8080}]
    spec = {"containers": [{"name": "fairlead", "image": "none", "ports": ports}], "schedulerName": "nobody"}
    path = f"/api/v1/namespaces/{namespace}/pods"
    wait_for("its service account", lambda: control_plane.api.exists(f"{path[:-5]}/serviceaccounts/default"))
    control_plane.api.create(path, {"metadata": {"name": "fairlead-1", "labels": _OPERATOR}, "spec": spec})
    status = {"phase": "Running", "podIP": "10.99.0.1", "podIPs": [{"ip": "10.99.0.1"}]}
    control_plane.api.patch(f"{path}/fairlead-1/status", {"status": status})
    assert main(["status", "--kubeconfig", str(control_plane.kubeconfig)]) == 1
    out = capsys.readouterr().out
    assert f"0 of 1 policy, 0 of 1 scheduler, 0 of 1 replica ready in {namespace}" in out
    assert "  operator fairlead: NotReady: none of its pods is ready" in out
    assert "  scheduler s: NotReady: the operator has created nothing for it yet" in out
    assert "  policy p: Pending: the operator has not observed generation 1 yet" in out
    # the API server has understood that a pod's metrics are asked for, and has found nobody there
    (why,) = [line for line in out.splitlines() if "metrics of fairlead-1: " in line]
    assert "404" not in why
    assert "could not find" not in why


def test_what_the_user_may_not_read_is_named(
    control_plane: Cluster,
    namespace: str,
    with_policy: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = control_plane.api
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    wait_for("the service account", lambda: api.exists(f"{accounts}/default"))
    file = str(kubeconfig_of(control_plane, namespace, "default", tmp_path))
    assert main(["status", "--kubeconfig", file, "--namespace", namespace]) == 2
    assert "lacks the rule" in capsys.readouterr().err

    rule = {"apiGroups": ["fairlead.dev"], "resources": ["schedulerextenderpolicies"], "verbs": ["list"]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    api.create(f"{_RBAC}/clusterroles", {"metadata": {"name": namespace}, "rules": [rule]})
    bound = {"metadata": {"name": namespace}, "roleRef": role, "subjects": [subject]}
    api.create(f"{_RBAC}/clusterrolebindings", bound)
    asked = {"group": "fairlead.dev", "resource": "schedulerextenderpolicies", "verb": "list"}
    try:
        wait_for("its rights", lambda: may(control_plane, namespace, "default", asked))
        assert main(["status", "--kubeconfig", file, "--namespace", namespace]) == 1
    finally:
        api.delete(f"{_RBAC}/clusterrolebindings/{namespace}")
        api.delete(f"{_RBAC}/clusterroles/{namespace}")
    out = capsys.readouterr().out
    unread = out.partition("NOT READ\n")[2].splitlines()
    assert [line.strip().partition(": ")[0].removesuffix(f" in {namespace}") for line in unread] == [
        "configmaps",
        "deployments",
        "leases",
        "pods of schedulers",
        "pods of the operator",
        "pods that wait, in all namespaces",
    ]
    assert all("lacks the rule {apiGroups: " in line for line in unread)
    assert "NotThere" not in out
