"""The leader on a real API server, when something fails: a configuration, a call, kopf, we ourselves."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.render.operator_settings import parse_settings
from support.control.leader import LeaderSetup
from support.control.scheduler import (
    FILTER,
    SCORE,
    child,
    config_of,
    message,
    pods_of,
    run_pods,
    run_until_ready,
    state_of,
)
from support.kube.crd import POLICIES
from testbed.api import Object, wait_for


def test_a_fault_of_ours_over_one_policy_keeps_no_other_from_its_status(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.broken.add("a")
    for name in ("a", "b"):
        ground.apply(name, schedulerName="s", filters=FILTER)
    wait_for("the status of the other", lambda: ground.condition("b", "Accepted") == ("True", "Accepted"))
    assert ground.condition("a", "Accepted") == ("", "")


def test_a_status_does_not_wait_for_lint_and_is_written_again_with_what_it_warns_of(
    at_work: Callable[..., LeaderSetup],
) -> None:
    ground = at_work()
    ground.warns["a"] = None
    ground.apply("a", schedulerName="s", filters=FILTER)
    wait_for("its status", lambda: ground.condition("a", "Accepted") == ("True", "Accepted"))
    ground.warns["a"] = [("HasNoEffect", "spec.filters[0]: it says so", "")]

    def reasons() -> list[str]:
        return [one["reason"] for one in ground.cluster.api.get(f"{POLICIES}/a")["status"].get("warnings", ())]

    wait_for("its warning", lambda: reasons() == ["HasNoEffect"])


def test_kopf_that_dies_is_begun_anew(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.restart(RuntimeError("no token"))
    wait_for("what is wrong", lambda: "no token" in ground.runtime.fault)
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    wait_for("no fault", lambda: not ground.runtime.fault)


def test_a_configuration_whose_urls_are_not_answered_is_not_verified(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.stub.fails["/filter"] = 403
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_pods(ground)
    wait_for("what does not answer", lambda: "403" in message(ground, "p", "Ready"))
    ground.stub.fails.clear()
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready"))


REFUSED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "unknown field: profiles[0].x"}}


def fail_pods(ground: LeaderSetup, **status: Any) -> None:
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
        (
            {"initContainerStatuses": container(state=REFUSED)},
            "kube-scheduler rejects it: unknown field: profiles[0].x",
        ),
        (
            {"containerStatuses": container(restartCount=2, lastState=REFUSED)},
            "kube-scheduler exits with it: unknown field: profiles[0].x",
        ),
    ],
)
def test_a_configuration_that_fails_is_put_back_and_not_tried_again(
    at_work: Callable[..., LeaderSetup], status: dict[str, Any], says: str
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
        lambda: (
            message(ground, "p", "Ready")
            == f"configuration {bad} is rejected: {says}; rolled back to the last good one, {good}"
        ),
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


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("placement: {tolerations: [{operator: Sometimes}]}", "Sometimes"),
        ("placement: {affinity: {nodeAffinit: {}}}", "nodeAffinit"),
        ("placement: {tolerations: [{tolerationSeconds: long}]}", "tolerationSeconds"),
        ("resources: {requests: {cpu: lots}}", "quantities"),
    ],
)
def test_a_deployment_that_the_api_server_does_not_take_is_put_away(
    at_work: Callable[..., LeaderSetup], setting: str, says: str
) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    good = config_of(ground)
    ground.settings = parse_settings(f"schedulers: [{{name: s, {setting}}}]")
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"a": "b"}}})  # it is looked at at once
    wait_for("why", lambda: ground.condition("p", "Stalled") == ("True", "ConfigurationRejected"))
    said = message(ground, "p", "Ready")
    assert "the API server rejects it: " in said
    assert says in said
    assert config_of(ground) == good


def test_what_is_not_verified_in_time_is_put_back(
    at_work: Callable[..., LeaderSetup], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.control.decide.rollout.VERIFIED_WITHIN_S", 8.0)
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
