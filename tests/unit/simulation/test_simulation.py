"""Policies over a snapshot: what each node is to a pod."""

import json
from typing import Any

import msgspec
import pytest

from fairlead.simulation.results import PodResult, result_for_programs
from fairlead.simulation.snapshot_error import SnapshotError
from support.policy import policy
from support.policy.comparing import COMPARED, Counting, comparing
from support.simulation.snapshot import judged, namespace, node, pod, simulation, written

GPU = policy(
    "gpu",
    filters={"class": {"expression": "node.metadata.labels[?'gpu'].orValue('') == 't4'", "reason": "wrong class"}},
)
COOL = policy("cool", scores={"room": {"expression": "free['cpu'] * 10.0", "weight": 2}})


def test_each_node_says_what_policies_and_the_scheduler_say() -> None:
    there = [node("n1", labels={"gpu": "t4"}), node("n2"), node("n3", labels={"gpu": "t4"}, room={"cpu": "1"})]
    found = judged(pod(asks={"cpu": "2"}), *there, policies=[GPU, COOL])
    assert found.policies == ["cool", "gpu"]
    assert [(one.name, one.fits, one.passed, one.resolvable, one.reasons, one.score) for one in found.nodes] == [
        ("n1", True, True, None, [], 160.0),
        ("n2", True, False, False, ["wrong class"], None),
        ("n3", False, True, None, [], None),
    ]
    assert found.preferred == ["n1"]


def test_scores_are_normalised_over_the_nodes_that_fit_and_pass() -> None:
    ranked = policy("p", filters=dict(GPU_WORDS), scores={"rank": {"expression": "free['cpu']", "normalize": "MinMax"}})
    there = [
        node("n1", labels={"gpu": "t4"}, room={"cpu": "4"}),
        node("n2", labels={"gpu": "t4"}, room={"cpu": "6"}),
        node("n3", labels={"gpu": "t4"}, room={"cpu": "64"}, unschedulable=True),
        node("n4", room={"cpu": "64"}),
    ]
    found = judged(pod(), *there, policies=[ranked])
    assert [one.score for one in found.nodes] == [0.0, 100.0, None, None]
    assert found.preferred == ["n2"]


GPU_WORDS = {"class": "node.metadata.labels[?'gpu'].orValue('') == 't4'"}


def test_without_scores_all_that_are_left_are_preferred() -> None:
    found = judged(pod(), node("n1"), node("n2", unschedulable=True), node("n3"))
    assert (found.policies, found.preferred) == ([], ["n1", "n3"])
    assert [one.score for one in found.nodes] == [0.0, None, 0.0]


def test_everything_that_refuses_a_node_is_said_in_order_and_the_first_decides_whether_evicting_helps() -> None:
    late = policy(
        "late", filters={"a": {"expression": "free['cpu'] > 100.0", "reason": "too full", "resolvable": True}}
    )
    first = policy(
        "first", priority=1, filters={"b": {"expression": "free['cpu'] > 99.0", "reason": "full", "resolvable": True}}
    )
    (one,) = judged(pod(), node(), policies=[late, GPU, first]).nodes
    assert one.reasons == ["full", "wrong class", "too full"]
    assert one.resolvable is True


def test_a_program_reads_what_policies_say_before_what_the_scheduler_says() -> None:
    found = judged(pod(asks={"cpu": "9", "memory": "90Gi"}), node(), policies=[GPU])
    (one,) = json.loads(msgspec.json.encode(result_for_programs(found)))["nodes"]
    assert one["reasons"] == ["wrong class", "does not fit: Insufficient cpu", "does not fit: Insufficient memory"]
    assert (one["fits"], one["passed"], one["resolvable"], one["score"]) == (False, False, False, None)


def test_pods_that_are_alike_are_judged_once_and_others_by_themselves() -> None:
    own = policy("own", filters={"own": "pod.metadata.labels[?'a'].orValue('') != node.metadata.name"})
    there = simulation(node("n1"), node("n2"), pod("on", on="n1", asks={"cpu": "7"}), policies=[own])

    def ask(**said: Any) -> PodResult:
        return there.judge(written(pod(**said)))

    first = ask(name="a")
    assert ask(name="b").verdicts is first.verdicts
    assert [one.is_candidate for one in ask(name="c", labels={"a": "n1"}).nodes] == [False, True]
    assert [one.is_candidate for one in ask(name="d", asks={"cpu": "2"}).nodes] == [False, True]
    assert [one.is_candidate for one in ask(name="e", schedulerName="x", asks={"cpu": "2"}).nodes] == [False, True]
    assert [one.is_candidate for one in ask(name="on", asks={"cpu": "2"}).nodes] == [True, True]
    assert ask(name="f").verdicts is first.verdicts


def test_a_pod_that_is_placed_does_not_stand_in_its_own_way_and_is_back_afterwards() -> None:
    alone = policy(
        "alone", filters={"alone": {"expression": "pods.all(one, one.metadata.labels[?'app'].orValue('') != 'x')"}}
    )
    mine = pod("a", on="n1", labels={"app": "x"}, asks={"cpu": "6"})
    there = simulation(node("n1"), node("n2"), mine, policies=[alone])
    for _ in range(2):
        found = there.judge(written(mine))
        assert [one.passed and one.fits for one in found.nodes] == [True, True]
        other = there.judge(written(pod("b", asks={"cpu": "6"})))
        assert [(one.passed, one.fits) for one in other.nodes] == [(False, False), (True, True)]


def test_equal_pods_on_other_nodes_each_have_their_own_room_and_not_that_of_the_others() -> None:
    mine = [pod(name, on=on, asks={"cpu": "6"}) for name, on in (("a", "n1"), ("b", "n2"), ("c", "n2"))]
    there = simulation(node("n1"), node("n2", room={"cpu": "16"}), node("n3"), *mine, policies=[GPU])

    def fits(which: dict[str, Any]) -> list[bool]:
        return [one.fits for one in there.judge(written(which)).nodes]

    for _ in range(2):
        assert [fits(one) for one in mine] == [[True, False, True], [False, True, True], [False, True, True]]
        assert fits(pod("d", asks={"cpu": "6"})) == [False, False, True]


def test_a_pod_of_no_scheduler_is_the_default_ones() -> None:
    asked = pod()
    del asked["spec"]["schedulerName"]
    assert judged(asked, node(), policies=[policy("p", filters=GPU_WORDS)]).policies == []


def test_namespaces_are_known_where_the_snapshot_has_them() -> None:
    of_team = policy("p", match={"namespaceSelector": {"matchLabels": {"team": "ml"}}}, filters=GPU_WORDS)
    assert judged(pod(), node(), namespace(team="ml"), policies=[of_team]).policies == ["p"]
    assert judged(pod(), node(), namespace(team="web"), policies=[of_team]).policies == []
    (one,) = judged(pod(), node(), policies=[of_team]).nodes
    assert one.reasons == ["cannot tell whether policy p applies to this pod"]


def test_annotations_of_pods_that_a_policy_reads_are_kept() -> None:
    quiet = policy("p", filters={"q": "pods.all(one, one.metadata.annotations[?'loud'].orValue('') == '')"})
    loud = pod("a", on="n1")
    loud["metadata"]["annotations"] = {"loud": "yes", "other": "x"}
    assert [one.passed for one in judged(pod(), node(), loud, policies=[quiet]).nodes] == [False]


def test_what_was_compared_is_told_with_the_pod_taken_away() -> None:
    room = policy("room", filters={"room": "free['cpu'] > 7.0"}, scores={"s": "free['cpu']"})
    mine = pod("a", on="n1", asks={"cpu": "6"})
    there = simulation(node("n1"), mine, policies=[room])
    (told,) = there.explain(written(mine), there.judge(written(mine)), ["n1"])
    assert told.passed
    (scored,) = there.explain_scores(written(mine), there.judge(written(mine)))
    assert scored.total == 8.0


def test_a_score_that_compares_nodes_compares_those_that_fit_and_pass() -> None:
    over = Counting()
    compared = policy("p", rules=comparing(over), filters=dict(GPU_WORDS), scores={"s": COMPARED})
    gpu = {"gpu": "t4"}
    there = simulation(
        node("n1", labels=gpu),
        node("n2", labels=gpu),
        node("n3"),
        *(pod(f"on-{at}", on=name, asks={"cpu": cpu}) for at, (name, cpu) in enumerate([("n1", "1"), ("n2", "4")])),
        pod("on-n3", on="n3", asks={"cpu": "6"}),
        policies=[compared],
    )
    asked = written(pod())
    found = there.judge(asked)
    assert [one.score for one in found.nodes] == [25.0, 100.0, None]
    asks = len(over.calls)
    outcomes = [one.scores[0].outcome for name in there.names for one in there.explain(asked, found, [name])]
    assert outcomes == ["Scored", "Scored", "LeftOut"]
    assert over.calls[asks:] == [["n1", "n2"]]


@pytest.mark.parametrize(
    ("there", "want"),
    [
        (node(room={"cpu": "many"}), "a.json: node n1 cannot be read: 'many' is no quantity"),
        (pod("q", on="n1", asks={"cpu": "many"}), "a.json: pod ml/q cannot be read: 'many' is no quantity"),
        (
            node() | {"metadata": {"name": "n1", "labels": []}},
            "a.json: node n1 cannot be read: Expected `object`, got `array`",
        ),
    ],
)
def test_what_cannot_be_read_is_named(there: dict[str, object], want: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        simulation(there)
    assert str(caught.value).startswith(want)


def test_a_pod_that_cannot_be_read_is_named() -> None:
    with pytest.raises(SnapshotError, match=r"^b\.json: pod ml/p cannot be read: 'many' is no quantity$"):
        simulation(node()).judge(written(pod(asks={"cpu": "many"})), "b.json")
