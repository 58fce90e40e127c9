"""Outcomes: what one state of a pod tells, row by row of the table in the reference."""

import json
from typing import Any

import pytest

from fairlead.learned.outcomes import PodOutcome, Told, decode_pod, outcomes_of
from fairlead.learned.pair import key_of

SETTLE = 600
START = 1_764_000_000
Json = dict[str, Any]


def time(after: int) -> str:
    minutes, seconds = divmod(after, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2025-11-24T{16 + hours:02}:{minutes:02}:{seconds:02}Z"


def test_the_clock_of_these_tests() -> None:
    pod = decode_pod(json.dumps({"metadata": {}, "status": {"startTime": time(3725)}}))
    assert pod.status.startTime is not None
    assert pod.status.startTime.timestamp() == START + 3725


def ended(code: int, ran: int, at: int, run: str = "") -> Json:
    times = {"startedAt": time(at - ran), "finishedAt": time(at)}
    return {"terminated": {"exitCode": code, "containerID": run or f"run-{at}", **times}}


RUNNING: Json = {"running": {"startedAt": time(5)}}
WAITING: Json = {"waiting": {"reason": "CrashLoopBackOff"}}


def container(name: str, state: Json, last: Json | None = None, restarts: int = 0) -> Json:
    return {"name": name, "state": state, "lastState": last or {}, "restartCount": restarts}


def condition(kind: str, at: int = 0, reason: str = "", status: str = "True") -> Json:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": time(at)}


SCHEDULED = condition("PodScheduled")
READY = condition("Ready", 10)


def told(
    now: int,
    *containers: Json,
    phase: str = "Running",
    reason: str = "",
    conditions: tuple[Json, ...] = (),
    init: tuple[Json, ...] = (),
    deleted: bool = False,
    node_is_ready: bool = True,
) -> Told:
    pod = {
        "metadata": {"uid": "u", "deletionTimestamp": time(20) if deleted else None},
        "spec": {"nodeName": "node"},
        "status": {
            "phase": phase,
            "reason": reason,
            "startTime": time(1),
            "conditions": [SCHEDULED, *conditions],
            "containerStatuses": [*containers],
            "initContainerStatuses": [*init],
        },
    }
    return outcomes_of(decode_pod(json.dumps(pod)), SETTLE, START + now, node_is_ready=node_is_ready)


def outcome(reward: float, after: int, *parts: object) -> PodOutcome:
    return PodOutcome(reward, START + after, key_of("u", *parts))


NONE = Told([], [])


def test_a_pod_that_succeeded() -> None:
    main, sidecar = container("main", ended(0, 50, 60)), container("proxy", ended(137, 52, 62))
    assert told(100, main, init=(sidecar,), phase="Succeeded").outcomes == [outcome(1.0, 62, "end")]


def test_a_pod_that_failed_and_was_tried_again_before_it_succeeded() -> None:
    main = container("main", ended(0, 50, 60), last=ended(1, 2, 5), restarts=1)
    assert told(100, main, phase="Succeeded").outcomes == [outcome(1.0, 60, "end"), outcome(0.0, 5, "main", "run-5")]


def test_a_pod_that_settled() -> None:
    main = container("main", RUNNING)
    assert told(1 + SETTLE, main, conditions=(READY,)) == Told([outcome(1.0, 1 + SETTLE, "settled")], [])
    assert told(SETTLE, main, conditions=(READY,)) == Told([], [outcome(1.0, 1 + SETTLE, "settled")])
    assert told(1 + SETTLE, main, conditions=(condition("Ready", status="False"),)) == NONE
    assert told(1 + SETTLE, container("main", RUNNING, restarts=1), conditions=(READY,)).outcomes == []
    restarted = container("init", ended(0, 1, 3), restarts=1)
    assert told(1 + SETTLE, main, conditions=(READY,), init=(restarted,)).outcomes == []


@pytest.mark.parametrize(("ran", "reward"), [(0, 0.0), (SETTLE - 1, 0.0), (SETTLE, 0.5)])
def test_a_container_that_failed_is_told_alike_in_all_states_that_have_its_end(ran: int, reward: float) -> None:
    end = ended(1, ran, 700)
    expected = outcome(reward, 700, "main", "run-700")
    states = [
        container("main", end, restarts=3),
        container("main", WAITING, last=end, restarts=3),
        container("main", RUNNING, last=end, restarts=4),
    ]
    for state in states:
        assert told(720, state).outcomes == [expected]
        assert told(720, init=(state,)).outcomes == [expected]
    assert told(720, states[0], phase="Failed").outcomes == [expected]


def test_a_container_without_an_id_is_told_by_its_time() -> None:
    end = ended(1, 5, 700)
    del end["terminated"]["containerID"]
    assert told(720, container("main", end)).outcomes == [outcome(0.0, 700, "main", START + 700)]


def test_two_ends_in_one_state() -> None:
    main = container("main", ended(2, 700, 900), last=ended(1, 5, 100), restarts=1)
    assert told(1000, main).outcomes == [outcome(0.0, 100, "main", "run-100"), outcome(0.5, 900, "main", "run-900")]


@pytest.mark.parametrize(
    "state", [ended(0, 5, 9), {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}]
)
def test_ends_that_tell_nothing(state: Json) -> None:
    assert told(20, container("main", state)).outcomes == []


@pytest.mark.parametrize("state", [{"waiting": {"reason": "ImagePullBackOff"}}, {}])
def test_a_pod_that_never_started(state: Json) -> None:
    init = container("init", state)
    assert told(SETTLE, container("main", state), init=(init,), phase="Pending") == Told(
        [outcome(0.0, SETTLE, "never")], []
    )
    assert told(SETTLE - 1, container("main", state), phase="Pending") == Told([], [outcome(0.0, SETTLE, "never")])
    assert told(SETTLE, phase="Pending").outcomes == [outcome(0.0, SETTLE, "never")]
    assert told(SETTLE, container("main", state), init=(container("init", RUNNING),), phase="Pending") == NONE
    assert told(SETTLE, container("main", state), phase="Pending", deleted=True) == NONE
    assert told(SETTLE, container("main", state), phase="Running") == NONE


KILLED = container("main", ended(143, 30, 40))


@pytest.mark.parametrize(
    ("phase", "reason", "disruption", "expected"),
    [
        ("Failed", "Evicted", "TerminationByKubelet", outcome(0.0, 35, "end")),
        ("Failed", "Terminated", "TerminationByKubelet", None),
        ("Failed", "Preempting", "TerminationByKubelet", None),
        ("Running", "", "PreemptionByScheduler", None),
        ("Running", "", "EvictionByEvictionAPI", None),
        ("Running", "", "DeletionByTaintManager", None),
        ("Failed", "", "DeletionByPodGC", outcome(0.0, 35, "end")),
    ],
)
def test_pods_that_are_ended_by_others(phase: str, reason: str, disruption: str, expected: PodOutcome | None) -> None:
    found = told(50, KILLED, phase=phase, reason=reason, conditions=(condition("DisruptionTarget", 35, disruption),))
    assert found.outcomes == ([] if expected is None else [expected])


@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "PreemptionByScheduler", "DeletionByTaintManager"])
def test_a_pod_that_is_ended_by_others_and_succeeds_tells_nothing(reason: str) -> None:
    main = container("main", ended(0, 30, 40))
    assert told(50, main, phase="Succeeded", conditions=(condition("DisruptionTarget", 35, reason),)) == NONE


def test_the_taint_manager_tells_of_nodes_that_are_not_ready() -> None:
    by = condition("DisruptionTarget", 35, "DeletionByTaintManager")
    assert told(50, KILLED, conditions=(by,), node_is_ready=False).outcomes == [outcome(0.0, 35, "end")]


def test_a_pod_that_is_deleted_tells_nothing_by_its_exits() -> None:
    assert told(50, KILLED, deleted=True) == NONE
    assert told(50, KILLED, phase="Failed", deleted=True) == NONE


@pytest.mark.parametrize(
    ("reason", "is_told"),
    [
        ("UnexpectedAdmissionError", True),
        ("OutOfcpu", False),
        ("OutOfmemory", False),
        ("OutOfpods", False),
        ("NodeAffinity", False),
        ("TopologyAffinityError", False),
    ],
)
def test_pods_that_the_kubelet_does_not_admit(reason: str, *, is_told: bool) -> None:
    for containers in [(), (KILLED,)]:
        found = told(SETTLE + 50, *containers, phase="Failed", reason=reason)
        assert found == (Told([outcome(0.0, 1, "end")], []) if is_told else NONE)


def test_a_pod_that_the_kubelet_ends_after_its_deadline_tells_nothing() -> None:
    assert told(50, KILLED, phase="Failed", reason="DeadlineExceeded") == NONE


def test_an_end_without_a_time_tells_nothing() -> None:
    pod = decode_pod(json.dumps({"metadata": {"uid": "u"}, "status": {"phase": "Failed", "reason": "Evicted"}}))
    assert outcomes_of(pod, SETTLE, START + 9) == NONE
