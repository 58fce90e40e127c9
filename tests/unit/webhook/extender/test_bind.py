"""bind: what is posted, and what is refused before anybody is asked."""

import json
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.webhook.extender import bind as placing
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import VerbReply
from fairlead.webhook.extender.requests import BindArgs
from support.policy import Clock, node, policy
from support.webhook import Asking, at, go

ASKED = {"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "n"}


def pod(uid: str = "u-x", scheduler: str = "fairlead", **metadata: Any) -> Any:
    about = {"name": "x", "namespace": "ml", "uid": uid, **metadata}
    return from_json("Pod", {"metadata": about, "spec": {"schedulerName": scheduler}})


def asking(*pods: Any, **spec: Any) -> Asking:
    return Asking([policy(**spec)] if spec else [], [node("n", labels={"class": "gold"})], unplaced=pods)


def bind(asking: Asking, **other: str) -> BindDecision | BindArgs | VerbReply:
    return asking.bind(json.dumps({**ASKED, **other}).encode())


CLASS = {"fairlead.dev/class": {"expression": "node.metadata.labels['class']", "onError": "Reject"}}


def test_what_is_posted() -> None:
    placing = bind(asking(pod(), annotations=CLASS))
    assert isinstance(placing, BindDecision)
    assert placing.binding == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "x",
            "namespace": "ml",
            "uid": "u-x",
            "annotations": {"fairlead.dev/class": "gold"},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }
    assert go.decode("bind", placing.bound.body) == {"Error": ""}


def test_no_annotations_are_no_field() -> None:
    placing = bind(asking(pod()))
    assert isinstance(placing, BindDecision)
    assert "annotations" not in placing.binding["metadata"]


def test_a_pod_that_the_mirror_does_not_know_is_asked_for_elsewhere() -> None:
    for held in ([], [pod("u-of-one-before")]):
        assert bind(asking(*held)) == BindArgs("x", "ml", "u-x", "n")


def test_a_pod_of_a_guarded_namespace_is_not_bound() -> None:
    guarding = Asking(unplaced=[pod()], excluded_namespaces=frozenset({"ml"}))
    answer = guarding.bind(json.dumps(ASKED).encode())
    assert isinstance(answer, VerbReply)
    want = {"Error": "pods of namespace ml must not depend on Fairlead: give them another scheduler"}
    assert go.decode("bind", answer.body) == want


REFUSED: dict[str, tuple[Any, dict[str, Any], dict[str, str], str]] = {
    "another scheduler's pod": (
        pod(scheduler="default-scheduler"),
        {},
        {},
        "the pod is for the scheduler 'default-scheduler', whose pods the caller may not place",
    ),
    "no node": (pod(), {}, {"Node": ""}, "the scheduler names no node"),
    "an annotation that cannot be computed": (
        pod(),
        {"annotations": CLASS},
        {"Node": "z"},
        "policy p cannot compute the annotation fairlead.dev/class: the node is not known yet",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    held, spec, other, want = REFUSED[case]
    answer = bind(asking(held, **spec), **other)
    assert isinstance(answer, VerbReply)
    assert (answer.status, go.decode("bind", answer.body), answer.outcome.result) == (200, {"Error": want}, "error")


def test_a_pod_that_was_found_elsewhere_and_is_another() -> None:
    held = asking()
    answer = placing.decide_bind(BindArgs("x", "ml", "u-x", "n"), pod("u-new"), held.serving, held.caller, at())
    assert isinstance(answer, VerbReply)
    assert go.decode("bind", answer.body) == {"Error": "another pod has that name now"}


def test_a_body_that_is_no_request() -> None:
    answer = asking().bind(b"{}")
    assert isinstance(answer, VerbReply)
    assert (answer.status, "PodName" in go.decode("bind", answer.body)["Error"]) == (200, True)


def test_a_pod_that_cannot_be_read() -> None:
    odd = from_json(
        "Pod",
        {
            "metadata": {"name": "x", "namespace": "ml", "uid": "u-x"},
            "spec": {"schedulerName": "fairlead", "containers": [{"resources": {"requests": {"cpu": "lots"}}}]},
        },
    )
    assert isinstance(bind(asking(odd)), BindDecision), "nobody reads it"
    answer = bind(asking(odd, annotations=CLASS))
    assert isinstance(answer, VerbReply)
    assert "the pod cannot be read" in go.decode("bind", answer.body)["Error"]


def test_conflicts_are_told() -> None:
    rules = [policy(name, annotations={"fairlead.dev/a": f"'{name}'"}) for name in ("one", "two")]
    placing = Asking(rules, unplaced=[pod()]).bind(json.dumps(ASKED).encode())
    assert isinstance(placing, BindDecision)
    assert [(each.winner, each.loser) for each in placing.bound.outcome.conflicts] == [("one", "two")]


SLOWLY = {"fairlead.dev/a": {"expression": "'a'"}, "fairlead.dev/b": {"expression": "'b'"}}
TIMES: dict[str, dict[str, Any]] = {
    "annotations": {"annotations": SLOWLY},
    "conditions": {"annotations": SLOWLY, "match": {"conditions": {"c": "true", "d": "true"}}},
}


@pytest.mark.parametrize("case", TIMES)
@pytest.mark.parametrize("on_error", ["Omit", "Reject"])
def test_a_policy_that_takes_too_long_is_named_and_then_its_annotations_are_as_their_on_error_says(
    case: str, on_error: str
) -> None:
    spec = TIMES[case]
    needed = {key: {**one, "onError": on_error} for key, one in SLOWLY.items()}
    one = Asking(
        [policy(**{**spec, "annotations": needed}), policy("q", annotations={"fairlead.dev/q": "'q'"})],
        [node("n")],
        unplaced=[pod(), pod_of("web")],
    )
    clock = Clock(1_000)
    asked = json.dumps(ASKED).encode()
    for switched in (None, "class"):
        answer = one.bind(asked, at(clock=clock, deadline_ns=clock.time))
        assert isinstance(answer, VerbReply)
        assert json.loads(answer.body) == {"Error": "policy p is too slow"}
        assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", switched)
    found = one.bind(asked, at(clock=clock, deadline_ns=clock.time + 10**9))
    if on_error == "Omit":
        assert isinstance(found, BindDecision)
        assert found.annotations == {"fairlead.dev/q": "q"}
    else:
        assert isinstance(found, VerbReply)
        assert "cannot compute the annotation fairlead.dev/a: policy p is too slow" in json.loads(found.body)["Error"]
    assert "is too slow" in repr(one.tally.drain())
    other = one.bind(
        json.dumps({**ASKED, "PodNamespace": "web"}).encode(), at(clock=clock, deadline_ns=clock.time + 10**9)
    )
    assert isinstance(other, BindDecision)
    assert other.annotations.keys() == {*SLOWLY, "fairlead.dev/q"}, "pods of others are written what they should be"


def pod_of(namespace: str) -> Any:
    return from_json(
        "Pod",
        {"metadata": {"name": "x", "namespace": namespace, "uid": "u-x"}, "spec": {"schedulerName": "fairlead"}},
    )


def test_whoever_was_late_already_is_not_counted() -> None:
    one = Asking([policy(annotations=SLOWLY)], [node("n")], unplaced=[pod()])
    clock = Clock(1_000)
    for _ in range(3):
        answer = one.bind(json.dumps(ASKED).encode(), at(clock=clock, deadline_ns=0)._replace(had_enough_time=False))
        assert isinstance(answer, VerbReply)
        assert answer.outcome.too_slow == "p"
    assert not one.pace.open_circuits(clock.time)
