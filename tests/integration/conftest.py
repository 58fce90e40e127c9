"""The chart, installed in a cluster in which no pod runs."""

from collections.abc import Iterator

import pytest

from chartkit import CHART, NAMESPACE, template
from fairlead.api.names import GROUP, PLURAL
from fairlead.render.engine import written
from operatekit import POLICIES
from testbed.api import ApiError, wait_for
from testbed.fixtures import Cluster, Kubectl

_RBAC = "rbac.authorization.k8s.io"
_BINDINGS = f"/apis/{_RBAC}/v1/clusterrolebindings"


@pytest.fixture
def installed(control_plane: Cluster, kubectl: Kubectl, helm: Kubectl) -> Iterator[str]:
    """The chart, and what its hook would be given; no pod ever runs here."""
    helm("install", "fairlead", str(CHART), "--namespace", NAMESPACE, "--create-namespace")
    hook = written([one for one in template() if "helm.sh/hook" in one["metadata"].get("annotations", {})])
    hook = "---\n".join(part for part in hook.split("---\n") if "kind: Job" not in part)
    kubectl("apply", "-f", "-", stdin=hook)
    wait_for("policies to be served", lambda: _served(control_plane))
    yield NAMESPACE
    kubectl("delete", "--ignore-not-found", "-f", "-", stdin=hook)
    helm("uninstall", "fairlead", "--namespace", NAMESPACE, "--no-hooks")
    for one in control_plane.api.items(POLICIES):
        control_plane.api.patch(f"{POLICIES}/{one['metadata']['name']}", {"metadata": {"finalizers": []}})
    kubectl("delete", "crd", f"{PLURAL}.{GROUP}")
    for path in (_BINDINGS, f"/apis/{_RBAC}/v1/namespaces/kube-system/rolebindings"):
        control_plane.api.delete(path, labelSelector="app.kubernetes.io/managed-by=fairlead")
    for name in (NAMESPACE, "other-system"):
        control_plane.api.delete(f"/api/v1/namespaces/{name}")
        _gone(control_plane, f"/api/v1/namespaces/{name}")


def _gone(cluster: Cluster, path: str) -> None:
    wait_for("the namespace to go", lambda: not cluster.api.exists(path))


def _served(cluster: Cluster) -> bool:
    try:
        cluster.api.get(POLICIES)
    except ApiError:
        return False
    return True
