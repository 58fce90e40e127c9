"""Explanations of nodes: the outcome of each rule of each policy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.rule_columns import undecided
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.explain.explainer import explain, explain_scores
from fairlead.policy.explain.explanation import Counterfactual, ExplainedMatchError, Step
from fairlead.policy.views.node_view import NodeView
from support.policy.asking import filtered, scored
from support.policy.building import NOW
from support.policy.explaining import explain_inputs, explained


def test_a_rule_that_passes_in_doubt_says_so() -> None:
    rules = [{"name": "rule", "expression": "data.load < 1.0", "onError": "Pass"}]
    data = [{"name": "load", "nodeLabel": {"key": "load"}}]
    found = explained({"data": data, "filters": rules})
    assert (found.passed, found.filters[0].outcome, found.filters[0].reason) == (
        True,
        "Unknown",
        "data load is missing",
    )


def test_a_strategy_tells_what_it_looked_at() -> None:
    spec = {"filters": [{"name": "ready", "nodeReadiness": {"labels": [{"key": "warm", "value": "true"}]}}]}
    (rule,) = explained(spec).filters
    assert (rule.outcome, rule.reason) == ("Rejected", "label warm is not true")
    assert rule.noted is not None
    assert [name for name, _ in rule.noted.items] == ["warm"]


def test_a_policy_whose_match_cannot_be_told_refuses_and_says_why() -> None:
    conditions = [{"name": "odd", "expression": "pod.metadata.labels['none'] == 'x'"}]
    filters = [{"name": "b", "expression": "true"}, {"name": "a", "expression": "true"}]
    found = explained(
        {"match": {"conditions": conditions}, "filters": filters, "scores": [{"name": "s", "expression": "1"}]}
    )
    assert not found.passed
    assert [(rule.rule, rule.outcome, rule.reason) for rule in found.filters] == [
        ("a", "Rejected", undecided("policy")),
        ("b", "Rejected", undecided("policy")),
    ]
    assert [(rule.rule, rule.outcome) for rule in found.scores] == [("s", "LeftOut")]
    (doubt,) = found.match_errors
    assert (doubt.policy, doubt.condition, doubt.why) == ("policy", "odd", "no such key: 'none'")
    assert doubt.steps == [Step("raised", "no such key: 'none'")]


def test_the_policy_s_own_words_stand_for_a_strategy_s() -> None:
    params = {"labels": [{"key": "warm"}]}
    spec = {"filters": [{"name": "ready", "reason": "still cold", "resolvable": True, "nodeReadiness": params}]}
    (rule,) = explained(spec).filters
    assert (rule.outcome, rule.reason, rule.resolvable) == ("Rejected", "still cold", True)


def test_data_are_read_where_nobody_has_asked_before() -> None:
    data = [{"name": "size", "nodeLabel": {"key": "size"}}]
    spec = {"data": data, "filters": [{"name": "rule", "expression": "data.size > 5.0"}]}
    (rule,) = explained(spec, node={"metadata": {"name": "n", "labels": {"size": "4"}}}).filters
    assert list(rule.changes) == [Counterfactual("data.size > 5.0", False, 4.0, 5.0)]


def test_a_namespace_that_is_not_known_is_the_reason() -> None:
    selector = {"matchLabels": {"team": "ml"}}
    found = explained({"match": {"namespaceSelector": selector}, "scores": [{"name": "s", "expression": "1"}]})
    assert found.passed
    assert found.match_errors == [
        ExplainedMatchError("policy", "namespaceSelector", "the namespace is not known yet", [])
    ]
    assert [(rule.rule, rule.outcome) for rule in found.scores] == [("s", "LeftOut")]


def test_a_condition_that_cannot_be_told_shows_its_parts() -> None:
    odd = {"name": "odd", "expression": "pod.spec.priority > 1 && pod.metadata.labels['none'] == 'x'"}
    (doubt,) = explained({"match": {"conditions": [odd]}, "scores": [{"name": "s", "expression": "1"}]}).match_errors
    assert [(step.text, step.value) for step in doubt.steps] == [
        ("pod.spec.priority > 1", True),
        ("pod.spec.priority", 5),
        ("raised", "no such key: 'none'"),
    ]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"filters": [{"name": "f", "expression": "true", "onError": "Pass"}]}, False),
        ({"scores": [{"name": "s", "expression": "1"}]}, True),
    ],
)
def test_a_node_that_is_not_known(spec: dict[str, Any], want: bool) -> None:
    policies, nodes, facts = explain_inputs(spec)
    matched = policies.matching(facts, "fairlead", NOW)
    found = explain(facts, matched, nodes, "nobody", NOW)
    assert (found.known, found.passed) == (False, want)
    assert {rule.reason for rule in (*found.filters, *found.scores)} == {"node is not known yet"}
    asked = filtered(Evaluator(policies, nodes), facts, ["nobody"])
    assert list(asked.passed) == (["nobody"] if want else [])


@pytest.mark.parametrize(("failure_policy", "want"), {"Fail": ["policy policy does not compile"], "Ignore": []}.items())
def test_a_policy_that_does_not_compile_is_named(failure_policy: str, want: list[str]) -> None:
    broken = placeholder_policy({"metadata": {"name": "policy"}, "spec": {"failurePolicy": failure_policy}})
    _, nodes, facts = explain_inputs({})
    found = explain(facts, [Matched(broken)], nodes, "n", NOW)
    assert ([rule.reason for rule in found.filters], found.policies) == (want, ["policy"])


SCORES = {
    "data": [{"name": "load", "nodeLabel": {"key": "load"}}],
    "scores": [
        {"name": "a-clamped", "expression": "data.load", "weight": 3},
        {"name": "b-minmax", "expression": "data.load / 3.0", "normalize": "MinMax"},
        {"name": "c-rank", "expression": "-data.load", "normalize": "Rank", "weight": 2},
        {"name": "d-nobody", "expression": "1 / 0"},
    ],
}


def test_scores_are_shown_as_the_scheduler_gets_them() -> None:
    policies, nodes, facts = explain_inputs(SCORES)
    for name, labels in {"n1": {"load": "40"}, "n2": {"load": "160"}, "n3": {}}.items():
        nodes.put(NodeView(from_json("Node", {"metadata": {"name": name, "labels": labels}})))
    names = ["n1", "n2", "n3", "nobody"]
    found = explain_scores(facts, policies.matching(facts, "fairlead", NOW), nodes, names, NOW)
    assert [[(each.value, each.score, each.points) for each in node.scores] for node in found] == [
        [(40.0, 40.0, 120.0), (40 / 3, 0.0, 0.0), (-40.0, 100.0, 200.0), (None, None, 0.0)],
        [(160.0, 100.0, 300.0), (160 / 3, 100.0, 100.0), (-160.0, 0.0, 0.0), (None, None, 0.0)],
        [(None, 70.0, 210.0), (None, 50.0, 50.0), (None, 50.0, 100.0), (None, None, 0.0)],
        [(None, 70.0, 210.0), (None, 50.0, 50.0), (None, 50.0, 100.0), (None, None, 0.0)],
    ]
    why = "data load is missing"
    assert [each.why for each in found[2].scores] == [why, why, why, "rule d-nobody cannot be decided"]
    assert {each.why for each in found[3].scores} == {"node is not known yet"}
    asked = scored(Evaluator(policies, nodes), facts, names)
    assert [node.total for node in found] == asked == [320.0, 400.0, 360.0, 360.0]
    assert [node.sent for node in found] == on_the_wire(asked) == [0, 8, 4, 4]
    assert [node.node for node in found] == names


@given(loads=st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=1, max_size=8))
def test_totals_are_those_of_the_evaluator(loads: list[float | None]) -> None:
    policies, nodes, facts = explain_inputs(SCORES)
    names = [f"n{at}" for at in range(len(loads))]
    for name, load in zip(names, loads, strict=True):
        labels = {} if load is None else {"load": str(load)}
        nodes.put(NodeView(from_json("Node", {"metadata": {"name": name, "labels": labels}})))
    found = explain_scores(facts, policies.matching(facts, "fairlead", NOW), nodes, names, NOW)
    asked = scored(Evaluator(policies, nodes), facts, names)
    assert [node.total for node in found] == asked


def test_a_policy_in_doubt_gives_no_points() -> None:
    conditions = [{"name": "odd", "expression": "pod.metadata.labels['none'] == 'x'"}]
    policies, nodes, facts = explain_inputs(
        {"match": {"conditions": conditions}, "scores": [{"name": "s", "expression": "9"}]}
    )
    (node,) = explain_scores(facts, policies.matching(facts, "fairlead", NOW), nodes, ["n"], NOW)
    assert (node.total, node.sent, node.scores) == (0.0, 0, [])
