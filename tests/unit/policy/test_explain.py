"""Why a node is refused, and what would have to be otherwise."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import strategies
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import policy_model
from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.environment import RULE
from fairlead.cel.functions.quantity import Quantity
from fairlead.cel.messages import from_json
from fairlead.cel.text import text
from fairlead.cel.values import NONE, Duration, TypeName, UInt
from fairlead.policy.broken import standing_for
from fairlead.policy.compile import Rules, compile_policy
from fairlead.policy.evaluate import UNDECIDED, Evaluator
from fairlead.policy.explain import explain, explain_scores
from fairlead.policy.explained import Doubt, Element, Flip, NodeExplained, Step
from fairlead.policy.facts import NodeView, PodView
from fairlead.policy.fewest import fewest
from fairlead.policy.nodes import Nodes
from fairlead.policy.placed import placed_pod
from fairlead.policy.scores import on_the_wire
from fairlead.policy.select import Matched, PolicySet, policy_set
from fairlead.policy.shown import shown

NOW = 1_800_000_000 * 10**9
INSTALLED = {one.name: one for one in strategies.installed()}
MODEL = policy_model({name: one.params for name, one in INSTALLED.items() if one.filter}, {})
POD = {"metadata": {"name": "p", "labels": {"gpu": "a100"}}, "spec": {"priority": 5}}
NODE = {
    "metadata": {
        "name": "n",
        "labels": {"gpu": "t4", "zone": "z1"},
        "creationTimestamp": "2027-01-15T06:59:59Z",
    }
}
OTHER = {
    "metadata": {"name": "r", "uid": "2"},
    "spec": {"priority": 4, "containers": [{"name": "main", "image": "img"}]},
}
ON_IT = [{"metadata": {"name": "q", "uid": "1"}, "spec": {"priority": 3}}]
Q, R = (Element("pods", 0, "default/q"),), (Element("pods", 1, "default/r"),)
ZONE = (Element("node.metadata.labels", 1, "zone"),)


def explained(
    spec: dict[str, Any], node: object = None, pod: object = None, on_it: Sequence[object] = ON_IT
) -> NodeExplained:
    """What is said of one node."""
    policies, nodes, facts = world(spec, node, pod, on_it)
    return explain(facts, policies.matching(facts, "fairlead", NOW), nodes, "n", NOW)


def world(
    spec: dict[str, Any], node: object = None, pod: object = None, on_it: Sequence[object] = ON_IT
) -> tuple[PolicySet, Nodes, PodView]:
    """A policy, a node and a pod."""
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "policy"}}
    compiled = compile_policy(parse_policy({**header, "spec": spec}, MODEL), Rules(INSTALLED))
    nodes = Nodes()
    view = NodeView(
        from_json("Node", node or NODE),
        pods=[placed_pod(each) for each in on_it],
        allocatable={"cpu": 8.0},
        requested={"cpu": 7.0},
    )
    nodes.put(view)
    return policy_set([compiled]), nodes, PodView(from_json("Pod", pod or POD))


def flips_of(expression: str, on_it: Sequence[object] = ON_IT) -> list[Flip]:
    """The flips for a filter that refuses."""
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}, on_it=on_it).filters
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
    "of several elements the one that ended the loop": (
        "two.all(q, q.metadata.name == 'q')",
        [Flip("q.metadata.name == 'q'", False, "r", "q", R)],
    ),
    "exactly one, and it is none": (
        "two.exists_one(q, q.spec.priority > 9)",
        [Flip("q.spec.priority > 9", False, 4, 9, R)],
    ),
    "exactly one, and there are two": (
        "two.exists_one(q, q.spec.priority < 9)",
        [Flip("q.spec.priority < 9", True, 4, 9, R)],
    ),
    "for all, and one would not be enough": (
        "two.all(q, q.spec.priority > 9)",
        [Flip("q.spec.priority > 9", False, 3, 9, Q, everywhere=True)],
    ),
    "for one of them one, for another two": (
        "two.exists(q, q.metadata.name == 'q' && q.spec.priority > 9)",
        [Flip("q.spec.priority > 9", False, 3, 9, Q)],
    ),
    "for all of them it raises": (
        "two.all(q, q.metadata.labels['a'] == 'b')",
        [Flip("q.metadata.labels['a'] == 'b'", None, None, "b", R, everywhere=True)],
    ),
    "inside of two loops": (
        "two.exists(q, q.spec.containers.exists(c, c.image == 'z'))",
        [Flip("c.image == 'z'", False, "img", "z", (*R, Element("q.spec.containers", 0, "main")))],
    ),
    "in two loops, of which one was not reached": (
        "two.exists(q, q.spec.priority > 9) && node.metadata.labels.exists(k, k == 'q')",
        [
            Flip("q.spec.priority > 9", False, 3, 9, Q, everywhere=True),
            Flip("k == 'q'", False, "gpu", "q", (Element("node.metadata.labels", 0, "gpu"),), everywhere=True),
        ],
    ),
    "in a loop and in one within": (
        "two.exists(q, q.spec.containers.exists(c, c.image == 'z') && q.spec.priority > 9)",
        [
            Flip("c.image == 'z'", False, "img", "z", (*R, Element("q.spec.containers", 0, "main"))),
            Flip("q.spec.priority > 9", False, 4, 9, R),
        ],
    ),
    "in two loops": (
        "two.exists_one(q, q.spec.priority > 9) || two.exists_one(q, q.spec.priority > 8)",
        [Flip("q.spec.priority > 9", False, 4, 9, R)],
    ),
    "in two loops, both needed": (
        "[two.exists_one(q, q.spec.priority > 9), two.exists_one(q, q.spec.priority > 8)].all(x, x)",
        [Flip("q.spec.priority > 9", False, 4, 9, R), Flip("q.spec.priority > 8", False, 4, 8, R)],
    ),
    "nothing to go through": ("two.filter(q, false).exists(q, q.spec.priority > 9)", []),
    "times": (
        "now - node.metadata.creationTimestamp > duration('90m')",
        [Flip("now - node.metadata.creationTimestamp > duration('90m')", False, "1h1s", "1h30m")],
    ),
    "moments": (
        "timestamp('2030-01-01T00:00:00Z') < now",
        [Flip("timestamp('2030-01-01T00:00:00Z') < now", False, "2030-01-01T00:00:00Z", "2027-01-15T08:00:00Z")],
    ),
    "quantities": (
        "quantity('1024Mi').isGreaterThan(quantity('1500m').add(quantity('1Gi')))",
        [
            Flip(
                "quantity('1024Mi').isGreaterThan(quantity('1500m').add(quantity('1Gi')))",
                False,
                "1Gi",
                "1073741825500m",
            )
        ],
    ),
    "optionals": (
        "node.metadata.labels[?'none'] == node.metadata.labels[?'gpu']",
        [Flip("node.metadata.labels[?'none'] == node.metadata.labels[?'gpu']", False, None, "t4")],
    ),
    "inside of a loop over labels": (
        "node.metadata.labels.exists(k, v, k == 'q' && v == 'r')",
        [Flip("k == 'q'", False, "zone", "q", ZONE), Flip("v == 'r'", False, "z1", "r", ZONE)],
    ),
}


@pytest.mark.parametrize(("expression", "want"), CLOSEST.values(), ids=CLOSEST)
def test_the_closest_change_is(expression: str, want: list[Flip]) -> None:
    on_it = [*ON_IT, OTHER] if "two." in expression else ON_IT
    assert flips_of(expression.replace("two.", "pods."), on_it) == want


SHOWN: dict[str, tuple[str, list[tuple[str, object, str]]]] = {
    "exists: the one that did": (
        "pods.exists(q, q.spec.priority == 3)",
        [
            ("pods.exists(q, q.spec.priority == 3)", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority == 3", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "all: the one that did not": (
        "!pods.all(q, q.spec.priority != 4)",
        [
            ("!pods.all(q, q.spec.priority != 4)", True, ""),
            ("pods.all(q, q.spec.priority != 4)", False, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority != 4", False, "pods[1] (default/r)"),
            ("q.spec.priority", 4, "pods[1] (default/r)"),
        ],
    ),
    "exists_one: the one": (
        "pods.exists_one(q, q.spec.priority < 4)",
        [
            ("pods.exists_one(q, q.spec.priority < 4)", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority < 4", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "filter: what was kept": (
        "pods.filter(q, q.spec.priority < 4).size() == 1",
        [
            ("pods.filter(q, q.spec.priority < 4).size() == 1", True, ""),
            ("pods.filter(q, q.spec.priority < 4).size()", 1, ""),
            ("pods.filter(q, q.spec.priority < 4)", ["default/q"], ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority < 4", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "map: the one that raised": (
        "pods.map(q, 1 / (q.spec.priority - 3)) == [1] || true",
        [
            ("pods.map(q, 1 / (q.spec.priority - 3)) == [1] || true", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority - 3", 0, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "a loop in a loop": (
        "pods.exists(q, q.spec.containers.exists(c, c.image == 'img'))",
        [
            ("pods.exists(q, q.spec.containers.exists(c, c.image == 'img'))", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.containers.exists(c, c.image == 'img')", True, "pods[1] (default/r)"),
            ("c.image == 'img'", True, "pods[1] (default/r) q.spec.containers[0] (main)"),
            ("c.image", "img", "pods[1] (default/r) q.spec.containers[0] (main)"),
        ],
    ),
    "with two variables": (
        "node.metadata.labels.exists(k, v, v == 'z1') && [5, 6].exists(i, x, x == 6)",
        [
            ("node.metadata.labels.exists(k, v, v == 'z1') && [5, 6].exists(i, x, x == 6)", True, ""),
            ("node.metadata.labels.exists(k, v, v == 'z1')", True, ""),
            ("v == 'z1'", True, "node.metadata.labels[1] (zone)"),
            ("v", "z1", "node.metadata.labels[1] (zone)"),
            ("[5, 6].exists(i, x, x == 6)", True, ""),
            ("x == 6", True, "[5, 6][1] (6)"),
            ("x", 6, "[5, 6][1] (6)"),
        ],
    ),
    "sortBy": (
        "pods.sortBy(q, -q.spec.priority)[0].metadata.name == 'r'",
        [
            ("pods.sortBy(q, -q.spec.priority)[0].metadata.name == 'r'", True, ""),
            ("pods.sortBy(q, -q.spec.priority)[0].metadata.name", "r", ""),
            ("pods.sortBy(q, -q.spec.priority)[0]", "default/r", ""),
            ("pods.sortBy(q, -q.spec.priority)", ["default/r", "default/q"], ""),
            ("pods", ["default/q", "default/r"], ""),
            ("-q.spec.priority", -4, "pods[1] (default/r)"),
            ("q.spec.priority", 4, "pods[1] (default/r)"),
        ],
    ),
    "optMap": (
        "node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('') == 't4!'",
        [
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('') == 't4!'", True, ""),
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('')", "t4!", ""),
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!')", "t4!", ""),
            ("node.metadata.labels[?'gpu']", "t4", ""),
            ("x + '!'", "t4!", ""),
            ("x", "t4", ""),
        ],
    ),
    "times": (
        "now - node.metadata.creationTimestamp > duration('1s')",
        [
            ("now - node.metadata.creationTimestamp > duration('1s')", True, ""),
            ("now - node.metadata.creationTimestamp", "1h1s", ""),
            ("now", "2027-01-15T08:00:00Z", ""),
            ("node.metadata.creationTimestamp", "2027-01-15T06:59:59Z", ""),
            ("duration('1s')", "1s", ""),
        ],
    ),
    "moments in lists and optionals": (
        "[optional.of(now)].size() == 1 && [now].size() == 1",
        [
            ("[optional.of(now)].size() == 1 && [now].size() == 1", True, ""),
            ("[optional.of(now)].size() == 1", True, ""),
            ("[optional.of(now)].size()", 1, ""),
            ("[optional.of(now)]", ["2027-01-15T08:00:00Z"], ""),
            ("optional.of(now)", "2027-01-15T08:00:00Z", ""),
            ("now", "2027-01-15T08:00:00Z", ""),
            ("[now].size() == 1", True, ""),
            ("[now].size()", 1, ""),
            ("[now]", ["2027-01-15T08:00:00Z"], ""),
        ],
    ),
    "a long list": (
        "lists.range(12) != []",
        [
            ("lists.range(12) != []", True, ""),
            ("lists.range(12)", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "and 2 more"], ""),
        ],
    ),
    "quantities": (
        "quantity('1500m').add(1).isLessThan(quantity('4096Mi'))",
        [
            ("quantity('1500m').add(1).isLessThan(quantity('4096Mi'))", True, ""),
            ("quantity('1500m').add(1)", "2500m", ""),
            ("quantity('1500m')", "1500m", ""),
            ("quantity('4096Mi')", "4Gi", ""),
        ],
    ),
}


@pytest.mark.parametrize(("expression", "want"), SHOWN.values(), ids=SHOWN)
def test_the_parts_are_shown_for(expression: str, want: list[tuple[str, object, str]]) -> None:
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}, on_it=[*ON_IT, OTHER]).filters
    assert rule.outcome == "Passed"
    assert [(step.text, step.value, " ".join(map(str, step.at))) for step in rule.steps] == want


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
        ("pod.metadata.labels[?'gpu'].orValue('any')", "a100"),
        ("pod.metadata.labels[?'gpu']", "a100"),
    ]
    assert [step.variable for step in rule.steps] == ["", "", "", "wants", "wants"]
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


@settings(deadline=None, max_examples=100)
@given(formula=FORMULAS, held=st.lists(st.booleans(), min_size=len(LEAVES), max_size=len(LEAVES)))
def test_so_many_are_reckoned_too(formula: Any, held: list[bool]) -> None:
    checked = check(write(formula), Environment(RULE), BOOL).checked
    found = fewest(checked, checked.root, lambda leaf: held[LEAVES.index(text(leaf))], want=True)
    now = [held[leaf] for leaf in occurrences(formula)]
    ways = [way for way in product([False, True], repeat=len(now)) if decide(formula, list(way))]
    assert found is not None
    assert len(found) == min(sum(a != b for a, b in zip(way, now, strict=True)) for way in ways)


MANY = [f"node.metadata.labels[?'l{at}'].orValue('') == 'x'" for at in range(14)]
OF_POD = [f"pod.spec.priority == {at + 10}" for at in range(9)]


@pytest.mark.parametrize(
    ("expression", "want"),
    {
        " && ".join(MANY): MANY,
        f"({' && '.join(MANY)}) || ({' && '.join(MANY[:13])})": MANY[:13],
        f"!({' && '.join(MANY)}) ? {' && '.join(MANY)} : true": MANY,
        f"pods.exists(q, {' && '.join(MANY)})": MANY,
        f"cel.bind(x, 1, {' && '.join(MANY)} && x == 2)": [*MANY, "x == 2"],
        f"now.getHours('UTC') > 9 && {' && '.join(OF_POD)}": ["now.getHours('UTC') > 9", *OF_POD],
        f"{' && '.join(MANY)} && false": [],
        f"false || ({' && '.join(MANY)})": MANY,
        f"pods.exists_one(q, {' && '.join(MANY)})": MANY,
        f"cel.bind(x, 1, x == 1 && {' && '.join(MANY)})": MANY,
    }.items(),
)
def test_many_comparisons_are_turned(expression: str, want: list[str]) -> None:
    assert [flip.text for flip in flips_of(expression)] == want


def test_parts_of_variables_are_told_once_and_say_whose_they_are() -> None:
    variables = [
        {"name": "low", "expression": "pod.spec.priority + 1"},
        {"name": "one", "expression": "variables.low > 0"},
        {"name": "two", "expression": "variables.low > 1"},
    ]
    (rule,) = explained(
        {"variables": variables, "filters": [{"name": "rule", "expression": "variables.one && variables.two"}]}
    ).filters
    assert [(step.variable, step.text, step.value) for step in rule.steps] == [
        ("", "variables.one && variables.two", True),
        ("", "variables.one", True),
        ("", "variables.two", True),
        ("one", "variables.low > 0", True),
        ("one", "variables.low", 6),
        ("low", "pod.spec.priority + 1", 6),
        ("low", "pod.spec.priority", 5),
        ("two", "variables.low > 1", True),
        ("two", "variables.low", 6),
    ]


def test_what_a_variable_raised_is_said_once() -> None:
    variables = [{"name": "bad", "expression": "1 / (pod.spec.priority - 5)"}]
    (rule,) = explained(
        {"variables": variables, "filters": [{"name": "rule", "expression": "variables.bad > 0"}]}
    ).filters
    assert [(step.variable, step.text, step.value) for step in rule.steps] == [
        ("", "raised", "divide by zero"),
        ("bad", "pod.spec.priority - 5", 0),
        ("bad", "pod.spec.priority", 5),
    ]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (Duration(0), "0s"),
        (Duration(-90 * 10**9), "-1m30s"),
        (Duration(3_600_001_002_003), "1h1ms2us3ns"),
        (Quantity(0), "0"),
        (Quantity(-(2**30) * 10**9), "-1Gi"),
        (Quantity(1), "0.000000001"),
        (Quantity(2_000 * 10**9), "2k"),
        (UInt(3), 3),
        (TypeName("int"), "int"),
        (NONE, None),
    ],
)
def test_a_value_is_shown_as(value: object, want: object) -> None:
    assert shown(value) == want
    assert type(shown(value)) is type(want)


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


ON_THE_ENGINE: dict[str, tuple[str, list[tuple[str, object]], list[Flip]]] = {
    "an operand raises": (
        "pod.metadata.name.matches(node.metadata.labels['none'])",
        [("pod.metadata.name", "p"), ("raised", 'NOT_FOUND: Key not found in map : "none"')],
        [Flip("pod.metadata.name.matches(node.metadata.labels['none'])", None, "p")],
    ),
    "one of two": (
        "pod.spec.priority > 1 && pod.metadata.name.matches(variables.pattern)",
        [
            ("pod.spec.priority > 1 && pod.metadata.name.matches(variables.pattern)", False),
            ("pod.spec.priority > 1", True),
            ("pod.spec.priority", 5),
            ("pod.metadata.name.matches(variables.pattern)", False),
            ("pod.metadata.name", "p"),
            ("variables.pattern", "^t4$"),
            ("'^' + node.metadata.labels['gpu'] + '$'", "^t4$"),
            ("'^' + node.metadata.labels['gpu']", "^t4"),
            ("node.metadata.labels['gpu']", "t4"),
        ],
        [Flip("pod.metadata.name.matches(variables.pattern)", False, "p", "^t4$")],
    ),
    "both": (
        "!(now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5')",
        [
            ("!(now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5')", False),
            ("now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5'", True),
            ("now.getHours('Europe/Berlin') < 10", True),
            ("now.getHours('Europe/Berlin')", 9),
            ("now", "2027-01-15T08:00:00Z"),
            ("'%d'.format([pod.spec.priority]) == '5'", True),
            ("'%d'.format([pod.spec.priority])", "5"),
            ("[pod.spec.priority]", [5]),
            ("pod.spec.priority", 5),
        ],
        [
            Flip("now.getHours('Europe/Berlin') < 10", True, 9, 10),
            Flip("'%d'.format([pod.spec.priority]) == '5'", True, "5", "5"),
        ],
    ),
    "in what a loop goes through, and where a name is bound": (
        "cel.bind(x, node.metadata.name, [x.matches(pod.metadata.name)].all(y, y))",
        [
            ("cel.bind(x, node.metadata.name, [x.matches(pod.metadata.name)].all(y, y))", False),
            ("node.metadata.name", "n"),
            ("pod.metadata.name", "p"),
        ],
        [Flip("x.matches(pod.metadata.name)", None, None, "p")],
    ),
    "in a loop": (
        "['a', 'b'].exists(x, pod.metadata.name.matches(node.metadata.name + x)) && pod.spec.priority > 1",
        [
            (
                "['a', 'b'].exists(x, pod.metadata.name.matches(node.metadata.name + x)) && pod.spec.priority > 1",
                False,
            ),
            ("['a', 'b'].exists(x, pod.metadata.name.matches(node.metadata.name + x))", False),
            ("pod.spec.priority > 1", True),
            ("pod.spec.priority", 5),
        ],
        [Flip("['a', 'b'].exists(x, pod.metadata.name.matches(node.metadata.name + x))", False)],
    ),
}


@pytest.mark.parametrize(("expression", "parts", "flips"), ON_THE_ENGINE.values(), ids=ON_THE_ENGINE)
def test_what_runs_on_the_engine_is_shown_too(
    expression: str, parts: list[tuple[str, object]], flips: list[Flip]
) -> None:
    variables = [{"name": "pattern", "expression": "'^' + node.metadata.labels['gpu'] + '$'"}]
    (rule,) = explained({"variables": variables, "filters": [{"name": "rule", "expression": expression}]}).filters
    assert [(step.text, step.value) for step in rule.steps] == parts
    assert list(rule.flips) == flips


def test_a_namespace_that_is_not_known_is_the_reason() -> None:
    selector = {"matchLabels": {"team": "ml"}}
    found = explained({"match": {"namespaceSelector": selector}, "scores": [{"name": "s", "expression": "1"}]})
    assert found.passed
    assert found.doubts == [Doubt("policy", "namespaceSelector", "the namespace is not known yet", [])]
    assert [(rule.rule, rule.outcome) for rule in found.scores] == [("s", "LeftOut")]


def test_a_condition_that_cannot_be_told_shows_its_parts() -> None:
    odd = {"name": "odd", "expression": "pod.spec.priority > 1 && pod.metadata.labels['none'] == 'x'"}
    (doubt,) = explained({"match": {"conditions": [odd]}, "scores": [{"name": "s", "expression": "1"}]}).doubts
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
    policies, nodes, facts = world(spec)
    matched = policies.matching(facts, "fairlead", NOW)
    found = explain(facts, matched, nodes, "nobody", NOW)
    assert (found.known, found.passed) == (False, want)
    assert {rule.reason for rule in (*found.filters, *found.scores)} == {"node is not known yet"}
    asked = Evaluator(policies, nodes).filter(facts, "fairlead", ["nobody"], now=NOW, clock=lambda: 0, deadline=1)
    assert list(asked.passed) == (["nobody"] if want else [])


@pytest.mark.parametrize(("failure_policy", "want"), {"Fail": ["policy policy does not compile"], "Ignore": []}.items())
def test_a_policy_that_does_not_compile_is_named(failure_policy: str, want: list[str]) -> None:
    broken = standing_for({"metadata": {"name": "policy"}, "spec": {"failurePolicy": failure_policy}})
    _, nodes, facts = world({})
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
    policies, nodes, facts = world(SCORES)
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
    assert [each.why for each in found[2].scores] == [why, why, why, "the rule cannot be decided"]
    assert {each.why for each in found[3].scores} == {"node is not known yet"}
    asked = Evaluator(policies, nodes).scores(facts, "fairlead", names, now=NOW, clock=lambda: 0, deadline=1)
    assert [node.total for node in found] == asked == [320.0, 400.0, 360.0, 360.0]
    assert [node.sent for node in found] == on_the_wire(asked) == [0, 8, 4, 4]
    assert [node.node for node in found] == names


@given(loads=st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=1, max_size=8))
def test_totals_are_those_of_the_evaluator(loads: list[float | None]) -> None:
    policies, nodes, facts = world(SCORES)
    names = [f"n{at}" for at in range(len(loads))]
    for name, load in zip(names, loads, strict=True):
        labels = {} if load is None else {"load": str(load)}
        nodes.put(NodeView(from_json("Node", {"metadata": {"name": name, "labels": labels}})))
    found = explain_scores(facts, policies.matching(facts, "fairlead", NOW), nodes, names, NOW)
    asked = Evaluator(policies, nodes).scores(facts, "fairlead", names, now=NOW, clock=lambda: 0, deadline=1)
    assert [node.total for node in found] == asked


def test_a_policy_in_doubt_gives_no_points() -> None:
    conditions = [{"name": "odd", "expression": "pod.metadata.labels['none'] == 'x'"}]
    policies, nodes, facts = world({"match": {"conditions": conditions}, "scores": [{"name": "s", "expression": "9"}]})
    (node,) = explain_scores(facts, policies.matching(facts, "fairlead", NOW), nodes, ["n"], NOW)
    assert (node.total, node.sent, node.scores) == (0.0, 0, [])
