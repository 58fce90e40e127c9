"""What scores do, and what may be left out of them."""

from collections import Counter
from collections.abc import Mapping

import pytest

from extender import Reply, Scene
from extender.replies import always, by_pod, scoring, scoring_all, unscored

_NODES, _PODS = 50, 400
_MANY, _FEW = 45, 25

_LOTS: Mapping[str, tuple[bool, Reply, range]] = {
    "a node that nobody scores takes part in no lot": (False, unscored, range(1, _FEW)),
    "a zero is a lot": (False, scoring_all(0), range(_MANY, _NODES + 1)),
    "an entry that does not prioritize gives every node a lot": (True, unscored, range(_MANY, _NODES + 1)),
}
"""Whether there is a gate, what is said of scores, and how many of the nodes then get pods."""
_ALL_DRAW_LOTS = ("1.33.", "1.34.")
"""`selectHost` draws among all nodes of the highest total. Since 1.35 the lot is a number (`Randomizer`) that only a
node with an extender's score is given (pkg/scheduler/schedule_one.go)."""


@pytest.mark.parametrize("case", _LOTS)
def test_who_draws_lots_between_equal_nodes(scene: Scene, kubernetes_version: str, case: str) -> None:
    """Nodes so large that no pod changes an in-tree score; the ballast takes those off their maximum."""
    has_gate, reply, want = _LOTS[case]
    if kubernetes_version.startswith(_ALL_DRAW_LOTS):
        want = range(_MANY, _NODES + 1)
    for node in scene.make_nodes(_NODES, cpu="1000000", memory="1Pi"):
        scene.make_pod(f"ballast-{node}", on=node, cpu="1000")
    scene.recorder.replies["scores/prioritize"] = reply
    gate = [scene.recorder.entry("gate", "filter", "preempt")] if has_gate else []
    scene.start(*gate, scene.recorder.entry("scores", "prioritize"))
    scene.make_pods([f"web-{number}" for number in range(_PODS)])
    used = Counter(scene.all_placed()) - Counter(scene.nodes)
    print(f"{case}: {len(used)} nodes used, at most {max(used.values())} pods on one")  # pytest -rP shows it
    assert len(used) in want


_SCORES = {"n1": 2, "n2": 5, "n3": 0, "n4": 3}
_RANKED = ["n2", "n4", "n1", "n3"]


def _shifted(by: int) -> dict[str, int]:
    return {node: score + by for node, score in _SCORES.items()}


_RANKINGS: Mapping[str, tuple[Reply, list[str]]] = {
    "scores as they are": (scoring(_SCORES), _RANKED),
    "all scores raised by a constant, past ten": (scoring(_shifted(7)), _RANKED),
    "all scores lowered by a constant, below zero": (scoring(_shifted(-4)), _RANKED),
    "zeros left out": (scoring({node: score for node, score in _SCORES.items() if score}), _RANKED),
    "the order of the reply does not matter": (scoring(dict(reversed(_SCORES.items()))), _RANKED),
    "a node named twice is given the sum": (
        always([{"Host": host, "Score": score} for host, score in [("n1", 3), ("n2", 5), ("n4", 4), ("n1", 3)]]),
        ["n1", "n2", "n4", "n3"],
    ),
}


@pytest.mark.parametrize("case", _RANKINGS)
def test_nodes_fill_in_the_order_of_their_scores(scene: Scene, case: str) -> None:
    """Each node takes one pod, so that the pods, one after another, tell the ranking."""
    reply, want = _RANKINGS[case]
    scene.make_nodes(4, pods=1)
    scene.recorder.replies["scores/prioritize"] = reply
    scene.start(scene.recorder.entry("gate", "filter"), scene.recorder.entry("scores", "prioritize"))
    seen = []
    for number in range(4):
        scene.make_pod(f"web-{number}")
        seen.append(scene.placed(f"web-{number}"))
    assert seen == want


def test_a_lone_survivor_is_not_scored(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.start(scene.recorder.entry("gate", "filter", "prioritize"))
    scene.make_pod("web")
    assert scene.placed("web") == "n1"
    assert [call.path for call in scene.recorder.calls] == ["gate/filter"]


def test_a_fraction_costs_the_whole_reply(scene: Scene) -> None:
    """And nobody is told. n2, which the reply prefers by far, is left to the in-tree scores, which prefer n1."""
    scene.make_nodes(2)
    scene.make_pod("ballast", on="n2", cpu="3")
    replies = {"whole": scoring({"n1": 1, "n2": 100}), "fraction": scoring({"n1": 1.0, "n2": 100})}
    scene.recorder.replies["scores/prioritize"] = by_pod(replies)
    scene.start(scene.recorder.entry("scores", "prioritize"))
    scene.make_pods(replies)
    assert {pod: scene.placed(pod) for pod in replies} == {"whole": "n2", "fraction": "n1"}
    assert {reason for reason, _ in scene.events("fraction")} == {"Scheduled"}
