"""Outcomes of pods are counted once while the API server is away, and while replicas are replaced."""

import http.client
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from fairlead.learned.pairs import SHARDS
from fairlead.learned.published import LABEL, PREFIX, decode
from fairlead.webhook.learning.outcome_watch import PUBLISH_S
from support.kube.crd import let_all_go, policies_served
from support.learned.pods import failed_now
from support.process.operating import Operating
from support.stream import Follow
from testbed import process
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes, raised
from testbed.layout import folder_of
from testbed.providers import Local

AWAY_S: Final = 60.0 if "FAIRLEAD_LEARNING_S" in os.environ else 20.0
STREAM_S: Final = float(os.environ.get("FAIRLEAD_LEARNING_S", "25"))
_A_SECOND: Final = 20
_KEPT: Final = 200
_NODES: Final = 10
_TYPES: Final = 7
HALF_LIFE_S: Final = 720 * 3600
RULE: Final = {"name": "works", "kubeRL": {"type": "'demo'", "halfLife": "720h"}}


@pytest.fixture(scope="module")
def local(this_run: str, kubernetes_version: str) -> Local:
    """A cluster that nobody shares."""
    return Local(f"test-learning-{this_run}", kubernetes=kubernetes_version, node=False)


@pytest.fixture(scope="module")
def control_plane(local: Local, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Tests here use this one."""
    with raised(local, kubernetes_version, pytestconfig) as cluster:
        yield cluster


class Scene:
    """Replicas of the operator, and pods that fail."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, nodes: Sequence[str]) -> None:
        self.cluster, self.namespace, self.folder, self.nodes = cluster, namespace, folder, nodes
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.replicas: list[Operating] = []
        self.failed = 0
        self._failed_at: list[float] = []

    def start(self) -> Operating:
        """Start another replica."""
        folder = self.folder / str(len(self.replicas))
        folder.mkdir()
        self.replicas.append(Operating(self.cluster, self.namespace, folder))
        self.replicas[-1].start()
        return self.replicas[-1]

    def process_of(self, replica: Operating) -> psutil.Process:
        """Return the process of a replica."""
        found = process.find(self.cluster.folder, replica.name)
        assert found is not None
        return found

    def leader(self) -> Operating:
        """Return the replica that leads, once one does."""
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/fairlead"

        def found() -> Operating | None:
            holder = str(self.cluster.api.get(lease)["spec"].get("holderIdentity", ""))
            return next((one for one in self.replicas if holder.startswith(f"{one.name}_") or holder == one.name), None)

        return wait_for("a replica to lead", found)

    def fail(self, number: int) -> list[str]:
        """Have as many pods fail, and return their names."""
        api = self.cluster.api
        names = [f"fails-{self.failed + one}" for one in range(number)]
        self.failed += number
        api.create_all(self.pods, [self._pod(name, self.nodes[0]) for name in names])
        for name in names:
            wait_for(f"{name} to run", partial(self._runs, name))
            api.patch(f"{self.pods}/{name}/status", {"status": failed_now(name)})
        return names

    def fail_at_once(self, number: int) -> None:
        """Make one pod that has failed, of one of many types on one of the nodes, and delete an old one."""
        node, name = self.nodes[number % len(self.nodes)], f"stream-{number}"
        self.cluster.api.create(self.pods, self._pod(name, node, app=f"type-{number % _TYPES}"))
        status = failed_now(name) | {"phase": "Failed"}
        self.cluster.api.patch(f"{self.pods}/{name}/status", {"status": status})
        self._failed_at = [*self._failed_at[:1], time.monotonic()]
        if number >= _KEPT:
            self.cluster.api.delete(f"{self.pods}/stream-{number - _KEPT}")
        self.failed += 1

    def _pod(self, name: str, node: str, **labels: str) -> Object:
        spec = {"nodeName": node, "schedulerName": self.namespace, "terminationGracePeriodSeconds": 0}
        spec |= {"containers": [{"name": "main", "image": "main"}]}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _runs(self, name: str) -> bool:
        return bool(self.cluster.api.get(f"{self.pods}/{name}").get("status", {}).get("phase") == "Running")

    def counted(self) -> int:
        """Return how many outcomes are published: those of a stream weigh a little less than one, as they get older."""
        found = 0.0
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        for config_map in self.cluster.api.items(path, labelSelector=LABEL):
            state = decode(config_map)
            assert state is not None
            pairs: Any = state.document.value or {}
            found += sum(pair.weight for pair in pairs.values())
        mean_age_s = (self._failed_at[-1] - self._failed_at[0]) / 2 if self._failed_at else 0.0
        return round(found * 2 ** (mean_age_s / HALF_LIFE_S))

    def until_all_are_counted(self) -> None:
        """Wait until each outcome is published, and none of them twice."""
        wait_for("each outcome to be published", lambda: self.counted() >= self.failed, timeout_s=120)
        assert self.counted() == self.failed


@pytest.fixture
def scene(control_plane: Cluster, namespace: str, tmp_path: Path, kwok_nodes: MakeNodes) -> Iterator[Scene]:
    made = Scene(control_plane, namespace, tmp_path, kwok_nodes(_NODES))
    with policies_served(control_plane.api):
        try:
            made.start()
            made.start()
            yield made
        finally:
            for one in made.replicas:
                one.kill()
            let_all_go(control_plane.api)


def test_each_outcome_counts_once_whatever_becomes_of_the_api_server_and_of_replicas(scene: Scene) -> None:
    for one in scene.replicas:
        one.put("learns", scores=[RULE])
    wait_for("the outcomes to be watched", lambda: "[+] outcomes" in scene.leader().probe("readyz")[1])
    scene.fail(5)
    scene.until_all_are_counted()

    scene.fail(3)  # it is not published yet
    api_server = process.find(folder_of(scene.cluster.provider.cluster), "kube-apiserver")
    assert api_server is not None
    api_server.suspend()
    try:
        with pytest.raises(psutil.TimeoutExpired):
            api_server.wait(timeout=AWAY_S)
    finally:
        api_server.resume()
    scene.until_all_are_counted()
    scene.fail(2)
    scene.until_all_are_counted()

    for _ in range(2):
        leader = scene.leader()
        observed = _observed(leader)
        names = scene.fail(2)
        wait_for("the leader to see them", lambda: _observed(leader) == observed + 2)  # noqa: B023
        for name in names:
            scene.cluster.api.delete(f"{scene.pods}/{name}")  # so that nobody can see them again
        scene.start()
        ending = scene.process_of(leader)
        ending.terminate()
        ending.wait(timeout=60)
        scene.fail(1)
        scene.until_all_are_counted()
    assert scene.counted() == scene.failed == 16


def test_a_stream_of_outcomes_is_written_each_15_s(scene: Scene) -> None:
    """20 pods a second: a shard is written no more often, and nothing is lost."""
    for one in scene.replicas:
        one.put("learns", scores=[{"name": "works", "kubeRL": {"halfLife": "720h"}}])
    wait_for("the outcomes to be watched", lambda: "[+] outcomes" in scene.leader().probe("readyz")[1])
    with closing(Follow(scene.cluster.audit_log)) as log:
        begun, number = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < STREAM_S:
            if number < passed * _A_SECOND:
                scene.fail_at_once(number)
                number += 1
            else:
                time.sleep(1 / _A_SECOND)  # a pace, which no condition ends
        scene.until_all_are_counted()
        lasted = time.monotonic() - begun
        writes, refused = _writes(log)
    assert number > STREAM_S * _A_SECOND / 2
    assert 1 < len(writes) <= SHARDS
    assert max(writes.values()) <= lasted / PUBLISH_S + 1
    assert not refused


def _writes(log: Follow) -> tuple[Counter[str], list[Object]]:
    """Return how often each ConfigMap of learned state was written, and the writes that were refused."""
    writes, refused = Counter[str](), list[Object]()
    for line in log.lines():
        event = json.loads(line)
        at = event.get("objectRef", {})
        is_write = event["stage"] == "ResponseComplete" and event["verb"] in ("create", "update", "patch")
        if is_write and at.get("resource") == "configmaps" and PREFIX in str(at.get("name", "")):
            writes[at["name"]] += 1
            if event["responseStatus"]["code"] >= http.client.BAD_REQUEST:
                refused.append(event)
    return writes, refused


def _observed(replica: Operating) -> float:
    lines = replica.probe("metrics")[1].splitlines()
    return sum(float(one.rpartition(" ")[2]) for one in lines if one.startswith("fairlead_learned_observations_total{"))
