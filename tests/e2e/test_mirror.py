"""A cluster behind a mirror of images whose API server reaches only the nodes' own network, at one port."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from extender import Stage
from fairlead.cli.main import main
from support.chart.chart import NAMESPACE
from support.chart.release import (
    DEPLOYMENT,
    HOOKS,
    OPERATOR,
    PODS,
    Release,
    document,
    pods_of_one_test,
    refused,
    released,
)
from support.kube.crd import POLICIES
from support.kube.registry import registry
from testbed import build, images, operator_image
from testbed.api import wait_for
from testbed.fixtures import Cluster
from testbed.versions import program

if TYPE_CHECKING:
    from testbed.api import Object

ADMISSION, PROBES = 10270, 18080  # the kubelet has 10250 here
_FILTERS = [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}]


@pytest.fixture(scope="module")
def mirror(
    cluster: Cluster, built_image: operator_image.Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a registry with both images; no other can be reached."""
    scheduler = build.build([program("kube-scheduler", cluster.kubernetes)])["kube-scheduler"]
    archive = Path(tmp_path_factory.mktemp("mirror"), "scheduler.tar")
    archive.write_bytes(images.of_kubernetes(f"any/kube-scheduler:v{cluster.kubernetes}", scheduler))
    with registry(cluster, built_image.archive, archive) as address:
        yield address
    archive.unlink()


@pytest.fixture(scope="module")
def release(cluster: Cluster, built_image: operator_image.Image, mirror: str) -> Iterator[Release]:
    """Installed with the mirror as the registry of everything, and in the node's network."""
    repository, _, tag = built_image.tag.rpartition(":")
    everything: Object = {"global": {"imageRegistry": mirror}}
    with released(cluster, built_image.tag, 2) as made:
        made.install(
            image={
                "registry": "ghcr.io",
                "repository": repository.rpartition("/")[2],
                "tag": tag,
                "pullPolicy": "Always",
            },
            schedulerDefaults={"imagePullPolicy": "Always", "replicas": 1, "verbosity": 2},
            hostNetwork=True,
            ports={"admission": ADMISSION, "probes": PROBES},
            replicas=1,
            **everything,
        )
        yield made


@pytest.fixture
def pods(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods of this test alone, whose policies go with them."""
    with pods_of_one_test(release, namespace) as stage:
        yield stage


def test_a_policy_for_a_scheduler_that_is_not_listed_becomes_ready(release: Release, pods: Stage, mirror: str) -> None:
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="180s")
    pods.make_pods(["a"], scheduler="fairlead")
    assert pods.placed("a") == release.nodes[0]
    spec = release.api.get(DEPLOYMENT)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["image"] == f"{mirror}/kube-scheduler:v{release.cluster.kubernetes}"
    assert (container["imagePullPolicy"], spec["replicas"], "--v=2" in container["args"]) == ("Always", 1, True)


def test_policies_are_checked_at_the_port_of_the_nodes_network(release: Release, pods: Stage) -> None:
    (pod,) = release.pods(OPERATOR)
    assert pod["status"]["podIP"] == pod["status"]["hostIP"]
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    (hook,) = release.api.items(HOOKS)
    assert [one["clientConfig"]["service"]["port"] for one in hook["webhooks"]] == [ADMISSION]
    bad = document("bad", filters=[{"name": "pool", "expression": "node.metadata.nam == 'a'"}])
    said = refused(lambda: release.kubectl("apply", "--dry-run=server", "-f", "-", stdin=bad))
    assert "spec.filters[0].expression" in said
    listening = {port["name"]: port["hostPort"] for port in pod["spec"]["containers"][0]["ports"]}
    assert listening == {"webhook": 8443, "admission": ADMISSION, "probes": PROBES}
    assert release.api.text(f"{PODS}/{pod['metadata']['name']}:{PROBES}/proxy/readyz")


def test_a_check_that_the_api_server_does_not_reach_is_not_silent(
    release: Release, pods: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    service = f"/api/v1/namespaces/{NAMESPACE}/services/fairlead"
    before = release.api.get(service)["spec"]["ports"]
    blocked = [{**one, "targetPort": 9} if one["port"] == ADMISSION else one for one in before]
    path = f"{POLICIES}/bad"
    bad = document("bad", filters=[{"name": "pool", "expression": "node.metadata.nam == 'a'"}])
    release.api.patch(service, {"spec": {"ports": blocked}})
    try:
        wait_for("the port to be blocked", lambda: not refused(lambda: _apply(release, bad, "--dry-run=server")))
        _apply(release, bad)
        (message,) = wait_for("a warning", lambda: _unreviewed(release.api.get(path)), timeout_s=60)
        assert f"let it reach port {ADMISSION}" in message
        assert "hostNetwork: true" in message
        (pod,) = release.pods(OPERATOR)
        metrics = release.api.text(f"{PODS}/{pod['metadata']['name']}:{PROBES}/proxy/metrics")
        assert 'fairlead_policy_unreviewed{policy="bad"} 1' in metrics
        assert main(["status", "--kubeconfig", str(release.cluster.kubeconfig), "-o", "json"]) == 1
        (problem,) = [one for one in json.loads(capsys.readouterr().out)["wrong"] if one["reason"] == "NotReviewed"]
        assert problem["message"].endswith("so policies were not reviewed: bad")
        assert all(cure in problem["cure"] for cure in ("ports.admission", "hostNetwork"))
    finally:
        release.api.patch(service, {"spec": {"ports": before}})
    wait_for("the port to be open", lambda: refused(lambda: _apply(release, bad, "--dry-run=server")))
    release.put("bad", filters=_FILTERS)
    wait_for("the warning to go", lambda: not _unreviewed(release.api.get(path)), timeout_s=60)


def _apply(release: Release, policy: str, *more: str) -> str:
    return release.kubectl("apply", "-f", "-", *more, stdin=policy)


def _unreviewed(policy: "Object") -> list[str]:
    warnings = policy.get("status", {}).get("warnings", ())
    return [one["message"] for one in warnings if one["reason"] == "NotReviewed"]
