"""The chart, installed in a cluster in which no pod runs; and a leader in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import yaml
from write_crds import FILE

from chartkit import CHART, NAMESPACE, template
from fairlead.api.names import GROUP, PLURAL
from fairlead.render.engine import written
from fairlead.render.operator_settings import parse_settings
from operatekit import POLICIES
from operatorkit import Ground, ground
from testbed.api import ApiError, wait_for
from testbed.fixtures import Cluster, Kubectl

_RBAC = "rbac.authorization.k8s.io"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
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


@pytest.fixture(scope="module")
def with_crd(control_plane: Cluster) -> Iterator[Cluster]:
    crd = yaml.safe_load(FILE.read_text())
    path = f"{_CRDS}/{crd['metadata']['name']}"
    if not control_plane.api.exists(path):
        control_plane.api.create(_CRDS, crd)
    wait_for("the kind", lambda: control_plane.api.exists(POLICIES))
    yield control_plane
    control_plane.api.delete(path)
    wait_for("the kind to go", lambda: not control_plane.api.exists(path))


@pytest.fixture
def at_work(with_crd: Cluster, namespace: str) -> Iterator[Callable[..., Ground]]:
    with ExitStack() as stack:
        yield lambda settings="": stack.enter_context(ground(with_crd, namespace, parse_settings(settings)))
    for policy in with_crd.api.items(POLICIES):  # a leader that is still there would hold them again
        with_crd.api.patch(f"{POLICIES}/{policy['metadata']['name']}", {"metadata": {"finalizers": None}})
        with_crd.api.delete(f"{POLICIES}/{policy['metadata']['name']}")


def _gone(cluster: Cluster, path: str) -> None:
    wait_for("the namespace to go", lambda: not cluster.api.exists(path))


def _served(cluster: Cluster) -> bool:
    try:
        cluster.api.get(POLICIES)
    except ApiError:
        return False
    return True
