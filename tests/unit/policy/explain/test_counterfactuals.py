"""What would have to come out otherwise for a node to pass."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.policy.explain.counterfactuals import WAYS_MAX
from fairlead.policy.explain.explanation import Counterfactual, Element
from support.policy.explaining import ON_IT, OTHER, ZONE, Q, R, changes_of, explained

CLOSEST: dict[str, tuple[str, list[Counterfactual]]] = {
    "one comparison": (
        "node.metadata.labels['gpu'] == 'a100'",
        [Counterfactual("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two that fail, both": (
        "free['cpu'] >= 2.0 && node.metadata.labels['gpu'] == 'a100'",
        [
            Counterfactual("free['cpu'] >= 2.0", False, 1.0, 2.0),
            Counterfactual("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100"),
        ],
    ),
    "one that holds is not among them": (
        "free['cpu'] >= 1.0 && node.metadata.labels['gpu'] == 'a100'",
        [Counterfactual("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two ways the shorter": (
        "(free['cpu'] >= 2.0 && pod.spec.priority > 9) || node.metadata.labels['gpu'] == 'a100'",
        [Counterfactual("node.metadata.labels['gpu'] == 'a100'", False, "t4", "a100")],
    ),
    "of two ways of one length the one about the node": (
        "pod.metadata.labels['gpu'] == 'any' || node.metadata.labels['gpu'] == pod.metadata.labels['gpu']",
        [Counterfactual("node.metadata.labels['gpu'] == pod.metadata.labels['gpu']", False, "t4", "a100")],
    ),
    "something that must not be": (
        "!(node.metadata.labels['gpu'] == 't4')",
        [Counterfactual("node.metadata.labels['gpu'] == 't4'", True, "t4", "t4")],
    ),
    "inside of a loop": (
        "!pods.exists(q, q.spec.priority < pod.spec.priority)",
        [Counterfactual("q.spec.priority < pod.spec.priority", True, 3, 5, Q)],
    ),
    "presence": ("has(node.spec.unschedulable)", [Counterfactual("has(node.spec.unschedulable)", False)]),
    "a condition chooses": (
        "node.metadata.labels['zone'] == 'z1' ? free['cpu'] > 4.0 : true",
        [Counterfactual("free['cpu'] > 4.0", False, 1.0, 4.0)],
    ),
    "what raised": (
        "node.metadata.labels['none'] == 'x'",
        [Counterfactual("node.metadata.labels['none'] == 'x'", None, None, "x")],
    ),
    "what was not reached shows its operands": (
        "free['cpu'] >= 2.0 && pod.spec.priority > 9",
        [Counterfactual("free['cpu'] >= 2.0", False, 1.0, 2.0), Counterfactual("pod.spec.priority > 9", False, 5, 9)],
    ),
    "nothing helps": ("false", []),
    "inside of a loop, and not reached": (
        "pods.exists(q, q.spec.priority > 9 && q.metadata.name == 'z')",
        [
            Counterfactual("q.spec.priority > 9", False, 3, 9, Q),
            Counterfactual("q.metadata.name == 'z'", False, "q", "z", Q),
        ],
    ),
    "of several elements the one that ended the loop": (
        "two.all(q, q.metadata.name == 'q')",
        [Counterfactual("q.metadata.name == 'q'", False, "r", "q", R)],
    ),
    "exactly one, and it is none": (
        "two.exists_one(q, q.spec.priority > 9)",
        [Counterfactual("q.spec.priority > 9", False, 4, 9, R)],
    ),
    "exactly one, and there are two": (
        "two.exists_one(q, q.spec.priority < 9)",
        [Counterfactual("q.spec.priority < 9", True, 4, 9, R)],
    ),
    "for all, and one would not be enough": (
        "two.all(q, q.spec.priority > 9)",
        [Counterfactual("q.spec.priority > 9", False, 3, 9, Q, everywhere=True)],
    ),
    "for one of them one, for another two": (
        "two.exists(q, q.metadata.name == 'q' && q.spec.priority > 9)",
        [Counterfactual("q.spec.priority > 9", False, 3, 9, Q)],
    ),
    "for all of them it raises": (
        "two.all(q, q.metadata.labels['a'] == 'b')",
        [Counterfactual("q.metadata.labels['a'] == 'b'", None, None, "b", Q, everywhere=True)],
    ),
    "inside of two loops": (
        "two.exists(q, q.spec.containers.exists(c, c.image == 'z'))",
        [Counterfactual("c.image == 'z'", False, "img", "z", (*R, Element("q.spec.containers", 0, "main")))],
    ),
    "in two loops, of which one was not reached": (
        "two.exists(q, q.spec.priority > 9) && node.metadata.labels.exists(k, k == 'q')",
        [
            Counterfactual("q.spec.priority > 9", False, 4, 9, R),
            Counterfactual("k == 'q'", False, "zone", "q", ZONE),
        ],
    ),
    "in a loop and in one within": (
        "two.exists(q, q.spec.containers.exists(c, c.image == 'z') && q.spec.priority > 9)",
        [
            Counterfactual("c.image == 'z'", False, "img", "z", (*R, Element("q.spec.containers", 0, "main"))),
            Counterfactual("q.spec.priority > 9", False, 4, 9, R),
        ],
    ),
    "in two loops": (
        "two.exists_one(q, q.spec.priority > 9) || two.exists_one(q, q.spec.priority > 8)",
        [Counterfactual("q.spec.priority > 9", False, 4, 9, R)],
    ),
    "not exactly one, and it is one": (
        "!two.exists_one(q, q.spec.priority > 3)",
        [Counterfactual("q.spec.priority > 3", True, 4, 3, R)],
    ),
    "for all, and the loop ends before the second one": (
        "!two.exists(q, q.spec.priority < 9)",
        [Counterfactual("q.spec.priority < 9", True, 3, 9, Q, everywhere=True)],
    ),
    "for all, and the loop ends at the only one": (
        "!two.exists(q, q.spec.priority == 3)",
        [Counterfactual("q.spec.priority == 3", True, 3, 3, Q)],
    ),
    "what a loop goes through raises": ("node.metadata.labels['none'].split(',').all(x, x == 'a')", []),
    "nothing to go through": ("two.filter(q, false).exists(q, q.spec.priority > 9)", []),
    "times": (
        "now - node.metadata.creationTimestamp > duration('90m')",
        [Counterfactual("now - node.metadata.creationTimestamp > duration('90m')", False, "1h1s", "1h30m")],
    ),
    "moments": (
        "timestamp('2030-01-01T00:00:00Z') < now",
        [
            Counterfactual(
                "timestamp('2030-01-01T00:00:00Z') < now", False, "2030-01-01T00:00:00Z", "2027-01-15T08:00:00Z"
            )
        ],
    ),
    "quantities": (
        "quantity('1024Mi').isGreaterThan(quantity('1500m').add(quantity('1Gi')))",
        [
            Counterfactual(
                "quantity('1024Mi').isGreaterThan(quantity('1500m').add(quantity('1Gi')))",
                False,
                "1Gi",
                "1073741825500m",
            )
        ],
    ),
    "optionals": (
        "node.metadata.labels[?'none'] == node.metadata.labels[?'gpu']",
        [Counterfactual("node.metadata.labels[?'none'] == node.metadata.labels[?'gpu']", False, None, "t4")],
    ),
    "inside of a loop over labels": (
        "node.metadata.labels.exists(k, v, k == 'q' && v == 'r')",
        [Counterfactual("k == 'q'", False, "zone", "q", ZONE), Counterfactual("v == 'r'", False, "z1", "r", ZONE)],
    ),
}


@pytest.mark.parametrize(("expression", "want"), CLOSEST.values(), ids=CLOSEST)
def test_the_closest_change_is(expression: str, want: list[Counterfactual]) -> None:
    on_it = [*ON_IT, OTHER] if "two." in expression else ON_IT
    assert changes_of(expression.replace("two.", "pods."), on_it) == want


WAYS: dict[str, tuple[str, list[list[str]]]] = {
    "of three each": (
        "pod.spec.priority > 9 || free['cpu'] > 4.0 || has(node.spec.unschedulable)",
        [["free['cpu'] > 4.0"], ["has(node.spec.unschedulable)"], ["pod.spec.priority > 9"]],
    ),
    "one of two beside one that must be": (
        "pod.spec.priority > 9 && (free['cpu'] > 4.0 || has(node.spec.unschedulable))",
        [
            ["pod.spec.priority > 9", "free['cpu'] > 4.0"],
            ["pod.spec.priority > 9", "has(node.spec.unschedulable)"],
        ],
    ),
    "a condition, or its branch": (
        "node.metadata.labels['zone'] == 'z1' ? free['cpu'] > 4.0 : true",
        [["free['cpu'] > 4.0"], ["node.metadata.labels['zone'] == 'z1'"]],
    ),
    "neither of two must be": (
        "!(free['cpu'] < 4.0 && pod.spec.priority < 9)",
        [["free['cpu'] < 4.0"], ["pod.spec.priority < 9"]],
    ),
    "in a loop the element that lacks least stands for all": (
        "pods.exists(q, q.spec.priority > 9 || q.metadata.name == 'z')",
        [["q.spec.priority > 9"], ["q.metadata.name == 'z'"]],
    ),
    "on the engine, too": (
        "free['cpu'] > 4.0 || node.metadata.name.format([1]) == 'x'",
        [["free['cpu'] > 4.0"], ["node.metadata.name.format([1]) == 'x'"]],
    ),
    "the same twice is one": ("free['cpu'] > 4.0 || free['cpu'] > 4.0", [["free['cpu'] > 4.0"]]),
}


@pytest.mark.parametrize(("expression", "want"), WAYS.values(), ids=WAYS)
def test_every_way_is_found(expression: str, want: list[list[str]]) -> None:
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}).filters
    ways = [rule.changes, *rule.alternatives]
    assert [[change.text for change in way] for way in ways] == want


def test_ways_are_bounded() -> None:
    either = " && ".join(f"(free['cpu'] > {at + 4}.0 || pod.spec.priority > {at + 9})" for at in range(14))
    (rule,) = explained({"filters": [{"name": "rule", "expression": either}]}).filters
    assert len(rule.changes) == 14
    assert len(rule.alternatives) == WAYS_MAX - 1


LEAVES = [f"node.metadata.labels['l{at}'] == 'x'" for at in range(5)]
FORMULAS = st.recursive(
    st.sampled_from(range(len(LEAVES))),
    lambda inner: st.one_of(
        st.tuples(st.just("&&"), inner, inner), st.tuples(st.just("||"), inner, inner), st.tuples(st.just("!"), inner)
    ),
    max_leaves=5,
)


def write(formula: Any) -> str:
    """Return a formula as an expression."""
    match formula:
        case int():
            return LEAVES[formula]
        case ("!", inner):
            return f"!({write(inner)})"
    operator, left, right = formula
    return f"({write(left)}) {operator} ({write(right)})"


def occurrences(formula: Any) -> list[int]:
    """Return the leaves, from left to right."""
    return [formula] if isinstance(formula, int) else [leaf for part in formula[1:] for leaf in occurrences(part)]


def decide(formula: Any, values: list[bool]) -> bool:
    """Return the value of a formula if its leaves, from left to right, have these values."""
    match formula:
        case int():
            return values.pop(0)
        case ("!", inner):
            return not decide(inner, values)
    left, right = decide(formula[1], values), decide(formula[2], values)
    return (left and right) if formula[0] == "&&" else (left or right)


@settings(max_examples=100)
@given(formula=FORMULAS, held=st.lists(st.booleans(), min_size=len(LEAVES), max_size=len(LEAVES)))
def test_no_smaller_set_would_do(formula: Any, held: list[bool]) -> None:
    labels = {f"l{at}": "x" if value else "y" for at, value in enumerate(held)}
    spec = {"filters": [{"name": "rule", "expression": write(formula)}]}
    found = explained(spec, node={"metadata": {"name": "n", "labels": labels}})
    now = [held[leaf] for leaf in occurrences(formula)]
    assert found.passed is decide(formula, list(now))
    if not found.passed:
        ways = [way for way in product([False, True], repeat=len(now)) if decide(formula, list(way))]
        turned = [
            frozenset(at for at, pair in enumerate(zip(way, now, strict=True)) if pair[0] != pair[1]) for way in ways
        ]
        (rule,) = found.filters
        assert len(rule.changes) == min(map(len, turned), default=0)
        irreducible = [one for one in turned if not any(other < one for other in turned)]
        # leaves of one text are one for people
        assert len([rule.changes, *rule.alternatives]) <= max(len(irreducible), 1)


@settings(max_examples=100)
@given(
    formula=FORMULAS,
    pods=st.lists(st.lists(st.booleans(), min_size=len(LEAVES), max_size=len(LEAVES)), min_size=1, max_size=3),
    universal=st.booleans(),
)
def test_no_smaller_set_would_do_in_a_loop(formula: Any, pods: list[list[bool]], universal: bool) -> None:
    body = write(formula).replace("node.", "q.")
    rows = [{f"l{at}": "x" if value else "y" for at, value in enumerate(held)} for held in pods]
    on_it = [{"metadata": {"name": f"q{at}", "uid": str(at), "labels": row}} for at, row in enumerate(rows)]
    spec = {"filters": [{"name": "rule", "expression": f"pods.{'all' if universal else 'exists'}(q, {body})"}]}
    found = explained(spec, on_it=on_it)
    sizes = []
    for held in pods:
        now = [held[leaf] for leaf in occurrences(formula)]
        ways = [way for way in product([False, True], repeat=len(now)) if decide(formula, list(way))]
        sizes.append(min(sum(a != b for a, b in zip(way, now, strict=True)) for way in ways))
    if not found.passed:
        changes = found.filters[0].changes
        assert len(changes) <= (sum(sizes) if universal else min(sizes))
        assert len(changes) >= (max(sizes) if universal else min(sizes))


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
    assert [change.text for change in changes_of(expression)] == want
