"""What the objects of a scheduler say of its roll."""

from typing import Any

import pytest

from fairlead.control.decide.rollout_observation import RolloutObservation, last_log_line, observe_rollout

HASH = "fairlead.dev/config-hash"
READY = [{"type": "Ready", "status": "True"}]


def deployment(config: str = "new", *, observed: int = 2, conditions: Any = (), **status: int) -> dict[str, Any]:
    counts = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, **status}
    return {
        "metadata": {"name": "d", "generation": 2, "annotations": {HASH: config}},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": observed, "conditions": [*conditions], **counts},
    }


def pod(name: str, config: str = "new", *, conditions: Any = READY, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {HASH: config}}, "status": {"conditions": conditions, **status}}


def ended(code: int, message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error", "message": message}}


def init(*, ready: bool = False, **states: Any) -> dict[str, Any]:
    return {"initContainerStatuses": [{"name": "validate", "ready": ready, "restartCount": 1, **states}]}


def lease(holder: str) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder}}


TWO = [pod("a"), pod("b")]
WAITING = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]
LOST = [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]


@pytest.mark.parametrize(
    ("there", "pods", "holder", "expected"),
    [
        pytest.param(None, [], "", RolloutObservation(pending_reason="its Deployment does not exist"), id="nothing"),
        pytest.param(deployment(), TWO, "a_1", RolloutObservation(config="new", has_lease=True), id="all there"),
        pytest.param(deployment(), TWO, "", RolloutObservation(config="new"), id="nobody leads"),
        pytest.param(
            deployment(), [*TWO, pod("old", "old")], "old_1", RolloutObservation(config="new"), id="the old one leads"
        ),
        pytest.param(
            deployment(observed=1),
            TWO,
            "a_1",
            RolloutObservation(
                config="new", pending_reason="its Deployment has not been processed yet", has_lease=True
            ),
            id="not seen",
        ),
        pytest.param(
            deployment(replicas=3),
            TWO,
            "",
            RolloutObservation(config="new", pending_reason="1 old pods still exist"),
            id="old ones",
        ),
        pytest.param(
            deployment(availableReplicas=1),
            [pod("a"), pod("b", conditions=[], containerStatuses=[{"state": WAITING}])],
            "",
            RolloutObservation(
                config="new", pending_reason="1 of 2 pods are ready: b: ImagePullBackOff: no such image"
            ),
            id="no image",
        ),
        pytest.param(
            deployment(updatedReplicas=1, availableReplicas=1),
            [pod("a", conditions=UNSCHEDULED)],
            "",
            RolloutObservation(config="new", pending_reason="0 of 2 pods are ready: a has no node: 0/1 nodes"),
            id="no node",
        ),
        pytest.param(
            deployment(updatedReplicas=0, conditions=LOST),
            [],
            "",
            RolloutObservation(config="new", pending_reason="0 of 2 pods are ready: exceeded quota"),
            id="no pod can be made",
        ),
        pytest.param(
            deployment(availableReplicas=1),
            [
                pod("a"),
                pod("b", conditions=[], initContainerStatuses=[{"state": WAITING, "lastState": ended(1, "E\nx\n")}]),
            ],
            "",
            RolloutObservation(
                config="new", pending_reason="1 of 2 pods are ready", failure="kube-scheduler rejects it: x"
            ),
            id="refused by the scheduler",
        ),
        pytest.param(
            deployment(availableReplicas=1),
            [pod("a"), pod("b", conditions=[], containerStatuses=[{"state": ended(137), "restartCount": 1}])],
            "",
            RolloutObservation(config="new", pending_reason="1 of 2 pods are ready"),
            id="killed once",
        ),
        pytest.param(
            deployment(availableReplicas=1),
            [pod("a"), pod("b", conditions=[], containerStatuses=[{"state": ended(2), "restartCount": 2}])],
            "",
            RolloutObservation(
                config="new", pending_reason="1 of 2", failure="kube-scheduler exits with it: exit code 2, Error"
            ),
            id="ends again and again",
        ),
    ],
)
def test_what_is_seen(there: Any, pods: list[dict[str, Any]], holder: str, expected: RolloutObservation) -> None:
    found = observe_rollout(there, pods, lease(holder))
    assert (found.config, found.failure, found.has_lease) == (expected.config, expected.failure, expected.has_lease)
    assert found.pending_reason.startswith(expected.pending_reason)
    assert bool(found.pending_reason) == bool(expected.pending_reason)


HARMLESS = "W1125 21:00:00.000000 1 client_config.go:682] Neither --kubeconfig nor --master was specified."
FAULT = 'E1125 21:00:00.000000 1 run.go:72] "command failed" err="unknown field spec"'
LOST_NODE = {"terminated": {"exitCode": 255, "reason": "Unknown", "message": HARMLESS}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
REJECTED = f"kube-scheduler rejects it: {FAULT}"
VERDICTS: dict[str, tuple[dict[str, Any], str]] = {
    "it succeeded after its node stopped": (init(ready=True, state=DONE, lastState=LOST_NODE), ""),
    "it succeeded, and is not counted as ready yet": (init(state=DONE, lastState=LOST_NODE), ""),
    "it succeeded after it had failed": (init(ready=True, state=DONE, lastState=ended(1, FAULT)), ""),
    "its node stopped, and it waits to run again": (init(state=WAITING, lastState=LOST_NODE), ""),
    "its node stopped, and it runs again": (init(state={"running": {}}, lastState=LOST_NODE), ""),
    "its node stopped while it was writing an error": (
        init(state={"terminated": {"exitCode": 255, "reason": "Unknown", "message": FAULT}}),
        "",
    ),
    "it was killed": (init(state=ended(137, HARMLESS)), ""),
    "it was killed, and said nothing": (init(state=ended(137)), ""),
    "it ended with 255, and says why": (init(state=ended(255, FAULT)), REJECTED),
    "it failed": (init(state=ended(1, FAULT)), REJECTED),
    "it failed, and waits to run again": (init(state=WAITING, lastState=ended(1, FAULT)), REJECTED),
    "a warning comes last": (init(state=ended(1, f"{FAULT}\n{HARMLESS}")), REJECTED),
    "only a warning": (init(state=ended(1, HARMLESS)), "kube-scheduler rejects it: exit code 1, Error"),
    "a flag that it does not have, with the help after it": (
        init(state=ended(1, "Error: unknown flag: --x\nUsage:\n  kube-scheduler [flags]")),
        "kube-scheduler rejects it: Error: unknown flag: --x",
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_what_is_a_verdict_on_the_configuration(case: str) -> None:
    status, failure = VERDICTS[case]
    assert observe_rollout(deployment(), [pod("a", **status)], None).failure == failure


def test_a_container_that_was_lost_with_its_node_twice_is_no_verdict_either() -> None:
    statuses = [{"state": {"running": {}}, "lastState": LOST_NODE, "restartCount": 2, "ready": False}]
    assert observe_rollout(deployment(), [pod("a", conditions=[], containerStatuses=statuses)], None).failure == ""


def test_a_pod_that_waits_says_how_it_ended_last() -> None:
    statuses = [{"state": WAITING, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]
    found = observe_rollout(
        deployment(availableReplicas=0), [pod("a", conditions=[], containerStatuses=statuses)], None
    )
    assert found.pending_reason.endswith("a: ImagePullBackOff: no such image; it ended with exit code 137, OOMKilled")


def test_without_a_lease_and_with_one_that_nobody_holds() -> None:
    assert not observe_rollout(deployment(), TWO, None).has_lease
    assert not observe_rollout(deployment(), TWO, {"spec": {"holderIdentity": None}}).has_lease


@pytest.mark.parametrize(("text", "words"), [("", ""), ("a\n\nb \n\n", "b"), ("x" * 600, "x" * 500)])
def test_last_words(text: str, words: str) -> None:
    assert last_log_line(text) == words
