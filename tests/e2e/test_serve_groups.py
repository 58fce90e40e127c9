"""With the real scheduler and `fairlead serve`, members of a group start together or not at all."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from extender import Stage
from extender.half_held import HalfHeld
from extender.stage import URGENT
from support.process.serving import Serving
from testbed import process
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes
from testbed.node_template import equal

JOB, SIZE = "example.org/job", "example.org/size"
GANG: dict[str, Any] = {
    "name": "whole-job",
    "group": f"pod.metadata.labels[?'{JOB}'].orValue('')",
    "size": f"int(pod.metadata.annotations[?'{SIZE}'].orValue('1'))",
}


def member(stage: Stage, name: str, job: str, size: int, **spec: Any) -> Object:
    """Return a pod of a job of so many."""
    metadata = {"name": name, "labels": {JOB: job}, "annotations": {SIZE: str(size)}}
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}
    whole = {
        "schedulerName": stage.name,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {"metadata": metadata, "spec": whole | spec}


def make(stage: Stage, pods: Iterable[Object]) -> None:
    for pod in pods:
        stage.api.create(stage.path, pod)


def placed(stage: Stage, job: str) -> list[str]:
    """Return the members of a job that have a node."""
    return [name for name, node in stage.places().items() if node and name.startswith(f"{job}-")]


def _is_told(stage: Stage, name: str, text: str) -> bool:
    """Return whether the scheduler has said so of a pod."""
    conditions = stage.pod(name).get("status", {}).get("conditions", [])
    return any(text in one.get("message", "") for one in conditions)


@pytest.fixture
def groups(stage: Stage, serving: Serving) -> Serving:
    serving.put("groups", binding={"gang": [GANG]})
    serving.start()
    return serving


def test_of_two_groups_one_starts_and_no_part_of_the_other(
    stage: Stage, groups: Serving, kwok_nodes: MakeNodes
) -> None:
    kwok_nodes(10, equal(cpu="1"))
    stage.start(*groups.entries(hold_s=30))
    make(stage, [member(stage, f"{job}-{number}", job, 8) for number in range(8) for job in ("red", "blue")])
    began = time.monotonic()
    wait_for("one to start", lambda: max(len(placed(stage, job)) for job in ("red", "blue")) == 8 or None)
    print(f"complete after {time.monotonic() - began:.2f} s")
    assert sorted(len(placed(stage, job)) for job in ("red", "blue")) == [0, 8]
    first = next(job for job in ("red", "blue") if placed(stage, job))
    for number in range(8):
        stage.api.delete(f"{stage.path}/{first}-{number}")
    wait_for("the other one to start", lambda: len(placed(stage, {"red": "blue", "blue": "red"}[first])) == 8 or None)


def test_no_member_starts_before_the_last_has_come(stage: Stage, groups: Serving, kwok_nodes: MakeNodes) -> None:
    kwok_nodes(4, equal(cpu="4"))
    stage.start(*groups.entries(hold_s=30))
    for number in range(3):
        make(stage, [member(stage, f"late-{number}", "late", 4)])
        assert "waiting for members of its group" in stage.refusal(f"late-{number}")
        assert placed(stage, "late") == []
    make(stage, [member(stage, "late-3", "late", 4)])
    began = time.monotonic()
    wait_for("all to start", lambda: len(placed(stage, "late")) == 4 or None)
    print(f"complete {time.monotonic() - began:.2f} s after the last came")


def test_a_group_that_cannot_fit_lets_another_by(stage: Stage, groups: Serving, kwok_nodes: MakeNodes) -> None:
    kwok_nodes(4, equal(cpu="1"))
    stage.start(*groups.entries(hold_s=30))
    make(stage, [member(stage, f"large-{number}", "large", 8) for number in range(8)])
    names = [f"large-{number}" for number in range(8)]
    wait_for("it to fail", lambda: any(_is_told(stage, name, "of 8 members") for name in names) or None)
    make(stage, [member(stage, f"small-{number}", "small", 4) for number in range(4)])
    began = time.monotonic()
    wait_for("the small one to start", lambda: len(placed(stage, "small")) == 4 or None)
    print(f"complete after {time.monotonic() - began:.2f} s")
    assert placed(stage, "large") == []


def test_a_pod_beside_groups_is_bound_as_ever(stage: Stage, groups: Serving, kwok_nodes: MakeNodes) -> None:
    kwok_nodes(2, equal(cpu="4"))
    stage.start(*groups.entries(hold_s=30))
    make(stage, [member(stage, "alone-0", "alone", 3)])
    plain = member(stage, "plain", "", 1)
    del plain["metadata"]["labels"], plain["metadata"]["annotations"]
    make(stage, [plain])
    assert stage.placed("plain")
    assert placed(stage, "alone") == []


def _asked(serving: Serving, verb: str) -> float:
    return serving.metric("fairlead_webhook_request_duration_seconds_count", verb=verb)


def test_a_group_of_a_high_priority_evicts_no_pods(stage: Stage, groups: Serving, kwok_nodes: MakeNodes) -> None:
    for node in kwok_nodes(4, equal(cpu="1")):
        stage.make_pod(f"low-{node}", on=node, cpu="1")
    low = stage.living()
    stage.start(*groups.entries(hold_s=30))
    make(stage, [member(stage, f"high-{number}", "high", 4, priorityClassName=URGENT) for number in range(4)])
    wait_for("the scheduler to look for pods to evict", lambda: _asked(groups, "preempt") >= 1 or None)
    for number in range(4):
        assert stage.refusal(f"high-{number}")
    assert low <= stage.living()
    for name in low:
        stage.api.delete(f"{stage.path}/{name}")
    wait_for("the group to start", lambda: len(placed(stage, "high")) == 4 or None, timeout_s=90)


def test_a_pod_of_a_high_priority_evicts_no_member_that_is_held(
    half: HalfHeld, stage: Stage, groups: Serving, kwok_nodes: MakeNodes
) -> None:
    kwok_nodes(3, equal(cpu="2"))
    stage.start(*groups.entries(hold_s=30), half.entry)
    make(stage, [member(stage, f"half-{number}", "half", 8) for number in range(8)])
    assert half.reached.wait(60)
    stage.make_pod("high", cpu="2", urgent=True)
    wait_for("the scheduler to look for pods to evict", lambda: _asked(groups, "preempt") >= 1 or None)
    everybody = {"high", *(f"half-{number}" for number in range(8))}
    assert stage.living() == everybody
    assert placed(stage, "half") == []
    half.let_go()
    assert stage.placed("high")
    assert stage.living() == everybody


def test_pods_in_no_group_are_bound_while_a_large_group_is_held(
    half: HalfHeld, stage: Stage, groups: Serving, kwok_nodes: MakeNodes
) -> None:
    kwok_nodes(10, equal(cpu="12"))
    half.count = 99
    stage.start(*groups.entries(hold_s=30), half.entry)
    stage.api.create_all(stage.path, [member(stage, f"half-{number}", "half", 100) for number in range(100)])
    wait_for("all but one to be held", lambda: groups.metric("fairlead_held_binds") == half.count or None)
    longest_s = 0.0
    for number in range(5):
        began = time.monotonic()
        stage.make_pod(f"plain-{number}", cpu="1")
        stage.placed(f"plain-{number}")
        longest_s = max(longest_s, time.monotonic() - began)
    print(f"at most {longest_s:.2f} s for a pod in no group")
    assert groups.metric("fairlead_held_binds") == half.count
    assert placed(stage, "half") == []


def test_twenty_groups_in_two_blocks_of_which_twelve_fit(stage: Stage, groups: Serving, kwok_nodes: MakeNodes) -> None:
    for number, node in enumerate(kwok_nodes(12, equal(cpu="8"))):
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"block": "ab"[number % 2]}}})
    stage.start(*groups.entries(hold_s=30))
    jobs = [f"j{number:02}" for number in range(20)]
    pods = [
        member(stage, f"{job}-{number}", job, 8, nodeSelector={"block": "ab"[int(job[1:]) % 2]})
        for number in range(8)
        for job in jobs
    ]
    began = time.monotonic()
    stage.api.create_all(stage.path, pods)

    def sizes() -> list[int]:
        places = stage.places()
        return [sum(bool(places[f"{job}-{number}"]) for number in range(8)) for job in jobs]

    wait_for("what fits to start", lambda: sum(sizes()) == 96 or None, timeout_s=120)
    print(f"12 groups complete after {time.monotonic() - began:.2f} s")
    assert sorted(sizes()) == [0] * 8 + [8] * 12


def test_a_group_with_devices_starts_where_only_one_placement_fits(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """Each of the cards takes a large and a small share, and no other way takes them all."""
    memory, count = "example.org/gpu-mem", "example.org/gpu-count"
    share: dict[str, Any] = {"name": "gpu", "shares": [{"resource": memory}], "layout": {"count": count}}
    kwok_nodes(2, equal(extended={memory: "60", count: "2"}))
    serving.put("groups", binding={"gang": [GANG], "deviceShare": [share]})
    serving.start()
    stage.start(*serving.entries(hold_s=30))
    pods = [member(stage, f"cards-{number}", "cards", 8) for number in range(8)]
    for number, pod in enumerate(pods):
        amounts = {memory: "20" if number % 2 else "10"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    make(stage, pods)
    began = time.monotonic()
    wait_for("all to start", lambda: len(placed(stage, "cards")) == 8 or None, timeout_s=90)
    print(f"complete after {time.monotonic() - began:.2f} s")


def _kill_serving(stage: Stage, serving: Serving, __: Cluster) -> None:
    serving.kill()
    serving.start()
    assert placed(stage, "half") == []


def _kill_scheduler(stage: Stage, serving: Serving, ground: Cluster) -> None:
    running = process.running(ground.folder)
    process.kill(one for name, one in running.items() if name.startswith("test-scheduler-"))
    # The next one finds no member kept back, and may have started all of them by the time it is seen to be ready.
    assert placed(stage, "half") == []
    stage.start(*serving.entries(hold_s=30))


@pytest.mark.parametrize("fault", [_kill_serving, _kill_scheduler])
def test_a_group_that_is_held_by_half_starts_whole(
    half: HalfHeld,
    stage: Stage,
    groups: Serving,
    kwok_nodes: MakeNodes,
    ground: Cluster,
    fault: Callable[[Stage, Serving, Cluster], None],
) -> None:
    kwok_nodes(8, equal(cpu="1"))
    half.waits = True
    stage.start(*groups.entries(hold_s=30), half.entry)
    make(stage, [member(stage, f"half-{number}", "half", 8) for number in range(8)])
    assert half.reached.wait(60)
    wait_for("half to be held", lambda: groups.metric("fairlead_held_binds") == half.count or None)
    began = time.monotonic()
    fault(stage, groups, ground)
    half.let_go()
    wait_for("all to start", lambda: len(placed(stage, "half")) == 8 or None)
    print(f"{fault.__name__}: complete after {time.monotonic() - began:.2f} s")
