"""The leader on a real API server: what it makes, keeps, puts back and takes away, and what it says of it."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml
from write_crds import FILE

from fairlead.control.leader import now
from fairlead.control.leaves import own_leaf, server_hosts
from fairlead.identities import OPERATOR, SERVER, scheduler_identity
from fairlead.render.operator_settings import OperatorSettings, parse_settings
from operatorkit import ADDRESSES, POLICIES, SERVICE, Ground, ground
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster

FILTER = [{"name": "f", "expression": "true"}]
SCORE = [{"name": "s", "expression": "1.0"}]
HASH = "fairlead.dev/config-hash"
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


def pods_of(ground: Ground, scheduler: str, config: str) -> tuple[list[Object], list[Object]]:
    """All of them, and those with this configuration."""
    path = f"/api/v1/namespaces/{ground.namespace}/pods"
    pods = ground.cluster.api.items(path, labelSelector=f"fairlead.dev/scheduler={scheduler}")
    return pods, [one for one in pods if one["metadata"]["annotations"].get(HASH) == config]


def config_of(ground: Ground, scheduler: str = "s") -> str:
    """What its Deployment is to run; empty if there is none."""
    at = child(ground, "deployments", f"kube-scheduler-{scheduler}")
    api = ground.cluster.api
    return str(api.get(at)["metadata"]["annotations"][HASH]) if api.exists(at) else ""


def rolled(ground: Ground, scheduler: str = "s") -> bool:
    """Do what a node would: have the pods of the newest ReplicaSet run, and one of them take the Lease."""
    api, name = ground.cluster.api, f"kube-scheduler-{scheduler}"
    there = api.get(child(ground, "deployments", name))
    pods, new = pods_of(ground, scheduler, there["metadata"]["annotations"][HASH])
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


def run_pods(ground: Ground, scheduler: str = "s") -> None:
    wait_for("the pods of the scheduler", lambda: rolled(ground, scheduler))


def run_until_ready(ground: Ground, policy: str = "p", scheduler: str = "s") -> None:
    wait_for("Ready", lambda: rolled(ground, scheduler) and ground.condition(policy) == ("True", "Ready"))


def state_of(ground: Ground) -> str:
    """What is remembered."""
    found = ground.cluster.api.get(child(ground, "configmaps", "kube-scheduler-s-state", "api/v1"))
    return str(found["data"]["state.json"])


def message(ground: Ground, name: str, kind: str) -> str:
    """Of a condition."""
    found = ground.cluster.api.get(f"{POLICIES}/{name}").get("status", {}).get("conditions", [])
    return next((str(one["message"]) for one in found if one["type"] == kind), "")


def test_from_a_policy_to_a_scheduler_and_nothing_is_written_after(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a roll", lambda: ground.condition("p") == ("False", "Rolling"))
    run_until_ready(ground)
    policy = ground.cluster.api.get(f"{POLICIES}/p")
    assert policy["status"]["servingGeneration"] == policy["metadata"]["generation"]
    assert policy["status"]["scheduler"]["configHash"] == policy["status"]["scheduler"]["lastGoodConfigHash"]
    before = versions(ground)
    ground.apply("p", schedulerName="s", filters=[{"name": "g", "expression": "1 < 2"}])
    wait_for("generation 2", lambda: ground.cluster.api.get(f"{POLICIES}/p")["status"].get("servingGeneration") == 2)
    assert versions(ground) == before


def versions(ground: Ground, scheduler: str = "s") -> dict[str, Any]:
    """Of all that a scheduler is made of; what is remembered of it says when what was."""
    api = ground.cluster.api
    kinds = {"apis/apps/v1": ["deployments"], "api/v1": ["configmaps", "secrets", "serviceaccounts"]}
    return {
        one["metadata"]["name"] + plural: one["metadata"]["resourceVersion"]
        for group, plurals in kinds.items()
        for plural in plurals
        for one in api.items(
            f"/{group}/namespaces/{ground.namespace}/{plural}", labelSelector=f"fairlead.dev/scheduler={scheduler}"
        )
        if not one["metadata"]["name"].endswith("-state")
    }


def test_drift_is_put_right_and_counted(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
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
    run_pods(ground)
    wait_for("what does not answer", lambda: "403" in message(ground, "p", "Ready"))
    ground.stub.fails.clear()
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"), timeout_s=60)


def test_a_deleted_policy_goes_when_nobody_serves_it(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    api = ground.cluster.api
    wait_for(
        "our finalizer", lambda: api.get(f"{POLICIES}/p")["metadata"].get("finalizers") == ["fairlead.dev/finalizer"]
    )
    wait_for("a Deployment", lambda: config_of(ground) != "")
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
    ground.restart(RuntimeError("no token"))
    wait_for("what is wrong", lambda: "no token" in ground.runtime.fault)
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    wait_for("no fault", lambda: not ground.runtime.fault)


REFUSED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "unknown field: profiles[0].x"}}


def fail_pods(ground: Ground, **status: Any) -> None:
    """Have what is new never start."""
    api = ground.cluster.api

    def failed() -> bool:
        _, new = pods_of(ground, "s", config_of(ground))
        for pod in new:
            api.patch(
                f"/api/v1/namespaces/{ground.namespace}/pods/{pod['metadata']['name']}/status", {"status": status}
            )
        return bool(new)

    wait_for("pods to fail", failed)


def container(**fields: Any) -> list[Object]:
    return [{"name": "x", "image": "x", "imageID": "", "ready": False, "restartCount": 0, **fields}]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"initContainerStatuses": container(state=REFUSED)}, "the scheduler refuses it: unknown field: profiles[0].x"),
        (
            {"containerStatuses": container(restartCount=2, lastState=REFUSED)},
            "the scheduler ends with it: unknown field: profiles[0].x",
        ),
    ],
)
def test_a_configuration_that_fails_is_put_back_and_not_tried_again(
    at_work: Callable[..., Ground], status: dict[str, Any], says: str
) -> None:
    ground = at_work("schedulers: [{name: s}]")
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    good = config_of(ground)
    ground.apply("p", schedulerName="s", filters=FILTER, scores=SCORE)
    wait_for("another configuration", lambda: config_of(ground) != good)
    bad = config_of(ground)
    fail_pods(ground, **status)
    wait_for("what runs again", lambda: ground.condition("p", "Programmed") == ("False", "ConfigurationRejected"))
    wait_for("the good one", lambda: config_of(ground) == good)
    run_pods(ground)
    wait_for(
        "why",
        lambda: message(ground, "p", "Ready") == f"configuration {bad}: {says}; the last good one, {good}, runs again",
    )
    assert ground.condition("p", "Stalled") == ("True", "ConfigurationRejected")
    # Neither a pass nor another leader tries it again.
    ground.cluster.api.patch(child(ground, "deployments"), {"spec": {"replicas": 5}})
    wait_for("a pass", lambda: ground.drifted == ["Deployment"])
    ground.restart()
    ground.cluster.api.patch(child(ground, "deployments"), {"spec": {"replicas": 5}})
    wait_for("another pass", lambda: ground.drifted == ["Deployment"] * 2)
    assert config_of(ground) == good
    assert bad in state_of(ground)
    # An edit does.
    ground.apply("p", schedulerName="s", filters=[{"name": "g", "expression": "1 < 2"}], scores=SCORE)
    wait_for("another attempt", lambda: config_of(ground) == bad)
    run_until_ready(ground)


def test_what_is_not_verified_in_time_is_put_back(
    at_work: Callable[..., Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.control.rollout.VERIFIED_WITHIN_S", 8.0)
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    good = config_of(ground)
    ground.stub.fails["/filter"] = 500
    ground.apply("p", schedulerName="s", filters=FILTER, scores=SCORE)
    wait_for("another configuration", lambda: config_of(ground) != good)
    run_pods(ground)
    wait_for("the good one", lambda: config_of(ground) == good)
    wait_for("why", lambda: "not verified within 8 s: https://" in message(ground, "p", "Programmed"))


def test_a_policy_that_goes_on_being_served_goes_in_the_end(
    at_work: Callable[..., Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.control.finalizer.DEADLINE_S", 3.0)
    ground = at_work()
    api = ground.cluster.api
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("our finalizer", lambda: api.get(f"{POLICIES}/p")["metadata"].get("finalizers"))
    api.delete(f"{POLICIES}/p")
    asked = ground.stub.asked
    wait_for("being asked for it", lambda: ground.stub.asked > asked + 1)
    assert api.exists(f"{POLICIES}/p")
    wait_for("the end of it", lambda: not api.exists(f"{POLICIES}/p"))


def test_a_deleted_policy_with_the_escape_annotation_goes_at_once(
    at_work: Callable[..., Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.control.finalizer.DEADLINE_S", 1e9)
    ground = at_work()
    api = ground.cluster.api
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("our finalizer", lambda: api.get(f"{POLICIES}/p")["metadata"].get("finalizers"))
    api.delete(f"{POLICIES}/p")
    api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"fairlead.dev/skip-finalizer": "true"}}})
    wait_for("the end of it", lambda: not api.exists(f"{POLICIES}/p"))


def test_a_replica_that_is_silent_is_named_and_each_transition_told_once(
    at_work: Callable[..., Ground],
) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    ground.stub.frozen = True
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"a": "b"}}})  # it is looked at at once
    wait_for("ReplicaSilent", lambda: ground.condition("p", "Programmed") == ("Unknown", "ReplicaSilent"))
    assert message(ground, "p", "Ready") == "fairlead-1: no answer within 1 s"
    ground.stub.frozen = False
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"))
    wait_for("the last event", lambda: told(ground, "p").count("Ready") == 2)
    found = told(ground, "p")
    assert found[-3:] == ["Ready", "ReplicaSilent", "Ready"]
    assert all(one != other for one, other in pairwise(found)), found


def test_two_schedulers_side_by_side(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    ground.apply("q", schedulerName="t", filters=FILTER, scores=SCORE)
    run_until_ready(ground)
    run_until_ready(ground, "q", "t")
    assert config_of(ground, "s") != config_of(ground, "t")
    before = versions(ground, "s")
    ground.apply("q", schedulerName="t", scores=SCORE, binding={"annotations": [{"key": "a/b", "expression": "'x'"}]})
    run_until_ready(ground, "q", "t")
    assert versions(ground, "s") == before


def test_a_policy_that_is_renamed_changes_nothing(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    api = ground.cluster.api
    ground.apply("p", schedulerName="s", filters=FILTER, scores=SCORE)
    run_until_ready(ground)
    before = versions(ground)
    ground.stub.policies.clear()
    api.delete(f"{POLICIES}/p")
    wait_for("the end of it", lambda: not api.exists(f"{POLICIES}/p"))
    wait_for("a pass without it", lambda: '"empty_since":1' in state_of(ground))
    ground.apply("p2", schedulerName="s", filters=FILTER, scores=SCORE)
    wait_for("Ready", lambda: ground.condition("p2") == ("True", "Ready"))
    wait_for("a pass with it", lambda: '"empty_since":null' in state_of(ground))
    assert versions(ground) == before


def test_a_scheduler_that_has_gone_stays_gone(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    api = ground.cluster.api
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    pods = f"/api/v1/namespaces/{ground.namespace}/pods"
    for pod in pods_of(ground, "s", "")[0]:  # they take their time to end
        api.patch(f"{pods}/{pod['metadata']['name']}", {"metadata": {"finalizers": ["example.com/held"]}})
    ground.stub.policies.clear()
    api.delete(f"{POLICIES}/p")
    wait_for("a pass without it", lambda: '"empty_since":1' in state_of(ground))
    text = re.sub(r'"empty_since":[0-9.]+', '"empty_since":1.0', state_of(ground))
    api.patch(child(ground, "configmaps", "kube-scheduler-s-state", "api/v1"), {"data": {"state.json": text}})
    wait_for("its Deployment to go", lambda: not api.exists(child(ground, "deployments")))
    assert versions(ground)  # while its pods are there, it keeps what it calls with

    def gone() -> bool:
        for pod in pods_of(ground, "s", "")[0]:
            path = f"{pods}/{pod['metadata']['name']}"
            api.patch(path, {"metadata": {"finalizers": None}})
            if api.exists(path):
                api.delete(path, gracePeriodSeconds="0")
        return not versions(ground)

    wait_for("all of it to go", gone)
    # Whatever is told of it later: only what is left is taken away.
    stray = {"metadata": {"name": "stray", "labels": {"fairlead.dev/scheduler": "s"}}}
    api.create(f"/api/v1/namespaces/{ground.namespace}/configmaps", stray)
    wait_for("the stray to go", lambda: not api.exists(child(ground, "configmaps", "stray", "api/v1")))
    assert not config_of(ground)


def told(ground: Ground, name: str) -> list[str]:
    """The reasons of the events about a policy."""
    uid = ground.cluster.api.get(f"{POLICIES}/{name}")["metadata"]["uid"]
    found = ground.cluster.api.items("/apis/events.k8s.io/v1/namespaces/default/events")
    ours = [one for one in found if one["regarding"].get("uid") == uid]
    return [one["reason"] for one in sorted(ours, key=lambda one: one["eventTime"])]


def test_two_hundred_policies_that_come_at_once(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    api = ground.cluster.api
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    spec = {"schedulerName": "s", "filters": FILTER}
    api.create_all(POLICIES, [{**kind, "metadata": {"name": f"p{n}"}, "spec": spec} for n in range(200)])
    for policy in api.items(POLICIES):
        ground.serve(policy)
    run_until_ready(ground, "p199")
    wait_for("all of them", lambda: all(is_ready(one) for one in api.items(POLICIES)))
    assert api.get(child(ground, "deployments"))["metadata"]["generation"] == 1


def is_ready(policy: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in policy["status"]["conditions"])


def test_a_scheduler_that_somebody_else_runs_is_refused_until_it_is_listed(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    api = ground.cluster.api
    spec = {"schedulerName": "s", "nodeName": "n", "containers": [{"name": "x", "image": "x"}]}
    api.create(f"/api/v1/namespaces/{ground.namespace}/pods", {"metadata": {"name": "theirs"}, "spec": spec})
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert not versions(ground)
    ground.apply("d", schedulerName="default-scheduler", filters=FILTER)
    wait_for("refused", lambda: ground.condition("d", "Accepted") == ("False", "SchedulerRefused"))
    ground.settings = parse_settings("schedulers: [{name: s}]")
    run_until_ready(ground)
    # else the next test's scheduler of this name is refused, too
    api.delete(f"/api/v1/namespaces/{ground.namespace}/pods/theirs", gracePeriodSeconds="0")


def test_certificates_of_others_are_asked_for_and_used(at_work: Callable[..., Ground]) -> None:
    ground = at_work("tls: {mode: Provided}")
    ground.apply("p", schedulerName="o", filters=FILTER)

    def message() -> str:
        found = ground.cluster.api.get(f"{POLICIES}/p").get("status", {}).get("conditions", [])
        return next((one["message"] for one in found if one["type"] == "Accepted"), "")

    wait_for("what is missing", lambda: "kube-scheduler-o-tls is not there" in message(), timeout_s=60)
    authority, hosts = ground.stub.authority, server_hosts(SERVICE, ground.namespace, ADDRESSES)
    shown = {
        "kube-scheduler-o-tls": own_leaf(authority, scheduler_identity("o"), "client", frozenset(), now(), None),
        "fairlead-operator-tls": own_leaf(authority, OPERATOR, "client", frozenset(), now(), None),
        "fairlead-webhook-tls": own_leaf(authority, SERVER, "server", hosts, now(), None),
    }
    for name, pair in shown.items():
        data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.trusted}
        written = {key: b64encode(value).decode() for key, value in data.items()}
        body = {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": written}
        ground.cluster.api.create(f"/api/v1/namespaces/{ground.namespace}/secrets", body)
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"look": "again"}}})
    run_until_ready(ground, "p", "o")
