"""Annotations that are written when a pod is bound."""

from typing import Any

import pytest

from fairlead.policy.compile.policy_conflicts import Conflict, conflicts
from fairlead.policy.evaluate.annotations import annotations
from support.policy import NOW, Evaluation, node, pod, policy

X, Y = "fairlead.dev/x", "fairlead.dev/y"
RAISES = "node.metadata.labels['nope']"
LONG = "lists.range(21).map(i, '" + "é" * 100 + "').join('')"

CASES: dict[str, tuple[list[dict[str, Any]], dict[str, str], str | None]] = {
    "a value of the node": ([{X: "node.metadata.labels['zone']"}], {X: "z1"}, None),
    "the empty text": ([{X: "''"}], {X: ""}, None),
    "an absent field is the empty text": ([{X: "pod.spec.nodeName"}], {X: ""}, None),
    "what the pod has is never replaced": ([{"fairlead.dev/had": "'other'", Y: "'y'"}], {Y: "y"}, None),
    "one that raises is left out": ([{X: RAISES, Y: "'y'"}], {Y: "y"}, None),
    "or the pod is not bound": (
        [{X: {"expression": RAISES, "onError": "Reject"}}],
        {},
        f"policy p0 cannot compute the annotation {X}: no such key: 'nope'",
    ),
    "too long in bytes": ([{X: LONG, Y: "'y'"}], {Y: "y"}, None),
    "too long and needed": (
        [{X: {"expression": LONG, "onError": "Reject"}}],
        {},
        f"policy p0 cannot compute the annotation {X}: the value has more than 4096 bytes",
    ),
    "two policies, two keys": ([{X: "'a'"}, {Y: "'b'"}], {X: "a", Y: "b"}, None),
    "two policies, one key: the first writes": ([{X: "'a'"}, {X: "'b'", Y: "'b'"}], {X: "a", Y: "b"}, None),
    "also if it cannot": ([{X: RAISES}, {X: "'b'", Y: "'b'"}], {Y: "b"}, None),
    "the later one's onError does not matter then": (
        [{X: "'a'"}, {X: {"expression": RAISES, "onError": "Reject"}}],
        {X: "a"},
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_written(name: str) -> None:
    wanted, want, refusal = CASES[name]
    made = [policy(f"p{at}", annotations=one) for at, one in enumerate(wanted)]
    cluster = Evaluation(reversed(made), [node("n", labels={"zone": "z1"})])
    one = pod(annotations={"fairlead.dev/had": "before"})
    found = annotations(one, cluster.matched(one), cluster.nodes, "n", now=NOW, tally=cluster.evaluator.tally)
    assert (found.values, found.refusal) == (want, refusal)


def test_a_conflict_names_both_policies_and_the_key() -> None:
    cluster = Evaluation([policy("b", annotations={X: "'b'"}), policy("a", annotations={X: "'a'"})], [node("n")])
    found = annotations(pod(), cluster.matched(pod()), cluster.nodes, "n", now=NOW, tally=cluster.evaluator.tally)
    assert found.conflicts == [Conflict(X, "a", "b")]


def test_a_node_that_is_not_known_leaves_annotations_out_or_refuses() -> None:
    for on_error, want in (
        ("Omit", None),
        ("Reject", f"policy p cannot compute the annotation {X}: the node is not known yet"),
    ):
        cluster = Evaluation([policy(annotations={X: {"expression": "'x'", "onError": on_error}})])
        found = annotations(pod(), cluster.matched(pod()), cluster.nodes, "n", now=NOW, tally=cluster.evaluator.tally)
        assert (found.values, found.refusal) == ({}, want)


def test_what_could_not_be_computed_is_counted_under_its_key() -> None:
    cluster = Evaluation([policy(annotations={X: RAISES})], [node("n")])
    annotations(pod(), cluster.matched(pod()), cluster.nodes, "n", now=NOW, tally=cluster.evaluator.tally)
    (failures,) = cluster.evaluator.tally.drain()
    assert (failures.policy, failures.rule, failures.count) == ("p", X, 1)


def test_conflicts_are_found_within_a_scheduler_whatever_pods_match_and_in_whatever_order() -> None:
    a, b = policy("a", annotations={X: "'a'"}), policy("b", priority=1, annotations={X: "'b'"})
    other = policy("c", schedulerName="other", annotations={X: "'c'"})
    off = policy("d", mode="Disabled", annotations={X: "'d'"})
    assert conflicts([a, off, other, b]) == conflicts([b, a, other, off]) == [Conflict(X, "b", "a")]
