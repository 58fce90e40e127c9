"""A node that stops while a scheduler's configuration is checked on it says nothing against the configuration."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.chart.release import PODS, SCHEDULER, Release, released
from testbed import process, sandbox
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster
from testbed.readiness import is_ready

_FILTERS = [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}]
_CHECK = "--write-config-to=/tmp/config.yaml"


@pytest.fixture
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    with released(cluster, operator_image_tag, 1) as made:
        made.install()
        yield made


def in_containers(cluster: Cluster) -> list[psutil.Process]:
    """The processes of the node's containers."""
    group = sandbox.Sandbox(cluster.folder).cgroup
    found = []
    for one in psutil.process_iter():
        with suppress(OSError):
            if f"/{group}/" in Path(f"/proc/{one.pid}/cgroup").read_text():
                found.append(one)
    return found


def held(cluster: Cluster, within_s: float = 120.0) -> psutil.Process:
    """A check of a configuration, as soon as it runs, and held from then on."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        for one in in_containers(cluster):
            try:
                if _CHECK in one.cmdline() and "kube-scheduler" in one.cmdline()[0]:
                    one.suspend()
                    return one
            except psutil.Error:
                continue
    raise AssertionError("no check of a configuration ran")


def stop_node(cluster: Cluster) -> None:
    """Stop the kubelet, the container runtime and all containers, as a machine that loses power does."""
    folder = cluster.folder
    programs = [one for name in ("kubelet", "containerd") if (one := process.find(folder, name)) is not None]
    process.kill(programs)
    shims = [one for one in process.all_of(folder) if _is_shim(one)]
    process.kill(shims)
    process.kill(in_containers(cluster))


def _is_shim(one: psutil.Process) -> bool:
    try:
        return "containerd-shim" in one.name()
    except psutil.Error:
        return False


def checks(release: Release) -> list[Object]:
    return [
        status
        for pod in release.pods(SCHEDULER)
        for status in pod["status"].get("initContainerStatuses", [])
        if status["name"] == "validate"
    ]


def test_a_node_that_stops_while_a_configuration_is_checked(release: Release, cluster: Cluster) -> None:
    release.put("pools", filters=_FILTERS)
    held(cluster)
    running: Callable[[], bool] = lambda: any("running" in one["state"] for one in checks(release))  # noqa: E731
    wait_for("the check to be seen", running)
    before = {one["containerID"] for one in checks(release) if "running" in one["state"]}
    stop_node(cluster)
    cluster.provider.up()
    (node,) = cluster.api.items("/api/v1/nodes", labelSelector="fairlead.dev/testbed=real")
    wait_for("the node", lambda: is_ready(cluster.api.get(f"/api/v1/nodes/{node['metadata']['name']}")))
    release.ready("pools", within="240s")
    after = checks(release)
    assert before - {one.get("containerID") for one in after}, "no check was lost with the node"
    # a kubelet may have removed what was lost, and then says nothing of it
    lost = [one["lastState"]["terminated"] for one in after if "terminated" in one.get("lastState", {})]
    assert [one["exitCode"] for one in lost if one["exitCode"] == 0] == []
    assert cluster.api.items(PODS, labelSelector=SCHEDULER), "the pods are those that were being made"
