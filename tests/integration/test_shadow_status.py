"""The leader adds up on a real API server what rules in shadow would have changed, and leaves the scheduler alone."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fairlead.control.decide.shadow_counters import PROCESSES_MAX
from fairlead.replica_state import RuleState, ShadowCounts, ShadowRuleCounts
from support.control.leader import ANOTHER_ADDRESS, LeaderSetup, make_replica_pod
from support.control.scheduler import FILTER, SCORE, rolled, run_until_ready, versions
from support.kube.crd import POLICIES
from testbed.api import wait_for

RULE = RuleState(kind="Filter", name="f", mode="Shadow")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters are written at once."""
    monkeypatch.setattr("fairlead.control.loop.replica_poller._QUIET_S", 0.3)
    monkeypatch.setattr("fairlead.control.status.writer.COUNTERS_S", 0.2)


class Replicas:
    """Two replicas that count pods of a policy in shadow, each in a process of its own."""

    def __init__(self, ground: LeaderSetup) -> None:
        self._ground, self._started = ground, 0
        make_replica_pod(ground.cluster, ground.namespace, "fairlead-2", ANOTHER_ADDRESS)
        self.restart()

    def restart(self) -> None:
        """Begin again, with other processes."""
        self._started += 1
        self._counted = [0, 0]
        self._ground.stub.process = f"{self._started:08}-one"

    def count(self, *pods: int) -> None:
        """Say that each has counted so many pods."""
        self._counted = [*pods]
        ground = self._ground
        policy = ground.cluster.api.get(f"{POLICIES}/p")
        generation = str(policy["metadata"]["generation"])
        ground.serve(policy, fails=False, mode="Shadow", rules=(RULE,), shadow=_counts(generation, pods[0]))
        one = ground.stub.policies.copy()
        ground.serve(policy, fails=False, mode="Shadow", rules=(RULE,), shadow=_counts(generation, pods[1]))
        other = ground.stub.policies.copy()
        ground.stub.others = {ANOTHER_ADDRESS: {"process": f"{self._started:08}-two", "policies": other}}
        ground.stub.policies.update(one)


def _counts(generation: str, pods: int) -> ShadowCounts:
    rules = (ShadowRuleCounts(kind="Filter", name="f", pods=pods, unschedulable=pods // 2),)
    return ShadowCounts(generation=generation, calls=2 * pods, pods=pods, unschedulable=pods // 2, rules=rules)


def status(ground: LeaderSetup) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ground.cluster.api.get(f"{POLICIES}/p").get("status", {})
    return found


def shadow(ground: LeaderSetup) -> Mapping[str, Any]:
    found: Mapping[str, Any] = status(ground).get("shadow", {})
    return found


def wait_for_pods(ground: LeaderSetup, pods: int) -> Mapping[str, Any]:
    """Wait until so many are counted, and for the same number of its rule."""
    wait_for(f"{pods} pods", lambda: shadow(ground).get("pods") == pods or None)
    found = shadow(ground)
    assert [(one["name"], one["pods"]) for one in found["rules"]] == [("f", pods)]
    return found


def test_what_rules_in_shadow_would_change_is_added_up_whatever_restarts(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    replicas = Replicas(ground)
    ground.apply("p", schedulerName="s", mode="Shadow", filters=FILTER)
    replicas.count(4, 2)
    first = wait_for_pods(ground, 6)
    wait_for("Ready", lambda: (rolled(ground) and ground.condition("p") == ("True", "Shadow")) or None)
    assert ground.condition("p", "Programmed") == ("True", "Shadow")
    assert [one["mode"] for one in status(ground)["rules"]] == ["Shadow"]
    (warning,) = [one for one in status(ground)["warnings"] if one["reason"] == "ShadowUnschedulable"]
    assert (warning["count"], warning["message"].endswith("one rule alone would do it: f")) == (3, True)

    replicas.count(5, 2)
    ground.restart()
    wait_for_pods(ground, 7)
    for number in range(1, PROCESSES_MAX):
        replicas.restart()
        replicas.count(1, 1)
        wait_for_pods(ground, 7 + 2 * number)
    found = shadow(ground)
    assert len(found["replicas"]) == PROCESSES_MAX
    assert len(found["earlier"]["processes"]) == 2 * PROCESSES_MAX - PROCESSES_MAX
    assert (found["since"], found["generation"]) == (first["since"], 1)
    ground.restart()
    replicas.count(3, 1)
    wait_for_pods(ground, 7 + 2 * (PROCESSES_MAX - 1) + 2)

    ground.apply("p", schedulerName="s", mode="Shadow", filters=[{"name": "f", "expression": "1 == 1"}])
    replicas.count(1, 0)
    found = wait_for_pods(ground, 1)
    assert (found["generation"], "earlier" in found) == (2, False)
    ground.apply("p", schedulerName="s", filters=FILTER)
    ground.stub.others[ANOTHER_ADDRESS]["policies"] = ground.stub.policies
    wait_for("nothing in shadow", lambda: "shadow" not in status(ground) or None)
    assert ground.condition("p")[1] != "Shadow"


def test_a_status_that_changed_meanwhile_is_decided_again(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    replicas = Replicas(ground)
    ground.apply("p", schedulerName="s", mode="Shadow", filters=FILTER)
    for number in range(1, 6):
        replicas.count(number, number)
        ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"labels": {"changed": str(number)}}})
        wait_for_pods(ground, 2 * number)


def test_a_first_score_in_shadow_leaves_the_scheduler_alone(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    before = versions(ground)
    ground.apply(
        "p",
        schedulerName="s",
        filters=FILTER,
        scores=[{**SCORE[0], "mode": "Shadow"}],
        binding={"annotations": [{"key": "fairlead.dev/a", "expression": "'x'", "mode": "Shadow"}]},
    )
    wait_for("the edit", lambda: status(ground).get("observedGeneration") == 2 or None)
    wait_for("Ready", lambda: ground.condition("p") == ("True", "Ready") or None)
    assert versions(ground) == before
    ground.apply("q", schedulerName="s", mode="Shadow", scores=SCORE)
    ground.serve(ground.cluster.api.get(f"{POLICIES}/q"), fails=False, mode="Shadow")
    wait_for("the other", lambda: ground.condition("q") == ("True", "Shadow") or None)
    assert versions(ground) == before
    ground.apply("p", schedulerName="s", filters=FILTER, scores=SCORE)
    wait_for("a score that decides", lambda: versions(ground) != before or None)
