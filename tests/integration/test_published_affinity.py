"""The leader publishes node affinity on a real API server, whose admission policy adds it to pods."""

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from fairlead.api.parse import parse_policy
from fairlead.cli.main import main
from fairlead.control.publication.affinity_publisher import ADDED_BY
from fairlead.control.publication.published_objects import PUBLISHED
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, as_created
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.render.templates import written
from fairlead.replica_state import PolicyState, PublicationState, ReplicaState
from fairlead.strategies.registry import installed_policy
from fairlead.webhook.publication.publications import Publications
from support.chart.chart import template
from support.control.leader import LeaderSetup
from support.kube.crd import POLICIES
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_ON = "publishedAffinity={enabled: true}"
POOL = {"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}
FREE = {"name": "room", "expression": "free['cpu'] > 0.5"}
TEAM = {
    "name": "team",
    "expression": "node.metadata.labels[?'team'].orValue('') == pod.metadata.labels[?'team'].orValue('')",
}


@pytest.fixture
def adds(with_crd: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[Cluster]:
    """A cluster with what the chart makes of publishedAffinity."""
    made = template('publishedAffinity={"enabled":true}', namespace=namespace)
    kept = [one for one in made if "published" in one["metadata"]["name"] and not _is_hook(one)]
    text = written(kept)
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    wait_for("the kind", lambda: with_crd.api.exists(PUBLISHED.path))
    yield with_crd
    kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


def _is_hook(obj: Object) -> bool:
    return "helm.sh/hook" in obj["metadata"].get("annotations", {})


def serve(ground: LeaderSetup, name: str, **spec: Any) -> None:
    """Apply a policy that the replica serves, with what it publishes."""
    ground.apply(name, **({"schedulerName": "s", "publish": "NodeAffinity"} | spec))
    policy = ground.cluster.api.get(f"{POLICIES}/{name}")
    ground.serve(policy, publication=publication(policy))


def publication(policy: Object) -> PublicationState | None:
    """Return what a replica would report."""
    made, metadata = Publications(), policy["metadata"]
    compiled = compile_policy(parse_policy(policy, installed_policy()), CompileOptions())
    asyncio.run(made.follow([compiled]))
    state = PolicyState(uid=metadata["uid"], generation="", serving=str(metadata["generation"]), reason="Compiled")
    return made.report(ReplicaState(policies={"p": state})).policies["p"].publication


def created(ground: LeaderSetup, **labels: str) -> Object:
    """Return a pod as the API server would create it."""
    return ground.cluster.api.create("/api/v1/namespaces/default/pods?dryRun=All", pod_of(**labels))


def pod_of(**labels: str) -> Object:
    spec = {"schedulerName": "s", "containers": [{"name": "a", "image": "a"}]}
    return {"metadata": {"name": "some", "labels": labels}, "spec": spec}


def affinity_of(pod: Object) -> Any:
    return pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")


def explained(ground: LeaderSetup, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what `fairlead explain` says of a pod that the API server has created, with a node of each pool."""
    api, labels = ground.cluster.api, {"team": "red"}
    for pool in ("a", "b"):
        api.create("/api/v1/nodes", {"metadata": {"name": f"of-{pool}", "labels": {"pool": pool, **labels}}})
        api.patch(f"/api/v1/nodes/of-{pool}/status", {"status": {"allocatable": {"cpu": "4", "pods": "9"}}})
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
    wait_for("its affinity", lambda: affinity_of(created(ground, team="red")))
    published = adds.api.get(f"{PUBLISHED.path}/s")["spec"]
    for labels in ({"team": "red"}, {"team": ""}, {}):
        made = created(ground, **labels)
        plain = {**made, "spec": {key: value for key, value in made["spec"].items() if key != "affinity"}}
        plain["metadata"] = {**made["metadata"], "annotations": {}}
        expected = as_created(plain, {}, published)
        assert affinity_of(made) == affinity_of(expected)
        assert made["metadata"]["annotations"] == expected["metadata"]["annotations"]
    wait_for("the conditions", lambda: ground.condition("p", "Published") == ("True", "Exact") or None)
    wait_for("the other's", lambda: ground.condition("q", "Published") == ("True", "Wider") or None)
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
    wait_for("nothing to be published", lambda: not adds.api.exists(f"{PUBLISHED.path}/s") or None)
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
    path = wait_for("the object", lambda: f"{PUBLISHED.path}/s" if adds.api.exists(f"{PUBLISHED.path}/s") else None)
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
