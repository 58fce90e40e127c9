"""The leader on a real API server, when a policy goes, or comes again under another name, or the last one has gone."""

import re
from collections.abc import Callable

from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, SCORE, child, config_of, pods_of, run_until_ready, state_of, versions
from support.kube.crd import POLICIES
from testbed.api import wait_for


def test_a_deleted_policy_waits_for_nobody_and_its_scheduler_stays(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    api = ground.cluster.api
    wait_for("a Deployment", lambda: config_of(ground) != "")
    wait_for("a status", lambda: ground.condition("p") != ("", ""))
    assert "finalizers" not in api.get(f"{POLICIES}/p")["metadata"]
    api.delete(f"{POLICIES}/p")
    assert not api.exists(f"{POLICIES}/p")
    wait_for("a pass without it", lambda: '"empty_since":1' in state_of(ground))
    assert api.exists(child(ground, "deployments"))


def test_a_policy_that_is_renamed_changes_nothing(at_work: Callable[..., LeaderSetup]) -> None:
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


def test_a_scheduler_that_has_gone_stays_gone(at_work: Callable[..., LeaderSetup]) -> None:
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
    api.patch(child(ground, "configmaps", "kube-scheduler-s.state", "api/v1"), {"data": {"state.json": text}})
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
