"""What becomes of the nodes that a filter reply lets pass, refuses, or does not mention."""

from collections.abc import Mapping

import pytest

from extender import Answer, Reply, Scene
from extender.replies import always, by_pod, refusing
from testbed.api import Object

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"

_REPLIES: Mapping[str, tuple[Object, str, str]] = {
    "failed nodes stay candidates for preemption": (
        {"FailedNodes": {"n1": "full of cats", "n2": "full of cats"}},
        " 2 full of cats.",
        f"2 {_NO_VICTIMS}",
    ),
    "unresolvable nodes do not": (
        {"FailedAndUnresolvableNodes": {"n1": "full of cats", "n2": "full of dogs"}},
        " 1 full of cats, 1 full of dogs.",
        f"2 {_NO_HELP}",
    ),
    "a node that is both is unresolvable": (
        {"FailedNodes": {"n1": "maybe", "n2": "maybe"}, "FailedAndUnresolvableNodes": {"n2": "never"}},
        " 1 maybe, 1 never.",
        f"1 {_NO_VICTIMS}, 1 {_NO_HELP}",
    ),
    "an absent node has no reason, and is no candidate": (
        {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": "full of cats"}},
        " 1 full of cats.",
        f"2 {_NO_HELP}",
    ),
    "an empty reply refuses all nodes without a reason": ({}, "", f"2 {_NO_HELP}"),
    "a name that nobody asked about is counted all the same": (
        {"FailedAndUnresolvableNodes": {"n1": "full of cats", "n2": "full of cats", "stranger": "full of cats"}},
        " 3 full of cats.",
        f"2 {_NO_HELP}",
    ),
}
"""What the filter replies, and what is made of it: the reasons, and what preemption says of the two nodes."""


def test_what_users_read_follows_from_the_reply(scene: Scene, kubernetes_version: str) -> None:
    pods = {_name(case): case for case in _REPLIES}
    scene.make_nodes(2)
    scene.recorder.replies["gate/filter"] = by_pod({pod: always(_REPLIES[case][0]) for pod, case in pods.items()})
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pods(pods)
    want = {case: _message(kubernetes_version, *said) for case, (_, *said) in _REPLIES.items()}
    assert {case: scene.refusal(pod) for pod, case in pods.items()} == want
    want_events = {case: {("FailedScheduling", message)} for case, message in want.items()}
    assert {case: scene.events(pod) for pod, case in pods.items()} == want_events


def test_a_failed_node_that_lacks_nothing_else_makes_preemption_fail(scene: Scene) -> None:
    """In-tree filters find room on the node without any victim, which the scheduler takes for an error of its own."""
    scene.make_nodes(1)
    scene.make_pod("victim", on="n1")
    scene.recorder.replies["gate/filter"] = always({"FailedNodes": {"n1": "full of cats"}})
    scene.start(scene.recorder.entry("gate", "filter", "preempt"))
    scene.make_pod("preemptor", urgent=True)
    assert 'expected at least one victim pod on node "n1"' in scene.refusal("preemptor")
    assert scene.recorder.of("gate/preempt") == []


_SURVIVORS: Mapping[str, Reply] = {
    "without reasons": refusing("n1", "n3"),
    "with reasons": refusing("n1", "n3", reason="full of cats"),
    "with a reason against the survivor": always({"NodeNames": ["n2"], "FailedNodes": {"n2": "full of cats"}}),
}


@pytest.mark.parametrize("case", _SURVIVORS)
def test_nobody_reads_reasons_while_a_node_survives(scene: Scene, case: str) -> None:
    scene.make_nodes(3)
    scene.recorder.replies["gate/filter"] = _SURVIVORS[case]
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pod("web")
    assert scene.placed("web") == "n2"
    assert scene.events("web") == {("Scheduled", f"Successfully assigned {scene.name}/web to n2")}


def test_reasons_left_out_are_missed_when_a_later_entry_leaves_no_node(scene: Scene, kubernetes_version: str) -> None:
    scene.make_nodes(2)
    first = {"told": refusing("n1", reason="full of cats"), "untold": refusing("n1")}
    scene.recorder.replies |= {"first/filter": by_pod(first), "second/filter": refusing("n2", reason="full of dogs")}
    scene.start(scene.recorder.entry("first", "filter"), scene.recorder.entry("second", "filter"))
    scene.make_pods(first)
    want = {"told": " 1 full of cats, 1 full of dogs.", "untold": " 1 full of dogs."}
    assert {pod: scene.refusal(pod) for pod in first} == {
        pod: _message(kubernetes_version, reasons, f"2 {_NO_HELP}") for pod, reasons in want.items()
    }
    assert {tuple(call.nodes) for call in scene.recorder.of("second/filter")} == {("n2",)}


_ERRORS: Mapping[str, tuple[Object | Answer, str]] = {
    "an error in the reply": ({"Error": "policy web does not compile"}, "policy web does not compile"),
    "a survivor that nobody asked about": (
        {"NodeNames": ["stranger"]},
        'claims a filtered node "stranger" which is not found in the input node list',
    ),
    "another status than 200": (Answer(b"{}", status=201), "code 201"),
    "an empty body": (Answer(b""), "EOF"),
}


def test_an_error_is_no_refusal(scene: Scene) -> None:
    pods = {_name(case): case for case in _ERRORS}
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = by_pod({pod: always(_ERRORS[case][0]) for pod, case in pods.items()})
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pods(pods)
    seen = {case: scene.refusal(pod, "SchedulerError") for pod, case in pods.items()}
    assert {case: text for case, text in seen.items() if _ERRORS[case][1] not in text} == {}


def test_an_error_of_an_entry_that_may_be_ignored_lets_every_node_pass(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = always({"Error": "policy web does not compile"})
    scene.start(scene.recorder.entry("gate", "filter", ignorable=True))
    scene.make_pod("web")
    assert scene.placed("web") == "n1"


def _name(case: str) -> str:
    return case.replace(" ", "-").replace(",", "")


def _message(version: str, reasons: str, preemption: str) -> str:
    """What is said of two nodes. From 1.34 to 1.36 the plugin of resource claims says that it had nothing to do."""
    claims = "no new claims to deallocate, " if version.startswith(("1.34.", "1.35.", "1.36.")) else ""
    return f"0/2 nodes are available:{reasons} {claims}preemption: 0/2 nodes are available: {preemption}."
