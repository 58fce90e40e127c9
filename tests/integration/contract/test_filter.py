"""What becomes of the nodes that a filter reply lets pass, refuses, or does not mention."""

from collections.abc import Mapping

import pytest

from extender import Answer, Reply, Scene
from extender.replies import passing, refusing
from testbed.api import Object

_REPLIES: Mapping[str, tuple[Object, str]] = {
    "failed nodes stay candidates for preemption": (
        {"FailedNodes": {"n1": "full of cats", "n2": "full of cats"}},
        "0/2 nodes are available: 2 full of cats. "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
    ),
    "unresolvable nodes do not": (
        {"FailedAndUnresolvableNodes": {"n1": "full of cats", "n2": "full of dogs"}},
        "0/2 nodes are available: 1 full of cats, 1 full of dogs. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    ),
    "a node that is both is unresolvable": (
        {"FailedNodes": {"n1": "maybe", "n2": "maybe"}, "FailedAndUnresolvableNodes": {"n2": "never"}},
        "0/2 nodes are available: 1 maybe, 1 never. preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.",
    ),
    "an absent node has no reason, and is no candidate": (
        {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": "full of cats"}},
        "0/2 nodes are available: 1 full of cats. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    ),
    "an empty reply refuses all nodes without a reason": (
        {},
        "0/2 nodes are available: preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    ),
    "a name that nobody asked about is counted all the same": (
        {"FailedAndUnresolvableNodes": {"n1": "full of cats", "n2": "full of cats", "stranger": "full of cats"}},
        "0/2 nodes are available: 3 full of cats. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    ),
}


def test_what_users_read_follows_from_the_reply(scene: Scene, kubernetes_version: str) -> None:
    by_pod = {case.replace(" ", "-").replace(",", ""): case for case in _REPLIES}
    scene.make_nodes(2)
    scene.recorder.replies["gate/filter"] = lambda request: _REPLIES[by_pod[request["Pod"]["metadata"]["name"]]][0]
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pods(by_pod)
    wanted = {case: _as_said_by(kubernetes_version, want) for case, (_, want) in _REPLIES.items()}
    assert {case: scene.refusal(pod) for pod, case in by_pod.items()} == wanted
    assert {case: scene.events(pod) for pod, case in by_pod.items()} == {
        case: {("FailedScheduling", want)} for case, want in wanted.items()
    }


def _as_said_by(version: str, message: str) -> str:
    """Up to 1.36 a plugin that had nothing to do says so before preemption does."""
    if version.startswith(("1.35.", "1.36.")):
        return message.replace("preemption: ", "no new claims to deallocate, preemption: ")
    return message


def test_a_failed_node_that_lacks_nothing_else_makes_preemption_fail(scene: Scene) -> None:
    """In-tree filters find room on the node without any victim, which the scheduler takes for an error of its own."""
    scene.make_nodes(1)
    scene.make_pod("victim", on="n1")
    scene.recorder.replies["gate/filter"] = lambda request: {"FailedNodes": {"n1": "full of cats"}}
    scene.start(scene.recorder.entry("gate", "filter", "preempt"))
    scene.make_pod("preemptor", urgent=True)
    assert 'expected at least one victim pod on node "n1"' in scene.refusal("preemptor")
    assert scene.recorder.of("gate/preempt") == []


@pytest.mark.parametrize("reply", [
    pytest.param(refusing("n1", "n3"), id="without reasons"),
    pytest.param(refusing("n1", "n3", reason="full of cats"), id="with reasons"),
    pytest.param(lambda request: passing(request, ["n1", "n3"]) | {"FailedNodes": {"n2": "full of cats"}}, id="refused and passed at once"),
])
def test_nobody_reads_reasons_while_a_node_survives(scene: Scene, reply: Reply) -> None:
    scene.make_nodes(3)
    scene.recorder.replies["gate/filter"] = reply
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pod("web")
    assert scene.placed("web") == "n2"
    assert scene.events("web") == {("Scheduled", f"Successfully assigned {scene.name}/web to n2")}


def test_reasons_left_out_are_missed_when_a_later_entry_leaves_no_node(scene: Scene, kubernetes_version: str) -> None:
    scene.make_nodes(2)
    scene.recorder.replies["first/filter"] = lambda request: (
        refusing("n1", reason="full of cats" if request["Pod"]["metadata"]["name"] == "told" else "")(request)
    )
    scene.recorder.replies["second/filter"] = refusing("n2", reason="full of dogs")
    scene.start(scene.recorder.entry("first", "filter"), scene.recorder.entry("second", "filter"))
    scene.make_pods(["told", "untold"])
    preemption = _as_said_by(kubernetes_version, "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")
    assert scene.refusal("told") == f"0/2 nodes are available: 1 full of cats, 1 full of dogs. {preemption}"
    assert scene.refusal("untold") == f"0/2 nodes are available: 1 full of dogs. {preemption}"
    assert {tuple(call.nodes) for call in scene.recorder.of("second/filter")} == {("n2",)}


_ERRORS: Mapping[str, tuple[Reply, str]] = {
    "an error in the reply": (lambda request: {"Error": "policy web does not compile"}, "policy web does not compile"),
    "a name that nobody asked about": (
        lambda request: {"NodeNames": ["stranger"]}, 'claims a filtered node "stranger" which is not found in the input node list',
    ),
    "another status than 200": (lambda request: Answer(b"{}", status=201), "code 201"),
    "an empty body": (lambda request: Answer(b""), "EOF"),
}


def test_an_error_is_no_refusal_unless_the_entry_may_be_ignored(scene: Scene) -> None:
    by_pod = {case.replace(" ", "-"): case for case in _ERRORS}
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = lambda request: _ERRORS[by_pod[request["Pod"]["metadata"]["name"]]][0](request)
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pods(by_pod)
    seen = {case: scene.refusal(pod, "SchedulerError") for pod, case in by_pod.items()}
    assert {case: want for case, (_, want) in _ERRORS.items() if want not in seen[case]} == {}, seen


def test_an_error_of_an_entry_that_may_be_ignored_lets_every_node_pass(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = lambda request: {"Error": "policy web does not compile"}
    scene.start(scene.recorder.entry("gate", "filter", ignorable=True))
    scene.make_pod("web")
    assert scene.placed("web") == "n1"
