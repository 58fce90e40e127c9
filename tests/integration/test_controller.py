"""The leader on a real API server: what it makes of policies, keeps as it is, and says of them."""

import json
from base64 import b64encode
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import unquote

import pytest

from fairlead.control.reconcile.object_client import ref_of
from fairlead.render.operator_settings import OperatorSettings
from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, SCORE, child, config_of, event_reasons, message, run_until_ready, versions
from support.kube.crd import POLICIES
from support.render.scheduler_bindings import chart_bindings
from testbed.api import Object, wait_for
from testbed.fixtures import Kubectl


def test_from_a_policy_to_a_scheduler_and_nothing_is_written_after(at_work: Callable[..., LeaderSetup]) -> None:
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


def test_kopf_is_sent_no_objects_of_others(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    part = f"/namespaces/{ground.namespace}/secrets?"

    def asked() -> set[str]:
        events = (json.loads(line) for line in ground.cluster.audit_log.read_text().splitlines() if part in line)
        return {one["requestURI"] for one in events if "kopf" in one.get("userAgent", "")}

    found = wait_for("a list and a watch", lambda: found if len(found := asked()) > 1 else None)
    assert any("watch=true" in uri for uri in found)
    assert all("labelSelector=fairlead.dev/scheduler" in unquote(uri) for uri in found), found


def test_drift_is_put_right_and_counted(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    api = ground.cluster.api
    api.patch(child(ground, "deployments"), {"spec": {"replicas": 5}})
    wait_for("2 replicas", lambda: api.get(child(ground, "deployments"))["spec"]["replicas"] == 2)
    api.delete(child(ground, "deployments"))
    wait_for("the Deployment", lambda: api.exists(child(ground, "deployments")))
    wait_for("what drifted", lambda: ground.drifted[:2] == ["Deployment", "Deployment"])


OUTSIDE = "/apis/rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/{}/serviceaccounts",
        "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
        f"{OUTSIDE}/namespaces/{{}}/roles",
        f"{OUTSIDE}/namespaces/{{}}/rolebindings",
    ],
)
def test_what_somebody_deletes_is_put_back_at_once(at_work: Callable[..., LeaderSetup], path: str) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    api, at = ground.cluster.api, path.format(ground.namespace)
    found = [one["metadata"]["name"] for one in api.items(at, labelSelector="fairlead.dev/scheduler=s")]
    assert found
    for name in found * 3:  # what was done to its pods a moment ago has it looked at, too
        api.delete(f"{at}/{name}")
        wait_for(f"{name} to be back", lambda name=name: api.exists(f"{at}/{name}"))  # type: ignore[misc]


def test_who_is_bound_is_put_right_at_once_and_nobody_is_left(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    for name in ("p", "q"):
        ground.apply(name, schedulerName=f"s-{name}", filters=FILTER)
    api, at = ground.cluster.api, [ref_of(one).path for one in chart_bindings(ground.namespace)]

    def bound() -> set[tuple[str, ...]]:
        return {tuple(who["name"] for who in api.get(one).get("subjects", ())) for one in at}

    def are_bound(*names: str) -> None:
        wait_for(f"{names} to be bound", lambda: bound() == {names})

    are_bound("kube-scheduler-s-p", "kube-scheduler-s-q")
    for _ in range(3):
        api.patch(at[0], {"subjects": [{"kind": "User", "name": "intruder", "apiGroup": "rbac.authorization.k8s.io"}]})
        are_bound("kube-scheduler-s-p", "kube-scheduler-s-q")
    assert "ClusterRoleBinding" in ground.drifted
    for one in at:
        (owner,) = api.get(one)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Namespace", ground.namespace)


def test_what_settings_list_needs_no_policy_and_config_only_makes_no_deployment(
    at_work: Callable[..., LeaderSetup],
) -> None:
    ground = at_work("schedulers: [{name: s}, {name: others, management: ConfigOnly}]")
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    wait_for(
        "a configuration",
        lambda: ground.cluster.api.exists(child(ground, "configmaps", "kube-scheduler-others", "api/v1")),
    )
    assert not ground.cluster.api.exists(child(ground, "deployments", "kube-scheduler-others"))
    assert isinstance(ground.settings, OperatorSettings)


def test_while_it_is_paused_nothing_is_written(at_work: Callable[..., LeaderSetup]) -> None:
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
    assert not versions(ground)
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": None}})
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    # once there is something, its certificate is looked after all the same; a policy that is off pauses nothing
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"fairlead.dev/paused": "true"}}})
    wait_for("Paused", lambda: ground.condition("p", "Programmed") == ("False", "Paused"))
    api, secret = ground.cluster.api, child(ground, "secrets", "kube-scheduler-s-tls", "api/v1")
    before = api.get(secret)["data"]["tls.crt"]
    api.patch(secret, {"data": {"tls.crt": b64encode(b"spoilt").decode()}})
    wait_for("a certificate", lambda: len(api.get(secret)["data"]["tls.crt"]) >= len(before) - 100)
    ground.apply("p", schedulerName="s", filters=FILTER, mode="Disabled")
    wait_for("it to be off", lambda: ground.condition("p", "Programmed") == ("True", "Disabled"))


def test_two_schedulers_side_by_side(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    ground.apply("q", schedulerName="t", filters=FILTER, scores=SCORE)
    run_until_ready(ground)
    run_until_ready(ground, "q", "t")
    assert config_of(ground, "s") != config_of(ground, "t")
    before, other = versions(ground, "s"), config_of(ground, "t")
    ground.apply("q", schedulerName="t", scores=SCORE, binding={"annotations": [{"key": "a/b", "expression": "'x'"}]})
    wait_for("another configuration", lambda: config_of(ground, "t") != other)
    run_until_ready(ground, "q", "t")
    assert versions(ground, "s") == before


def test_a_replica_that_is_silent_is_named_and_each_transition_told_once_and_shown_in_order(
    at_work: Callable[..., LeaderSetup], kubectl: Kubectl
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
    wait_for("the last event", lambda: event_reasons(ground, "p").count("Ready") == 2)
    found = event_reasons(ground, "p")
    assert found[-3:] == ["Ready", "ReplicaSilent", "Ready"]
    assert all(one != other for one, other in pairwise(found)), found
    _, _, shown = kubectl("describe", "sep", "p").partition("\nEvents:\n")
    assert [line.split()[1] for line in shown.splitlines()[2:]] == found, shown


def test_two_hundred_policies_that_come_at_once(at_work: Callable[..., LeaderSetup]) -> None:
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
