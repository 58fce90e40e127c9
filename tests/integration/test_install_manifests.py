"""An install without Helm: applied, used, and deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from release import manifests

from support.chart.chart import NAMESPACE
from support.kube.crd import POLICIES
from support.process.installed import Installed
from testbed.api import wait_for
from testbed.fixtures import Cluster, Kubectl

_CHILD = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-fairlead"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/schedulerextenderpolicies.fairlead.dev"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("manifests")
    made = {name: folder / name for name in ("install.yaml", "crds.yaml")}
    for name, text in manifests.render(["--set=image.tag=v1"]).items():
        made[name].write_text(text)
    return made


@pytest.fixture
def applied(control_plane: Cluster, kubectl: Kubectl, files: dict[str, Path]) -> Iterator[Cluster]:
    try:
        kubectl("apply", "--server-side", "-f", str(files["install.yaml"]))
        wait_for("policies to be served", lambda: control_plane.api.exists(POLICIES))
        yield control_plane
    finally:
        kubectl("delete", "--ignore-not-found", "--timeout=100s", "-f", str(files["install.yaml"]))


def test_what_kubectl_applies_is_used_and_leaves_nothing(
    applied: Cluster, kubectl: Kubectl, files: dict[str, Path], tmp_path: Path
) -> None:
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", str(files["crds.yaml"]))
    api = applied.api
    deployment = api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead")
    assert deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kubectl"
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":v1")
    replica = Installed(applied, NAMESPACE, tmp_path)
    try:
        replica.start()
        kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
        spec = {"scores": [{"name": "a", "expression": "1.0"}]}
        api.create(POLICIES, {**kind, "metadata": {"name": "some"}, "spec": spec})
        wait_for("its scheduler", lambda: api.exists(_CHILD), timeout_s=60)
    finally:
        replica.kill()
    kubectl("delete", "--timeout=100s", "-f", str(files["install.yaml"]))
    wait_for("the namespace to go", lambda: not api.exists(f"/api/v1/namespaces/{NAMESPACE}"))
    assert not api.exists(_CRD)
    for path in ("clusterroles", "clusterrolebindings", "rolebindings"):
        found = api.items(f"/apis/rbac.authorization.k8s.io/v1/{path}")
        assert [one["metadata"]["name"] for one in found if "fairlead" in one["metadata"]["name"]] == []
