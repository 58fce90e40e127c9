"""With the real scheduler and `fairlead serve`, members of a group start together or not at all."""

import time
from collections.abc import Iterable
from typing import Any

import pytest

from extender import Stage
from support.process.serving import Serving
from testbed.api import Object, wait_for
from testbed.fixtures import MakeNodes
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
