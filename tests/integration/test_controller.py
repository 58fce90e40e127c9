"""The leader on a real API server: what it makes, keeps, puts back and takes away, and what it says of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from write_crds import FILE

from fairlead.render.operator_settings import OperatorSettings, parse_settings
from operatorkit import POLICIES, Ground, ground
from testbed.api import wait_for
from testbed.fixtures import Cluster

FILTER = [{"name": "f", "expression": "true"}]
SCORE = [{"name": "s", "expression": "1.0"}]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def with_crd(control_plane: Cluster) -> Iterator[Cluster]:
    crd = yaml.safe_load(FILE.read_text())
    path = f"{CRDS}/{crd['metadata']['name']}"
    if not control_plane.api.exists(path):
        control_plane.api.create(CRDS, crd)
    wait_for("the kind", lambda: control_plane.api.exists(POLICIES))
    yield control_plane
    control_plane.api.delete(path)


@pytest.fixture
def at_work(with_crd: Cluster, namespace: str) -> Iterator[Callable[..., Ground]]:
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda settings="": stack.enter_context(ground(with_crd, namespace, parse_settings(settings)))
        for policy in with_crd.api.items(POLICIES):
            with_crd.api.patch(f"{POLICIES}/{policy['metadata']['name']}", {"metadata": {"finalizers": None}})
            with_crd.api.delete(f"{POLICIES}/{policy['metadata']['name']}")


def child(ground: Ground, plural: str, name: str = "kube-scheduler-s", group: str = "apis/apps/v1") -> str:
    return f"/{group}/namespaces/{ground.namespace}/{plural}/{name}"


def run_pods(ground: Ground, name: str = "kube-scheduler-s") -> None:
    """Do what a node would: have the pods of the newest ReplicaSet run, and one of them take the Lease."""
    api = ground.cluster.api
    deployment = child(ground, "deployments", name)

    def rolled() -> bool:
        there = api.get(deployment)
        config = there["metadata"]["annotations"]["fairlead.dev/config-hash"]
        pods = api.items(f"/api/v1/namespaces/{ground.namespace}/pods", labelSelector="fairlead.dev/scheduler=s")
        new = [one for one in pods if one["metadata"]["annotations"].get("fairlead.dev/config-hash") == config]
        for pod in pods:
            path = f"/api/v1/namespaces/{ground.namespace}/pods/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                api.delete(path, gracePeriodSeconds="0")
            elif pod in new and pod["status"].get("phase") != "Running":
                ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
                api.patch(f"{path}/status", {"status": {"phase": "Running", "podIP": "10.0.0.9", "conditions": ready}})
        status = there.get("status", {})
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        done = status.get("observedGeneration") == there["metadata"]["generation"] and counts == [2, 2, 2]
        if done and new:
            lease = child(ground, "leases", name, "apis/coordination.k8s.io/v1")
            api.patch(lease, {"spec": {"holderIdentity": f"{new[0]['metadata']['name']}_x"}})
        return done

    wait_for("the pods of the scheduler", rolled, timeout_s=60)


def test_from_a_policy_to_a_scheduler_and_nothing_is_written_after(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    assert ground.condition("p", "Programmed")[0] in ("", "False", "Unknown")
    run_pods(ground)
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"), timeout_s=60)
    policy = ground.cluster.api.get(f"{POLICIES}/p")
    assert policy["status"]["servingGeneration"] == policy["metadata"]["generation"]
    assert policy["status"]["scheduler"]["configHash"] == policy["status"]["scheduler"]["lastGoodConfigHash"]
    before = versions(ground)
    ground.apply("p", schedulerName="s", filters=[{"name": "g", "expression": "1 < 2"}])
    wait_for("generation 2", lambda: ground.cluster.api.get(f"{POLICIES}/p")["status"].get("servingGeneration") == 2)
    assert versions(ground) == before


def versions(ground: Ground) -> dict[str, Any]:
    api = ground.cluster.api
    kinds = {"apis/apps/v1": ["deployments"], "api/v1": ["configmaps", "secrets", "serviceaccounts"]}
    return {
        one["metadata"]["name"] + plural: one["metadata"]["resourceVersion"]
        for group, plurals in kinds.items()
        for plural in plurals
        for one in api.items(f"/{group}/namespaces/{ground.namespace}/{plural}", labelSelector="fairlead.dev/scheduler")
    }


def test_drift_is_put_right_and_counted(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    run_pods(ground)
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"), timeout_s=60)
    api = ground.cluster.api
    api.patch(child(ground, "deployments"), {"spec": {"replicas": 5}})
    wait_for("2 replicas", lambda: api.get(child(ground, "deployments"))["spec"]["replicas"] == 2)
    api.delete(child(ground, "deployments"))
    wait_for("the Deployment", lambda: api.exists(child(ground, "deployments")))
    wait_for("what drifted", lambda: ground.drifted[:2] == ["Deployment", "Deployment"])


def test_a_fault_of_ours_over_one_policy_keeps_no_other_from_its_status(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.broken.add("a")
    for name in ("a", "b"):
        ground.apply(name, schedulerName="s", filters=FILTER)
    wait_for("the status of the other", lambda: ground.condition("b", "Accepted") == ("True", "Accepted"))
    assert ground.condition("a", "Accepted") == ("", "")


def test_a_deployment_that_is_not_ours_is_left_alone(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    body = {"metadata": {"name": "kube-scheduler-s"}, "spec": {"selector": labels, "template": template, "replicas": 0}}
    ground.cluster.api.create(f"/apis/apps/v1/namespaces/{ground.namespace}/deployments", body)
    before = ground.cluster.api.get(child(ground, "deployments"))["spec"]
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert ground.cluster.api.get(child(ground, "deployments"))["spec"] == before


def test_a_configuration_whose_urls_are_not_answered_is_not_verified(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.stub.fails["/filter"] = 403
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    run_pods(ground)

    def said() -> bool:
        found = ground.cluster.api.get(f"{POLICIES}/p").get("status", {}).get("conditions", [])
        return any("403" in one["message"] for one in found if one["type"] == "Ready")

    wait_for("what does not answer", said, timeout_s=60)
    ground.stub.fails.clear()
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"), timeout_s=60)


def test_a_deleted_policy_goes_when_nobody_serves_it(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    api = ground.cluster.api
    wait_for(
        "our finalizer", lambda: api.get(f"{POLICIES}/p")["metadata"].get("finalizers") == ["fairlead.dev/finalizer"]
    )
    api.delete(f"{POLICIES}/p")
    assert "deletionTimestamp" in api.get(f"{POLICIES}/p")["metadata"]
    ground.stub.policies.clear()
    wait_for("the end of it", lambda: not api.exists(f"{POLICIES}/p"))
    assert api.exists(child(ground, "deployments"))


def test_while_it_is_paused_nothing_is_written(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.cluster.api.create(
        POLICIES,
        {
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "SchedulerExtenderPolicy",
            "metadata": {"name": "p", "annotations": {"fairlead.dev/paused": "true"}},
            "spec": {"schedulerName": "s", "filters": FILTER},
        },
    )
    ground.serve(ground.cluster.api.get(f"{POLICIES}/p"))
    wait_for("Paused", lambda: ground.condition("p", "Programmed") == ("False", "Paused"))
    assert not ground.cluster.api.exists(child(ground, "deployments"))
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": None}})
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))


def test_what_settings_list_needs_no_policy_and_config_only_makes_no_deployment(at_work: Callable[..., Ground]) -> None:
    ground = at_work("schedulers: [{name: s}, {name: others, management: ConfigOnly}]")
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    wait_for(
        "a configuration",
        lambda: ground.cluster.api.exists(child(ground, "configmaps", "kube-scheduler-others", "api/v1")),
    )
    assert not ground.cluster.api.exists(child(ground, "deployments", "kube-scheduler-others"))
    assert isinstance(ground.settings, OperatorSettings)


def test_kopf_that_dies_is_begun_anew(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.runtime.end()
    assert ground.over.wait(10)
    ground.logins.append(RuntimeError("no token"))
    ground.runtime.begin()
    wait_for("what is wrong", lambda: "no token" in ground.runtime.fault)
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    wait_for("no fault", lambda: not ground.runtime.fault)
