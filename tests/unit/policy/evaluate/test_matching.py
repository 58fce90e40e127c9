"""Pods that a policy applies to, and what happens if that cannot be decided."""

from typing import Any

import pytest

from fairlead.policy.evaluate.annotations import annotations
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.preemption import PROTECTED, dropped
from fairlead.policy.evaluate.rule_columns import undecided
from support.policy import NOW, SECOND, Evaluation, node, placed, pod, policy

MATCHES: dict[str, tuple[dict[str, Any], bool]] = {
    "without a match every pod is meant": ({}, True),
    "an empty match means every pod": ({"match": {}}, True),
    "a namespace by name": ({"match": {"namespaces": ["other", "ml"]}}, True),
    "another namespace": ({"match": {"namespaces": ["other"]}}, False),
    "a namespace by label": ({"match": {"namespaceSelector": {"matchLabels": {"team": "ml"}}}}, True),
    "a namespace by another label": ({"match": {"namespaceSelector": {"matchLabels": {"team": "x"}}}}, False),
    "a namespace by expressions": (
        {"match": {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}}},
        True,
    ),
    "an empty selector means all": ({"match": {"namespaceSelector": {}, "podSelector": {}}}, True),
    "a pod by label with dots and slashes": ({"match": {"podSelector": {"matchLabels": {"a.b/c.d": "gold"}}}}, True),
    "a pod without the label": ({"match": {"podSelector": {"matchLabels": {"tier": "silver"}}}}, False),
    "a condition that holds": ({"match": {"conditions": {"c": "pod.spec.priority > 1"}}}, True),
    "a condition that does not": ({"match": {"conditions": {"c": "pod.spec.priority > 100"}}}, False),
    "a condition on the namespace": (
        {"match": {"conditions": {"c": "namespaceObject.metadata.labels['team'] == 'ml'"}}},
        True,
    ),
    "a condition with a variable": (
        {"variables": {"p": "pod.spec.priority"}, "match": {"conditions": {"c": "variables.p == 5"}}},
        True,
    ),
    "all parts must hold": (
        {"match": {"namespaces": ["ml"], "conditions": {"a": "true", "b": "pod.spec.priority == 6"}}},
        False,
    ),
    "another scheduler": ({"schedulerName": "other"}, False),
    "mode Disabled is never applied": ({"mode": "Disabled"}, False),
}


@pytest.mark.parametrize("name", MATCHES)
def test_a_policy_is_for_the_pods_that_match_in_every_part(name: str) -> None:
    spec, want = MATCHES[name]
    refusing = policy(filters={"no": "false"}, **spec)
    one = pod(labels={"a.b/c.d": "gold"}, of_namespace={"team": "ml"}, priority=5)
    assert bool(policy_set([refusing]).matching(one, "fairlead", NOW)) is want


def test_conditions_that_read_now_are_asked_every_time() -> None:
    cluster = Evaluation(
        [policy(match={"conditions": {"early": "now < timestamp('2027-01-15T08:00:30Z')"}}, filters={"no": "false"})],
        [node()],
    )
    assert cluster.refusal(pod(), NOW + 29 * SECOND)
    assert not cluster.refusal(pod(), NOW + 30 * SECOND)


RAISES = "pod.metadata.labels['not-there'] == 'x'"


def _undecided(**spec: Any) -> Evaluation:
    return Evaluation(
        [policy("doubtful", match={"conditions": {"c": RAISES}}, **spec), policy("sure", scores={"s": "30.0"})],
        [node("n", pods=[placed("v")])],
    )


def test_where_a_condition_raises_the_filters_refuse_whatever_their_on_error() -> None:
    cluster = _undecided(filters={"b": {"expression": "true", "onError": "Pass", "resolvable": True}, "a": "true"})
    why = cluster.refusal(pod())
    assert why is not None
    assert (why.policy, why.rule, why.reason, why.resolvable) == ("doubtful", "a", undecided("doubtful"), False)


def test_where_a_condition_raises_scores_and_annotations_are_left_out() -> None:
    cluster = _undecided(scores={"s": "90.0"}, annotations={"fairlead.dev/x": "'v'"})
    assert cluster.scores(pod()) == [30.0]
    made = annotations(pod(), cluster.matched(pod()), cluster.nodes, "n", now=NOW, tally=cluster.evaluator.tally)
    assert (made.values, made.refusal) == ({}, None)


def test_pods_of_which_one_matches_and_one_cannot_be_told_share_nothing() -> None:
    gold = policy(match={"conditions": {"c": "pod.metadata.labels['tier'] == 'gold'"}}, filters={"f": "true"})
    cluster = Evaluation([gold], [node()])
    for _ in range(2):
        assert cluster.refusal(pod(labels={"tier": "gold"})) is None
        assert cluster.refusal(pod()) is not None


def test_where_a_condition_raises_a_policy_without_filters_refuses_nothing() -> None:
    assert not _undecided(scores={"s": "1.0"}).filter(pod()).rejected


def test_where_a_condition_raises_protections_hold() -> None:
    cluster = _undecided(protect={"nobody": "false"})
    found = dropped(
        pod(),
        cluster.matched(pod()),
        cluster.nodes,
        "n",
        ["u-v"],
        requests=lambda _: {},
        now=NOW,
        tally=cluster.evaluator.tally,
    )
    assert found is not None
    assert (found.policy, found.rule, found.why) == ("doubtful", "nobody", PROTECTED)


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_a_condition_that_is_false_wins_over_one_that_raised(order: list[str]) -> None:
    conditions = {"a": RAISES, "b": "false"}
    one = policy(match={"conditions": {name: conditions[name] for name in order}}, filters={"no": "false"})
    assert policy_set([one]).matching(pod(), "fairlead", NOW) == []


def test_what_a_condition_raised_is_counted_under_its_name() -> None:
    cluster = _undecided(filters={"f": "true"})
    cluster.filter(pod())
    cluster.filter(pod())
    (failures,) = cluster.evaluator.tally.drain()
    assert (failures.policy, failures.rule, failures.count) == ("doubtful", "c", 2)
    assert "not-there" in failures.last_message
    assert cluster.evaluator.tally.drain() == []


def test_a_namespace_that_is_not_known_yet_leaves_its_selector_open() -> None:
    chosen = policy(match={"namespaceSelector": {"matchLabels": {"team": "ml"}}}, filters={"f": "true"})
    why = Evaluation([chosen], [node()]).refusal(pod())
    assert why is not None
    assert why.reason == undecided("p")


def test_the_generation_of_a_set_knows_names_uids_and_generations_and_no_order() -> None:
    a, b = policy("a"), policy("b")
    assert policy_set([a, b]).generation == policy_set([b, a]).generation
    others = [policy("c"), policy("a", generation=2), policy("a", uid="u-other")]
    generations = {policy_set([one, b]).generation for one in [a, *others]}
    assert len(generations) == 4
