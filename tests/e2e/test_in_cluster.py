"""The image as people run it: pods of a restricted namespace, called by a scheduler's pod through a Service by name."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

import pytest
import yaml

from extender import Stage
from fairlead.cli.main import main
from testbed.api import Object
from testbed.fixtures import Cluster, Kubectl, MakeNodes
from testbed.operator_image import CHECKOUT

_MANIFESTS = Path(__file__).with_name("in_cluster.yaml")
_SERVER, _SCHEDULER = (("ca.crt", *(f"{name}.{kind}" for kind in ("crt", "key"))) for name in ("server", "scheduler"))
_FILTER = {
    "name": "pool",
    "expression": "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels['pool']",
    "reason": "another pool",
}
_SCORE = {"name": "points", "weight": 20, "expression": "double(node.metadata.labels['points'])"}
_NOTE = {"key": "fairlead.dev/pool", "expression": "node.metadata.labels['pool']"}
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_LOOK_AROUND = """
import json, os, pathlib, pkgutil, sys
import fairlead
from fairlead.render.shipped_templates import templates

def error(folder):
    try:
        pathlib.Path(folder, "one").touch()
    except OSError as refused:
        return refused.strerror
    return "written"

names = [each.name for each in pkgutil.walk_packages(fairlead.__path__, "fairlead.")]
for name in names:
    if name != "fairlead.__main__":
        __import__(name)
cached = [getattr(getattr(module, "__spec__", None), "cached", None) for module in sys.modules.values()]
print(json.dumps({
    "user": os.getuid(),
    "refused": sorted({error(folder) for folder in ("/", "/tmp", "/opt/fairlead")}),
    "kopf": "kopf" in sys.modules,
    "templates": sorted(templates()),
    "not compiled": [one for one in cached if one and one.startswith("/opt") and not os.path.exists(one)],
}))
"""


@dataclass(frozen=True, slots=True)
class System:
    """The namespace of the two, which is also the name of the scheduler."""

    name: str
    cluster: Cluster

    @property
    def path(self) -> str:
        """Where its pods are."""
        return f"/api/v1/namespaces/{self.name}/pods"

    def pods(self, app: str) -> list[Object]:
        """The pods of one of the two."""
        return self.cluster.api.items(self.path, labelSelector=f"app={app}")

    def log(self, pod: Object) -> list[str]:
        """What it wrote so far."""
        return self.cluster.api.text(f"{self.path}/{pod['metadata']['name']}/log").splitlines()


@pytest.fixture
def system(
    cluster: Cluster, kubectl: Kubectl, operator_image_tag: str, scheduler_image_tag: str, tmp_path: Path
) -> Iterator[System]:
    name = "test-system"
    assert main(["certs", "--out", str(tmp_path), f"--host=fairlead.{name}.svc"]) == 0
    spec = {"schedulerName": name, "filters": [_FILTER], "scores": [_SCORE], "binding": {"annotations": [_NOTE]}}
    policy = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "pool"}}
    file = tmp_path / "pool.yaml"
    file.write_text(yaml.safe_dump(policy | {"spec": spec}))
    filled = Template(_MANIFESTS.read_text()).substitute(
        system=name, image=operator_image_tag, scheduler_image=scheduler_image_tag
    )
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": _RESTRICTED}})
    try:
        for secret, files in (("server", _SERVER), ("scheduler", _SCHEDULER)):
            sources = (f"--from-file={tmp_path / file}" for file in files)
            kubectl("create", "secret", "generic", secret, "-n", name, *sources)
        kubectl("create", "configmap", "policies", "-n", name, f"--from-file={file}")
        kubectl("apply", "-f", "-", stdin=filled)
        yield System(name, cluster)
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=filled)
        cluster.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def nodes(cluster: Cluster, kwok_nodes: MakeNodes) -> list[str]:
    """Every other node in one pool, and the later the better."""
    made = kwok_nodes(4)
    for number, node in enumerate(made):
        labels = {"pool": "ab"[number % 2], "points": str(10 * number)}
        cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})
    return made


def test_all_of_it_can_be_loaded_where_nothing_is_allowed(
    cluster: Cluster, namespace: str, kubectl: Kubectl, operator_image_tag: str
) -> None:
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": _RESTRICTED}})
    container = {
        "name": "look",
        "image": operator_image_tag,
        "imagePullPolicy": "Never",
        "command": ["python", "-c", _LOOK_AROUND],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "nodeSelector": {"fairlead.dev/testbed": "real"},
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },  # the user is the image's
        "containers": [container],
    }
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "look"}, "spec": spec})
    kubectl("wait", "pod/look", "-n", namespace, "--for=jsonpath={.status..terminated.reason}", "--timeout=120s")

    folder = CHECKOUT / "templates"
    said = kubectl("logs", "look", "-n", namespace)
    assert said.startswith("{")
    assert json.loads(said) == {
        "user": 65532,
        "refused": ["Read-only file system"],
        "kopf": True,
        "templates": sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.yaml")),
        "not compiled": [],
    }


def test_a_policy_decides_through_a_service_that_is_called_by_name(
    cluster: Cluster, namespace: str, nodes: list[str], system: System, kubectl: Kubectl
) -> None:
    for app in ("fairlead", "scheduler"):
        kubectl("rollout", "status", "-n", system.name, f"deployment/{app}", "--timeout=120s")
    stage = Stage(api=cluster.api, name=namespace, start_scheduler=lambda _: str)
    stage.open()

    for pool, best in {"a": nodes[2], "b": nodes[3]}.items():
        stage.make_pods([pool], labels={"pool": pool}, scheduler=system.name)
        assert stage.placed(pool) == best
        assert stage.pod(pool)["metadata"]["annotations"] == {"fairlead.dev/pool": pool}
    stage.make_pods(["nowhere"], labels={"pool": "c"}, scheduler=system.name)
    assert stage.refusal("nowhere").startswith("0/5 nodes are available: 5 another pool")

    pods = system.pods("fairlead")
    said = [{str(json.loads(line)["message"]) for line in system.log(pod)} for pod in pods]
    assert [{"server.listening", "server.ready"} <= each for each in said] == [True, True]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0]

    # one of the two dies: the other answers
    cluster.api.delete(f"{system.path}/{pods[0]['metadata']['name']}", gracePeriodSeconds="0")
    stage.make_pods(["after"], labels={"pool": "a"}, scheduler=system.name)
    assert stage.placed("after") == nodes[2]
