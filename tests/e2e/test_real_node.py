"""What people do to a cluster works on the real node: Services, names, roll-outs, images of one's own, charts."""

from collections.abc import Callable
from pathlib import Path

import yaml

from testbed import build, images
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl
from testbed.node_config import NODE, POD_IMAGE
from testbed.readiness import is_ready
from testbed.versions import program

_REAL = {"fairlead.dev/testbed": "real"}


def _deployment(name: str, *, replicas: int, path: str = "/", image: str = POD_IMAGE) -> Object:
    container = {
        "name": "serve",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["serve", ":8080"],
        "readinessProbe": {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 1, "failureThreshold": 1},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"nodeSelector": _REAL, "containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def _service(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def _pod(name: str, *arguments: str, image: str = POD_IMAGE) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": _REAL,
            "restartPolicy": "Never",
            "containers": [{"name": "pod", "image": image, "imagePullPolicy": "Never", "args": [*arguments]}],
        },
    }


def _phase_of(cluster: Cluster, namespace: str, name: str) -> Callable[[], str | None]:
    def phase() -> str | None:
        seen = str(cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"].get("phase", ""))
        return seen if seen in ("Succeeded", "Failed") else None

    return phase


def test_the_node_says_its_true_version_and_is_a_real_one(cluster: Cluster) -> None:
    info = cluster.api.get(f"/api/v1/nodes/{NODE}")["status"]["nodeInfo"]
    assert info["kubeletVersion"] == f"v{cluster.kubernetes}"
    assert info["containerRuntimeVersion"].startswith("containerd://")


def test_a_deployment_is_reached_by_the_name_of_its_service_from_another_pod(
    cluster: Cluster,
    namespace: str,
    kubectl: Kubectl,
) -> None:
    kubectl(
        "apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump_all([_deployment("web", replicas=2), _service("web")])
    )
    kubectl("rollout", "status", "-n", namespace, "deployment/web", "--timeout=120s")
    url = f"http://web.{namespace}.svc.cluster.local"
    kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(_pod("caller", "get", url)))
    ended = wait_for("the caller to end", _phase_of(cluster, namespace, "caller"))
    assert ended == "Succeeded", kubectl("logs", "-n", namespace, "caller")
    assert kubectl("logs", "-n", namespace, "caller").startswith("web-")


def test_a_rolling_update_whose_probe_fails_does_not_complete_and_takes_no_replica_away(
    cluster: Cluster,
    namespace: str,
    kubectl: Kubectl,
) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(_deployment("web", replicas=2)))
    kubectl("rollout", "status", "-n", namespace, "deployment/web", "--timeout=120s")
    broken = _deployment("web", replicas=2)
    broken["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = {
        "httpGet": {"path": "/", "port": 9},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    broken["spec"]["progressDeadlineSeconds"] = 5
    kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(broken))

    def gave_up() -> Object | None:
        status: Object = cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")["status"]
        progressing = next(one for one in status["conditions"] if one["type"] == "Progressing")
        return status if progressing.get("reason") == "ProgressDeadlineExceeded" else None

    status = wait_for("the roll-out to be given up", gave_up)
    assert status["updatedReplicas"] == 1
    assert status["availableReplicas"] == 2


def test_an_image_of_ones_own_is_loaded_and_run(
    cluster: Cluster, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    tag = f"example.com/own/{namespace}:1"
    archive = tmp_path / "own.tar"
    archive.write_bytes(images.archive(tag, build.build([program("pod")])["pod"]))
    cluster.provider.load(archive)
    kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(_pod("own", "exit", "0", image=tag)))
    assert wait_for("the pod to end", _phase_of(cluster, namespace, "own")) == "Succeeded"


def test_a_chart_is_installed(
    cluster: Cluster, namespace: str, kubectl: Kubectl, helm: Kubectl, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "web", "version": "0.1.0"}))
    (chart / "templates" / "all.yaml").write_text(yaml.safe_dump(_deployment("charted", replicas=1)))
    helm("install", "web", str(chart), "--namespace", namespace, "--wait", "--timeout", "60s")
    assert "charted" in kubectl("get", "deployments", "-n", namespace, "-o", "name")


def test_kwok_nodes_lie_beside_the_real_one(cluster: Cluster, kwok_nodes: Callable[[int], list[str]]) -> None:
    names = kwok_nodes(20)
    ready = {node["metadata"]["name"] for node in cluster.api.items("/api/v1/nodes") if is_ready(node)}
    assert ready == {NODE, *names}
