"""`fairlead operate` with the arguments and the rights that the chart gives it, beside a real API server."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.render.rbac import ADMISSION
from support.chart.chart import CHART, NAMESPACE
from support.kube.crd import POLICIES
from support.process.installed import Installed
from testbed import process
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_OWN = f"/api/v1/namespaces/{NAMESPACE}"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_CHILD = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-fairlead"


@pytest.fixture
def replica(installed: str, control_plane: Cluster, tmp_path: Path) -> Iterator[Installed]:
    made = Installed(control_plane, installed, tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.kill()


def test_it_leads_and_makes_a_scheduler_and_nothing_is_forbidden(
    replica: Installed, control_plane: Cluster, helm: Kubectl
) -> None:
    api = control_plane.api
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/fairlead"
    wait_for("it to lead", lambda: api.exists(lease) and api.get(lease)["spec"]["holderIdentity"].startswith("some"))
    hook = f"{_HOOKS}/{ADMISSION.format(namespace=NAMESPACE)}"
    bundle = wait_for("the API server to be told who answers", lambda: _bundle(api.get(hook)))
    assert base64.b64decode(bundle) == replica.authority().server_ca_bundle

    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    api.create(
        POLICIES, {**kind, "metadata": {"name": "some"}, "spec": {"scores": [{"name": "a", "expression": "1.0"}]}}
    )
    wait_for("its scheduler", lambda: api.exists(_CHILD))
    said = wait_for("the policy's status", lambda: _said(api.get(f"{POLICIES}/some")))
    assert said["scheduler"]["name"] == "fairlead"

    log = process.log_of(control_plane.folder, replica.name).read_text()
    helm("upgrade", "fairlead", str(CHART), "--namespace", NAMESPACE)
    assert _bundle(api.get(hook)) == bundle

    amiss = [line for line in log.splitlines() if '"level": "ERROR"' in line or "forbidden" in line.lower()]
    assert amiss == []


def test_a_namespace_that_is_deleted_leaves_nothing_that_blocks_or_endangers(
    replica: Installed, control_plane: Cluster, helm: Kubectl, kubectl: Kubectl
) -> None:
    api = control_plane.api
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    spec = {"filters": [{"name": "f", "expression": "true"}]}
    api.create(POLICIES, {**kind, "metadata": {"name": "some"}, "spec": spec})
    own = {f"fairlead.{NAMESPACE}.operator{one}" for one in ("", "-in-default", "-in-kube-system")}
    schedulers = {f"fairlead.{NAMESPACE}.{one}" for one in _ROLES}
    wait_for("all to belong to the namespace", lambda: {*_bound(api, owned=True)} >= own | schedulers)
    assert {one for one in _bound(api) if "uninstall" not in one} == own | schedulers  # helm's hook has its own
    assert "finalizers" not in api.get(f"{POLICIES}/some")["metadata"]

    replica.kill()
    kubectl("delete", "namespace", NAMESPACE, "--timeout=100s")
    wait_for("nobody to be bound", lambda: {one for one in _bound(api) if "uninstall" not in one} == set())
    kubectl("delete", "sep", "some", "--timeout=30s")
    api.create(POLICIES, {**kind, "metadata": {"name": "some"}, "spec": spec})
    kubectl("delete", "crd", "schedulerextenderpolicies.fairlead.dev", "--timeout=60s")

    helm("install", "fairlead", str(CHART), "--namespace", NAMESPACE, "--create-namespace")
    wait_for("the operator to be bound again", lambda: {one for one in _bound(api) if "uninstall" not in one} == own)


_ROLES = ("kube-scheduler", "volume-scheduler", "authentication-reader")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def _bound(api: Api, *, owned: bool = False) -> Iterator[str]:
    """The bindings outside of the namespace that give its accounts any right; those only that go with it."""
    found = [*api.items(f"{_RBAC}/clusterrolebindings"), *api.items(f"{_RBAC}/rolebindings")]
    for one in found:
        metadata, subjects = one["metadata"], one.get("subjects", ())
        if metadata.get("namespace") != NAMESPACE and any(who.get("namespace") == NAMESPACE for who in subjects):
            owners = [(owner["kind"], owner["name"]) for owner in metadata.get("ownerReferences", ())]
            if not owned or owners == [("Namespace", NAMESPACE)]:
                yield str(metadata["name"])


def _bundle(hook: Object) -> str | None:
    found: str | None = hook["webhooks"][0]["clientConfig"].get("caBundle")
    return found


def _said(policy: Object) -> Object | None:
    status: Object = policy["status"]
    return status if "observedGeneration" in status else None
