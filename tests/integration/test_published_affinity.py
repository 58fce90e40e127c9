"""The leader publishes node affinity on a real API server, whose admission policy adds it to pods."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import pytest

from fairlead.cli.main import main
from fairlead.control.publication.affinity_publisher import ADDED_BY
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, as_created
from fairlead.render.operator_settings import parse_settings
from fairlead.replica_state import PolicyState, PublicationGaps, PublicationState, ReplicaState
from fairlead.webhook.publication.affinity_watch import AffinityWatch
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from scripted.loop import run_to_its_end
from support.chart.published_affinity import affinity_added, affinity_of, compiled, state_of
from support.control.leader import LeaderSetup
from support.kube.crd import POLICIES
from support.kube.taints import wait_until_untainted
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

pytestmark = pytest.mark.since("1.36")
PODS = "/api/v1/namespaces/default/pods"
POOL = {"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}
FREE = {"name": "room", "expression": "free['cpu'] > 0.5"}
TEAM = {
    "name": "team",
    "expression": "node.metadata.labels[?'team'].orValue('') == pod.metadata.labels[?'team'].orValue('')",
}


@pytest.fixture
def adds(with_crd: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[Cluster]:
    """A cluster with what the chart makes of publishedAffinity."""
    with affinity_added(with_crd, kubectl, namespace):
        yield with_crd


def serve(ground: LeaderSetup, name: str, **spec: Any) -> None:
    """Apply a policy that the replica serves, with what it publishes."""
    ground.apply(name, **({"schedulerName": "s", "publish": "NodeAffinity"} | spec))
    policy = ground.cluster.api.get(f"{POLICIES}/{name}")
    ground.serve(policy, publication=state_of(policy).publication)


def pod_of(name: str = "some", **labels: str) -> Object:
    spec = {"schedulerName": "s", "containers": [{"name": "a", "image": "a"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def created(ground: LeaderSetup, **labels: str) -> Object:
    """Return a pod as the API server would create it."""
    return ground.cluster.api.create(f"{PODS}?dryRun=All", pod_of(**labels))


def explained(ground: LeaderSetup, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what `fairlead explain` says of a pod that the API server has created, with a node of each pool."""
    api, labels = ground.cluster.api, {"team": "red"}
    for pool in ("a", "b"):
        api.create("/api/v1/nodes", {"metadata": {"name": f"of-{pool}", "labels": {"pool": pool, **labels}}})
        api.patch(f"/api/v1/nodes/of-{pool}/status", {"status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    wait_until_untainted(api, "of-a", "of-b")
    api.create("/api/v1/namespaces/default/pods", pod_of(**labels))
    code = main(["explain", "some", "-n", "default", "--kubeconfig", str(ground.cluster.kubeconfig), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    for path in ("/api/v1/namespaces/default/pods/some", "/api/v1/nodes/of-a", "/api/v1/nodes/of-b"):
        api.delete(path)
    return found


def _is_told(ground: LeaderSetup, name: str, reason: str) -> bool | None:
    return ground.condition(name, "Published")[1] == reason or None


def test_pods_get_what_the_policies_that_serve_publish(
    at_work: Callable[..., LeaderSetup], adds: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    ground = at_work("publishedAffinity: {enabled: true}")
    serve(ground, "p", filters=[POOL])
    serve(ground, "q", filters=[TEAM, FREE])
    wait_for("the conditions", lambda: ground.condition("p", "Published") == ("True", "Exact") or None)
    wait_for("the other's", lambda: ground.condition("q", "Published") == ("True", "Wider") or None)
    published = adds.api.get(f"{PUBLISHED_AFFINITIES.path}/s")["spec"]
    wait_for("pods to get it", lambda: published["hash"] in created(ground)["metadata"]["annotations"].values() or None)
    for labels in ({"team": "red"}, {"team": ""}, {}):
        made = created(ground, **labels)
        plain = {**made, "spec": {key: value for key, value in made["spec"].items() if key != "affinity"}}
        plain["metadata"] = {**made["metadata"], "annotations": {}}
        expected = as_created(plain, {}, published)
        assert affinity_of(made) == affinity_of(expected)
        assert made["metadata"]["annotations"] == expected["metadata"]["annotations"]
    status = adds.api.get(f"{POLICIES}/q")["status"]["published"]
    assert [one["rule"] for one in status["leftOut"]] == ["room"]
    found = explained(ground, capsys)
    assert found["publishedAffinity"]["hash"] == found["publishedAffinity"]["currentHash"] == published["hash"]
    assert [(one["policy"], one["key"], one["values"]) for one in found["publishedAffinity"]["requirements"]] == [
        ("p", "pool", ["a"]),
        ("q", "team", ["red"]),
    ]
    [near, far] = found["nodes"]
    assert (near["fits"], far["unfit"][0]["publishedBy"]) == (True, ["p"])

    serve(ground, "p", filters=[POOL], publish="None")
    wait_for("it to be gone", lambda: "pool" not in str(affinity_of(created(ground, team="red"))) or None)
    adds.api.delete(f"{POLICIES}/q")
    wait_for("nothing to be published", lambda: not adds.api.exists(f"{PUBLISHED_AFFINITIES.path}/s") or None)
    assert PUBLISHED_ANNOTATION not in created(ground, team="red")["metadata"].get("annotations", {})


def test_what_is_not_published_is_told(
    at_work: Callable[..., LeaderSetup], adds: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.control.publication.affinity_publisher.LOOK_S", 0.2)
    ground = at_work("publishedAffinity: {enabled: true}")
    serve(ground, "nothing", filters=[FREE])
    serve(
        ground,
        "unknown",
        filters=[POOL],
        match={"conditions": [{"name": "urgent", "expression": "pod.spec.priority > 1"}]},
    )
    serve(ground, "some", filters=[POOL])
    for name, reason in (("nothing", "NothingToPublish"), ("unknown", "MatchNotPublishable")):
        wait_for(f"{name} to be told", partial(_is_told, ground, name, reason))
    path = wait_for(
        "the object",
        lambda: f"{PUBLISHED_AFFINITIES.path}/s" if adds.api.exists(f"{PUBLISHED_AFFINITIES.path}/s") else None,
    )
    spec = adds.api.get(path)["spec"]
    adds.api.patch(path, {"spec": {"policies": []}})
    wait_for("an edit to be put back", lambda: adds.api.get(path)["spec"] == spec or None)
    adds.api.delete(ADDED_BY[1].named("", f"fairlead.{namespace}.published-affinity").path)
    wait_for("that to be told", lambda: ground.condition("some", "Published") == ("False", "NotInstalled") or None)


def test_a_cluster_that_does_not_publish_says_so(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    serve(ground, "p", filters=[POOL])
    wait_for("that to be told", lambda: ground.condition("p", "Published") == ("False", "NotInstalled") or None)
    (message,) = [
        one["message"]
        for one in ground.cluster.api.get(f"{POLICIES}/p")["status"]["conditions"]
        if one["type"] == "Published"
    ]
    assert "publishedAffinity.enabled is false" in message


class Watching:
    """The part of a replica that watches what is published, and the pods and nodes of the cluster."""

    def __init__(self, cluster: Cluster, namespace: str, policy: Object) -> None:
        self._cluster, self._namespace, self._policy = cluster, namespace, policy
        self._metrics, self._over, self._begun = Metrics(), threading.Event(), threading.Event()
        self._watch: AffinityWatch | None = None
        self._thread = threading.Thread(target=lambda: run_to_its_end(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    @property
    def gaps(self) -> PublicationGaps | None:
        assert self._watch is not None
        one = PolicyState(uid="", generation="", reason="", publication=PublicationState())
        return self._watch.report(ReplicaState(policies={"p": one})).policies["p"].gaps

    def has_counted(self, pods: int) -> bool | None:
        """Return whether so many pods had what the policy publishes."""
        return f'fairlead_published_pods_total{{policy="p"}} {pods}.0' in self._metrics.exposition().decode() or None

    async def _run(self) -> None:
        async with Client(from_kubeconfig([self._cluster.kubeconfig])) as client:
            mirror = Mirror(time.time_ns)
            feed = MirrorFeed(client, mirror)
            self._watch = watch = AffinityWatch(client, mirror, self._namespace, lambda: None, time.time_ns)
            watch.register(self._metrics)
            watch.use_settings(parse_settings("publishedAffinity: {enabled: true}"))
            await watch.follow([compiled(self._policy)])
            await feed.set_interest((), ["s"])
            tasks = [asyncio.ensure_future(one()) for one in (feed.run, watch.run)]
            while not (feed.synced and watch.feed.is_listed):
                await asyncio.sleep(0.05)
            self._begun.set()
            await asyncio.to_thread(self._over.wait)
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for is told after a second."""
    monkeypatch.setattr("fairlead.control.loop.replica_poller._QUIET_S", 0.5)
    monkeypatch.setattr("fairlead.control.status.writer.COUNTERS_S", 0.5)
    for module, name, seconds in (
        ("affinity_watch", "LOOK_S", 0.3),
        ("affinity_watch", "GATHER_S", 0.3),
        ("pod_findings", "OUTDATED_S", 1.0),
        ("pod_findings", "MISSED_S", -1.0),  # times of objects are whole seconds
    ):
        monkeypatch.setattr(f"fairlead.webhook.publication.{module}.{name}", seconds)


@pytest.mark.usefixtures("soon")
def test_pods_and_nodes_that_a_publication_does_not_reach_are_told(
    at_work: Callable[..., LeaderSetup], adds: Cluster, namespace: str
) -> None:
    ground, api = at_work("publishedAffinity: {enabled: true}"), adds.api
    serve(ground, "p", filters=[POOL])
    wait_for("its affinity", lambda: affinity_of(created(ground)))
    names = [f"{namespace}-{name}" for name in ("before", "after", "without")]
    node = {"metadata": {"name": f"{namespace}-late"}, "spec": {"unschedulable": True}}
    try:
        with Watching(adds, namespace, api.get(f"{POLICIES}/p")) as replica:
            api.create("/api/v1/nodes", node)
            api.create(PODS, pod_of(names[0]))
            wait_for("a pod that has it", lambda: replica.has_counted(1))
            api.patch(f"/api/v1/nodes/{namespace}-late", {"metadata": {"labels": {"pool": "b"}}})
            serve(
                ground,
                "p",
                filters=[{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') in ['a', 'b']"}],
            )
            wait_for("the edit", lambda: "b" in str(affinity_of(created(ground))) or None)
            api.create(PODS, pod_of(names[1]))
            api.delete(ADDED_BY[1].named("", f"fairlead.{namespace}.published-affinity").path)
            wait_for("nothing to be added", lambda: affinity_of(created(ground)) is None or None)
            api.create(PODS, pod_of(names[2]))

            def all_gaps() -> PublicationGaps | None:
                gaps = replica.gaps
                return gaps if gaps and gaps.outdated and gaps.missed and gaps.late_labels else None

            gaps = wait_for("what they lack", all_gaps)
            assert gaps.outdated_pods == (f"default/{names[0]}",)
            assert gaps.missed_pods == (f"default/{names[2]}",)
            assert f"pool came on node {namespace}-late" in gaps.late[0]
            assert replica.has_counted(2)
        policy = api.get(f"{POLICIES}/p")
        ground.serve(policy, publication=state_of(policy).publication, gaps=gaps)
        told = {"PublishedAffinityOutdated": names[0], "PublicationMissed": names[2], "LateLabel": f"{namespace}-late"}

        def is_told() -> bool | None:
            warnings = api.get(f"{POLICIES}/p").get("status", {}).get("warnings", [])
            return {
                one["reason"]: name for one in warnings for name in told.values() if name in one["message"]
            } == told or None

        wait_for("the status to say so", is_told)
    finally:
        for path in (f"/api/v1/nodes/{namespace}-late", *(f"{PODS}/{name}" for name in names)):
            if api.exists(path):
                api.delete(path)
