"""The guide's manifest of an extender in its scheduler's pod, as it stands there, on the real node."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli.main import main
from support.docs.pages import CHECKOUT, Page
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl, MakeNodes
from testbed.node_template import equal

_NAME = "my-scheduler"
_PAGE = Page(CHECKOUT / "docs" / "guide" / "extender-in-one-pod.md")
_IMAGES = (r"registry\.k8s\.io/kube-scheduler:\S+", r"ghcr\.io/fairlead-dev/fairlead:\S+")
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_SECRETS = {"extender-tls": "server", "scheduler-tls": "scheduler"}
_MEASURED = {"load": "measured"}
_CPU = {"std-free-cpu": "400", "mean-free-memory": "4294967296"}


@pytest.fixture
def in_one_pod(
    cluster: Cluster, kubectl: Kubectl, operator_image_tag: str, scheduler_image_tag: str, tmp_path: Path
) -> Iterator[str]:
    """Its namespace, which has the scheduler's name."""
    (manifest,) = (block.text for block in _PAGE.blocks() if block.title == "in-one-pod.yaml")
    for written, built in zip(_IMAGES, (scheduler_image_tag, operator_image_tag), strict=True):
        manifest, count = re.subn(written, built, manifest)
        assert count == 1
    assert main(["certs", "--out", str(tmp_path)]) == 0
    folder = CHECKOUT / "examples" / "kube-safe-scheduler"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAME, "labels": _RESTRICTED}})
    try:
        for secret, pair in _SECRETS.items():
            files = [f"--from-file={tmp_path / name}" for name in ("ca.crt", f"{pair}.crt", f"{pair}.key")]
            kubectl("create", "secret", "generic", secret, "-n", _NAME, *files)
        kubectl("create", "configmap", "policies", "-n", _NAME, f"--from-file={folder}")
        kubectl("apply", "--validate=strict", "-f", "-", stdin=manifest)
        yield _NAME
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=manifest)
        cluster.api.delete(f"/api/v1/namespaces/{_NAME}")


def _pod(name: str, cpu: str) -> Object:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": _NAME, "nodeSelector": _MEASURED, "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec | {"tolerations": [{"operator": "Exists"}]}}


def test_it_places_and_rejects_as_its_policies_say(
    cluster: Cluster, namespace: str, in_one_pod: str, kubectl: Kubectl, kwok_nodes: MakeNodes
) -> None:
    kubectl("rollout", "status", "-n", in_one_pod, f"deployment/{_NAME}", "--timeout=120s")
    idle, overloaded = kwok_nodes(2, equal(cpu="4", memory="8Gi", labels=_MEASURED))
    for node, free in ((idle, "2500"), (overloaded, "1100")):
        annotations = _CPU | {"mean-free-cpu": free}
        cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: cluster.api.exists(account))

    def placed(name: str) -> str | None:
        return str(cluster.api.get(f"{pods}/{name}")["spec"].get("nodeName", "")) or None

    def refusal(name: str, text: str) -> str | None:
        conditions = cluster.api.get(f"{pods}/{name}").get("status", {}).get("conditions", [])
        return next((one["message"] for one in conditions if text in one.get("message", "")), None)

    cluster.api.create(pods, _pod("web", "500m"))
    assert wait_for("web to be placed", lambda: placed("web")) == idle
    cluster.api.create(pods, _pod("large", "3"))
    assert wait_for("large to be rejected", lambda: refusal("large", "2 overload risk on cpu"))
    assert "server.ready" in kubectl("logs", f"deployment/{_NAME}", "-c", "extender", "-n", in_one_pod)
