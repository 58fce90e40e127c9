"""The chart, installed in a cluster in which no pod runs; and a leader in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fairlead.api.names import GROUP, PLURAL
from fairlead.control.loop.queue import RESYNC_S
from fairlead.render.operator_settings import parse_settings
from fairlead.render.templates import written
from support.chart.chart import CHART, NAMESPACE, template
from support.control.leader import LeaderSetup, ground
from support.kube.crd import POLICIES, let_all_go, policies_served
from testbed.api import ApiError, Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_RBAC = "rbac.authorization.k8s.io"
_BINDINGS = f"/apis/{_RBAC}/v1/clusterrolebindings"


@pytest.fixture
def installed(control_plane: Cluster, kubectl: Kubectl, helm: Kubectl) -> Iterator[str]:
    """The chart, and what its hook would be given; no pod ever runs here."""
    hook = written([one for one in template() if _runs_before_delete(one)])
    hook = "---\n".join(part for part in hook.split("---\n") if "kind: Job" not in part)
    with ExitStack() as stack:  # each step is taken, though one before it fails
        stack.callback(_delete_namespaces, control_plane)
        stack.callback(kubectl, "delete", "--ignore-not-found", "crd", f"{PLURAL}.{GROUP}")
        stack.callback(helm, "uninstall", "--ignore-not-found", "fairlead", "--namespace", NAMESPACE, "--no-hooks")
        stack.callback(kubectl, "delete", "--ignore-not-found", "-f", "-", stdin=hook)
        every_right = "--set=metrics.secure=true"
        helm("install", "fairlead", str(CHART), "--namespace", NAMESPACE, "--create-namespace", every_right)
        kubectl("apply", "-f", "-", stdin=hook)
        wait_for("policies to be served", lambda: _served(control_plane))
        stack.callback(let_all_go, control_plane.api)
        yield NAMESPACE


@pytest.fixture(scope="module")
def with_crd(control_plane: Cluster) -> Iterator[Cluster]:
    with policies_served(control_plane.api):
        yield control_plane


@pytest.fixture
def at_work(with_crd: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LeaderSetup]]:
    """A leader that looks at all there is only when it begins: what it does within the time of a wait it was told."""
    monkeypatch.setattr("fairlead.control.loop.housekeeper._WATCHED_S", RESYNC_S)
    with ExitStack() as stack:
        yield lambda settings="": stack.enter_context(ground(with_crd, namespace, parse_settings(settings)))
    let_all_go(with_crd.api)


@pytest.fixture
def system(control_plane: Cluster) -> Iterator[str]:
    """The namespace of the chart; its pods may do little."""
    api, labels = control_plane.api, {"pod-security.kubernetes.io/enforce": "restricted"}
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
    try:
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_for("the namespace's service account", lambda: api.exists(account))
        yield NAMESPACE
    finally:
        api.delete(f"/api/v1/namespaces/{NAMESPACE}")
        wait_for("the namespace to go", lambda: not api.exists(f"/api/v1/namespaces/{NAMESPACE}"))


def _runs_before_delete(obj: Object) -> bool:
    return bool(obj["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete")


def _delete_namespaces(cluster: Cluster) -> None:
    """Delete what schedulers are bound by, and the namespaces."""
    for path in (_BINDINGS, f"/apis/{_RBAC}/v1/namespaces/kube-system/rolebindings"):
        cluster.api.delete(path, labelSelector="app.kubernetes.io/managed-by=fairlead")
    for path in [f"/api/v1/namespaces/{name}" for name in (NAMESPACE, "other-system")]:
        cluster.api.delete(path)
        wait_for("the namespace to go", lambda path=path: not cluster.api.exists(path))  # type: ignore[misc]


def _served(cluster: Cluster) -> bool:
    try:
        cluster.api.get(POLICIES)
    except ApiError:
        return False
    return True
