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


def test_without_a_lease_and_with_one_that_nobody_holds() -> None:
    assert not observe_rollout(deployment(), TWO, None).has_lease
    assert not observe_rollout(deployment(), TWO, {"spec": {"holderIdentity": None}}).has_lease


@pytest.mark.parametrize(("text", "words"), [("", ""), ("a\n\nb \n\n", "b"), ("x" * 600, "x" * 500)])
def test_last_words(text: str, words: str) -> None:
    assert last_log_line(text) == words
