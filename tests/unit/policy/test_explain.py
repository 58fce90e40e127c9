"""Why a node is refused, and what would have to be otherwise."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import strategies
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import policy_model
from fairlead.cel.messages import from_json
from fairlead.policy.compile import Rules, compile_policy
from fairlead.policy.evaluate import UNDECIDED
from fairlead.policy.explain import explain
from fairlead.policy.explained import Element, Flip, NodeExplained, Step
from fairlead.policy.facts import NodeView, PodView
from fairlead.policy.nodes import Nodes
from fairlead.policy.placed import placed_pod
from fairlead.policy.select import policy_set

NOW = 1_800_000_000 * 10**9
INSTALLED = {one.name: one for one in strategies.installed()}
MODEL = policy_model({name: one.params for name, one in INSTALLED.items() if one.filter}, {})
POD = {"metadata": {"name": "p", "labels": {"gpu": "a100"}}, "spec": {"priority": 5}}
NODE = {"metadata": {"name": "n", "labels": {"gpu": "t4", "zone": "z1"}}}
ON_IT = [{"metadata": {"name": "q", "uid": "1"}, "spec": {"priority": 3}}]
Q = (Element("pods", 0, "default/q"),)
ZONE = (Element("node.metadata.labels", 1, "zone"),)


def explained(spec: dict[str, Any], node: object = None, pod: object = None) -> NodeExplained:
    """What is said of one node."""
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "policy"}}
    compiled = compile_policy(parse_policy({**header, "spec": spec}, MODEL), Rules(INSTALLED))
    nodes = Nodes()
    view = NodeView(
        from_json("Node", node or NODE),
        pods=[placed_pod(each) for each in ON_IT],
        allocatable={"cpu": 8.0},
        requested={"cpu": 7.0},
    )
    nodes.put(view)
    facts = PodView(from_json("Pod", pod or POD))
    return explain(facts, policy_set([compiled]).matching(facts, "fairlead", NOW), nodes, view.name, NOW)


def flips_of(expression: str) -> list[Flip]:
    """The flips for a filter that refuses."""
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}).filters
    assert rule.outcome == "Refused"
    return list(rule.flips)


CLOSEST: dict[str, tuple[str, list[Flip]]] = {
    "one comparison": (
        "node.metadata.labels['gpu'] == 'a100'",
        [Flip("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two that fail, both": (
        "free['cpu'] >= 2.0 && node.metadata.labels['gpu'] == 'a100'",
        [
            Flip("free['cpu'] >= 2.0", False, 1.0, 2.0),
            Flip("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100"),
        ],
    ),
    "one that holds is not among them": (
        "free['cpu'] >= 1.0 && node.metadata.labels['gpu'] == 'a100'",
        [Flip("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two ways the shorter": (
        "(free['cpu'] >= 2.0 && pod.spec.priority > 9) || node.metadata.labels['gpu'] == 'a100'",
        [Flip("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two ways of one length the one about the node": (
        "pod.metadata.labels['gpu'] == 'any' || node.metadata.labels['gpu'] == pod.metadata.labels['gpu']",
        [Flip("node.metadata.labels['gpu'] == pod.metadata.labels['gpu']", False, "t4", "a100")],
    ),
    "something that must not be": (
        "!(node.metadata.labels['gpu'] == 't4')",
        [Flip("node.metadata.labels['gpu'] == 't4'", True, "t4", "t4")],
    ),
    "inside of a loop": (
        "!pods.exists(q, q.spec.priority < pod.spec.priority)",
        [Flip("q.spec.priority < pod.spec.priority", True, 3, 5, Q)],
    ),
    "presence": ("has(node.spec.unschedulable)", [Flip("has(node.spec.unschedulable)", False)]),
    "a condition chooses": (
        "node.metadata.labels['zone'] == 'z1' ? free['cpu'] > 4.0 : true",
        [Flip("node.metadata.labels['zone'] == 'z1'", True, "z1", "z1")],
    ),
    "what raised": (
        "node.metadata.labels['none'] == 'x'",
        [Flip("node.metadata.labels['none'] == 'x'", None, None, "x")],
    ),
    "what was not reached shows its operands": (
        "free['cpu'] >= 2.0 && pod.spec.priority > 9",
        [Flip("free['cpu'] >= 2.0", False, 1.0, 2.0), Flip("pod.spec.priority > 9", False, 5, 9)],
    ),
    "nothing helps": ("false", []),
    "inside of a loop, and not reached": (
        "pods.exists(q, q.spec.priority > 9 && q.metadata.name == 'z')",
        [Flip("q.spec.priority > 9", False, 3, 9, Q), Flip("q.metadata.name == 'z'", False, "q", "z", Q)],
    ),
    "inside of a loop over labels": (
        "node.metadata.labels.exists(k, v, k == 'q' && v == 'r')",
        [Flip("k == 'q'", False, "zone", "q", ZONE), Flip("v == 'r'", False, "z1", "r", ZONE)],
    ),
}


@pytest.mark.parametrize(("expression", "want"), CLOSEST.values(), ids=CLOSEST)
def test_the_closest_change_is(expression: str, want: list[Flip]) -> None:
    assert flips_of(expression) == want


def test_the_parts_are_shown_with_their_values() -> None:
    spec = {
        "variables": [{"name": "wants", "expression": "pod.metadata.labels[?'gpu'].orValue('any')"}],
        "filters": [
            {"name": "class", "expression": "node.metadata.labels['gpu'] == variables.wants", "reason": "wrong class"}
        ],
        "scores": [{"name": "free", "expression": "100.0 * free['cpu'] / 8.0"}, {"name": "bad", "expression": "1 / 0"}],
    }
    found = explained(spec)
    (rule,), (bad, free) = found.filters, found.scores
    assert (found.passed, rule.outcome, rule.reason) == (False, "Refused", "wrong class")
    assert [(step.text, step.value) for step in rule.steps] == [
        ("node.metadata.labels['gpu'] == variables.wants", False),
        ("node.metadata.labels['gpu']", "t4"),
        ("variables.wants", "a100"),
    ]
    assert (free.outcome, free.value) == ("Scored", 12.5)
    assert ("free['cpu']", 1.0) in [(step.text, step.value) for step in free.steps]
    assert (bad.outcome, [(step.text, step.value) for step in bad.steps]) == ("Unknown", [("raised", "divide by zero")])


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
    assert (rule.outcome, rule.reason) == ("Refused", "label warm is not true")
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
        ("a", "Refused", UNDECIDED),
        ("b", "Refused", UNDECIDED),
    ]
    assert [(rule.rule, rule.outcome) for rule in found.scores] == [("s", "LeftOut")]
    (doubt,) = found.doubts
    assert (doubt.policy, doubt.condition, doubt.why) == ("policy", "odd", "no such key: 'none'")
    assert doubt.steps == [Step("raised", "no such key: 'none'")]


LEAVES = [f"node.metadata.labels['l{at}'] == 'x'" for at in range(5)]
FORMULAS = st.recursive(
    st.sampled_from(range(len(LEAVES))),
    lambda inner: st.one_of(
        st.tuples(st.just("&&"), inner, inner), st.tuples(st.just("||"), inner, inner), st.tuples(st.just("!"), inner)
    ),
    max_leaves=5,
)


def write(formula: Any) -> str:
    """A formula as an expression."""
    match formula:
        case int():
            return LEAVES[formula]
        case ("!", inner):
            return f"!({write(inner)})"
    operator, left, right = formula
    return f"({write(left)}) {operator} ({write(right)})"


def occurrences(formula: Any) -> list[int]:
    """Its leaves, from left to right."""
    return [formula] if isinstance(formula, int) else [leaf for part in formula[1:] for leaf in occurrences(part)]


def decide(formula: Any, values: list[bool]) -> bool:
    """What a formula comes to when its leaves, from left to right, have these values."""
    match formula:
        case int():
            return values.pop(0)
        case ("!", inner):
            return not decide(inner, values)
    left, right = decide(formula[1], values), decide(formula[2], values)
    return (left and right) if formula[0] == "&&" else (left or right)


@settings(deadline=None, max_examples=100)
@given(formula=FORMULAS, held=st.lists(st.booleans(), min_size=len(LEAVES), max_size=len(LEAVES)))
def test_no_smaller_set_would_do(formula: Any, held: list[bool]) -> None:
    labels = {f"l{at}": "x" if value else "y" for at, value in enumerate(held)}
    spec = {"filters": [{"name": "rule", "expression": write(formula)}]}
    found = explained(spec, node={"metadata": {"name": "n", "labels": labels}})
    now = [held[leaf] for leaf in occurrences(formula)]
    assert found.passed is decide(formula, list(now))
    if not found.passed:
        ways = [way for way in product([False, True], repeat=len(now)) if decide(formula, list(way))]
        sizes = [sum(a != b for a, b in zip(way, now, strict=True)) for way in ways]
        assert len(found.filters[0].flips) == min(sizes, default=0)


def test_the_policy_s_own_words_stand_for_a_strategy_s() -> None:
    params = {"labels": [{"key": "warm"}]}
    spec = {"filters": [{"name": "ready", "reason": "still cold", "resolvable": True, "nodeReadiness": params}]}
    (rule,) = explained(spec).filters
    assert (rule.outcome, rule.reason, rule.resolvable) == ("Refused", "still cold", True)


def test_data_are_read_where_nobody_has_asked_before() -> None:
    data = [{"name": "size", "nodeLabel": {"key": "size"}}]
    spec = {"data": data, "filters": [{"name": "rule", "expression": "data.size > 5.0"}]}
    (rule,) = explained(spec, node={"metadata": {"name": "n", "labels": {"size": "4"}}}).filters
    assert list(rule.flips) == [Flip("data.size > 5.0", False, 4.0, 5.0)]


def test_what_runs_on_the_engine_says_what_it_raised() -> None:
    spec = {"filters": [{"name": "rule", "expression": "pod.metadata.name.matches(node.metadata.labels['none'])"}]}
    (rule,) = explained(spec).filters
    assert (rule.outcome, [step.text for step in rule.steps]) == ("Refused", ["raised"])
