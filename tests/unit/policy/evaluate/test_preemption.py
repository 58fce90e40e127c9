"""Candidates of a preemption that are given up."""

from typing import Any

import pytest

from fairlead.policy.evaluate.preemption import PROTECTED, Dropped, dropped
from support.policy import NOW, Evaluation, node, placed, pod, policy

VICTIMS = [
    placed("keep", labels={"never-evict": "true"}),
    placed("small"),
    placed("big", labels={"app": "blocker"}),
    placed("done", phase="Succeeded"),
]
REQUESTS = {"u-keep": 1.0, "u-small": 1.1, "u-big": 4.0, "u-done": 2.0}
KEEPERS = {"keepers": "victim.metadata.labels[?'never-evict'].orValue('') == 'true'"}

CASES: dict[str, tuple[dict[str, Any], list[str], Dropped | None]] = {
    "no policy has a say": ({}, ["keep"], None),
    "nobody is protected": ({"protect": KEEPERS}, ["small", "big"], None),
    "a victim is protected": ({"protect": KEEPERS}, ["small", "keep"], Dropped("p", "keepers", PROTECTED)),
    "a protected pod that is no victim": ({"protect": KEEPERS}, ["small"], None),
    "in doubt it is protected": (
        {"protect": {"k": "victim.metadata.labels['app'] == 'x'"}},
        ["small"],
        Dropped("p", "k", PROTECTED),
    ),
    "victims that have gone already": ({"protect": {"all": "true"}}, ["gone"], None),
    "no victims": ({"protect": {"all": "true"}}, [], None),
    "a filter that refuses the node anyway": (
        {"filters": {"gpu": {"expression": "node.metadata.labels[?'gpu'].hasValue()", "reason": "no GPU"}}},
        ["small"],
        Dropped("p", "gpu", "no GPU"),
    ),
    "a filter that the victims stood in the way of": (
        {"filters": {"alone": "!pods.exists(p, p.metadata.labels[?'app'].orValue('') == 'blocker')"}},
        ["big"],
        None,
    ),
    "and one that others still stand in the way of": (
        {"filters": {"alone": "!pods.exists(p, p.metadata.labels[?'app'].orValue('') == 'blocker')"}},
        ["small"],
        Dropped("p", "alone", "alone"),
    ),
    "what is free afterwards": ({"filters": {"room": "free['cpu'] >= 5.9"}}, ["small", "big"], None),
    "what is requested afterwards": ({"filters": {"left": "requested['cpu'] == 1.0"}}, ["small", "big"], None),
    "not enough": (
        {"filters": {"room": "free['cpu'] >= 6.0"}},
        ["small", "big"],
        Dropped("p", "room", "room"),
    ),
    "a pod that has ended frees nothing": (
        {"filters": {"room": "free['cpu'] > 0.9"}},
        ["done"],
        Dropped("p", "room", "room"),
    ),
    "a filter that cannot decide refuses": (
        {"filters": {"f": "node.metadata.labels['gpu'] == 'a'"}},
        ["small"],
        Dropped("p", "f", "rule f cannot be decided"),
    ),
    "unless onError is Pass": (
        {"filters": {"f": {"expression": "node.metadata.labels['gpu'] == 'a'", "onError": "Pass"}}},
        ["small"],
        None,
    ),
    "data are there": (
        {"data": [{"name": "w", "nodeLabel": {"key": "w"}}], "filters": {"f": "data.w == 4.0"}},
        ["small"],
        None,
    ),
    "a policy for other pods": ({"match": {"namespaces": ["other"]}, "filters": {"f": "false"}}, ["small"], None),
}


def _dropped(cluster: Evaluation, name: str, victims: list[str]) -> Dropped | None:
    return dropped(
        pod(),
        cluster.matched(pod()),
        cluster.nodes,
        name,
        [f"u-{one}" for one in victims],
        requests=lambda one: {"cpu": REQUESTS[one.uid]},
        now=NOW,
        tally=cluster.evaluator.tally,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_candidate_survives_only_if_no_policy_objects(name: str) -> None:
    spec, victims, want = CASES[name]
    cluster = Evaluation([policy(**spec)], [node(pods=VICTIMS, cpu=6.9, used=6.1, labels={"w": "4"})])
    assert _dropped(cluster, "n", victims) == want


def test_a_node_that_is_not_known_is_dropped_by_whoever_would_filter_or_protect() -> None:
    specs: list[dict[str, Any]] = [{"filters": {"f": "true"}}, {"protect": {"p": "false"}}]
    for spec in specs:
        assert _dropped(Evaluation([policy(**spec)]), "n", []) == Dropped("p", "", "node is not known yet")
    assert _dropped(Evaluation([policy(scores={"s": "1.0"})]), "n", []) is None


def test_the_first_policy_in_order_says_why() -> None:
    made = [policy("a", filters={"f": "false"}), policy("b", priority=1, protect={"all": "true"})]
    assert _dropped(Evaluation(made, [node(pods=VICTIMS)]), "n", ["small"]) == Dropped("b", "all", PROTECTED)
    assert _dropped(Evaluation(made, [node(pods=VICTIMS)]), "n", []) == Dropped("a", "f", "f")


def test_a_protection_that_raised_is_counted() -> None:
    cluster = Evaluation([policy(protect={"k": "victim.metadata.labels['app'] == 'x'"})], [node(pods=VICTIMS)])
    _dropped(cluster, "n", ["small"])
    (failures,) = cluster.evaluator.tally.drain()
    assert (failures.rule, failures.count) == ("k", 1)
