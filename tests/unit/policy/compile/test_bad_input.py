"""Whatever policies, pods and nodes contain: a clear error or a defined verdict, in short time."""

from typing import Any

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_policy
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from support.policy import MODEL, Evaluation, faults, node, obj, pod, policy


def test_ten_thousand_rules_are_refused_at_once_with_the_bound() -> None:
    with pytest.raises(InvalidObjectError) as error:
        parse_policy(obj(filters={f"f{at}": "true" for at in range(10_000)}), MODEL)
    assert "spec.filters: must have at most 32 items" in str(error.value)


DEEP: dict[str, str] = {
    "brackets": "(" * 2000 + "true" + ")" * 2000,
    "not not": "!" * 4000 + "true",
    "lists": "[" * 1000 + "]" * 1000 + " == []",
    "plus": "1" + "+1" * 2000 + " == 2001",
    "minus minus": "-" * 3000 + "1 == 1",
    "or": "true" + "||true" * 600,
    "ternaries": "true ? " * 500 + "true" + " : true" * 500,
    "fields": "pod" + ".spec" * 800 + " == 1",
    "indexes": "[1]" + "[0]" * 1000 + " == 1",
    "calls": "size(" * 600 + "[]" + ")" * 600 + " == 0",
    "macros": "[1].exists(x, " * 100 + "true" + ")" * 100,
    "one mebibyte": "true" + " " * (1 << 20),
    "a text without end": "'" + "a" * 4000,
    "control characters": "\x00\x01\x02",
    "half a character": "'\ud800' == ''",
    "nothing but blanks": " \n\t ",
}


@pytest.mark.parametrize("name", DEEP)
def test_no_expression_is_too_deep_or_too_long_to_be_compiled_or_refused(name: str) -> None:
    said = "spec.filters[0].expression"
    try:
        Evaluation([policy(filters={"f": DEEP[name]})], [node()]).filter(pod())
    except (InvalidObjectError, PolicyError) as error:
        said = str(error)
    assert "spec.filters[0].expression" in said
    assert len(said) < 20_000


def test_variables_that_double_each_other_do_not_run_away() -> None:
    variables = {"v0": "pod.spec.priority"}
    variables |= {f"v{at}": f"variables.v{at - 1} + variables.v{at - 1}" for at in range(1, 32)}
    found = faults(variables=variables, filters={"f": "variables.v31 >= 0"})
    assert [*found] == ["spec.variables[8].expression"]
    assert found["spec.variables[8].expression"] == (
        "has 1,533 parts with its variables written out, 1,000 are allowed; use variables less often"
    )


NODES: dict[str, dict[str, Any]] = {
    "no more than a name": {"metadata": {"name": "n"}},
    "nulls everywhere": {"metadata": {"name": "n", "labels": None, "annotations": None}, "spec": None, "status": None},
    "conditions of odd kinds": {
        "metadata": {"name": "n"},
        "status": {"conditions": [{}, {"type": "", "status": "Maybe"}]},
    },
    "labels with dots and slashes": {"metadata": {"name": "n", "labels": {"a.b-c/d_e.f": "g.h", "": ""}}},
    "names in other scripts": {"metadata": {"name": "узел-नोड", "labels": {"ключ": "значение 🚀"}}},
}
RULES = {
    "a": "node.metadata.labels[?'a.b-c/d_e.f'].orValue('g.h') == 'g.h'",
    "b": {"expression": "node.metadata.labels['a.b-c/d_e.f'] == 'g.h'", "onError": "Pass"},
    "c": "node.status.conditions.all(c, c.type != 'Ready')",
    "d": {"nodeReadiness": {"conditions": [{"type": "Ready", "status": "True"}]}, "onError": "Pass"},
    "e": "!('x' in free) && !('x' in allocatable) && pods.size() == 0",
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_of_any_shape_gets_a_verdict(name: str) -> None:
    view = NodeView(from_json("Node", NODES[name]))
    cluster = Evaluation([policy(filters=RULES, scores={"s": "free['cpu']"})], [view])
    assert cluster.reasons(pod()) == {view.name: "p/d: condition Ready is not True"}
    assert cluster.scores(pod()) == [0.0]


def test_a_pod_of_any_shape_gets_a_verdict() -> None:
    rules = policy(filters={"f": "pod.spec.containers.all(c, c.image != '') && pod.metadata.labels.size() == 0"})
    for one in ({}, {"metadata": None}, {"metadata": {"labels": None}, "spec": {"containers": None}}):
        assert not Evaluation([rules], [node()]).filter(PodView(from_json("Pod", one))).rejected


@pytest.mark.parametrize("text", ["^(a+)+$", "(a|aa)+$", "(.*)(.*)(.*)(.*)(.*)x$"])
def test_250_kib_of_annotation_under_a_regular_expression(text: str) -> None:
    cluster = Evaluation([policy(filters={"f": f"!pod.metadata.annotations['note'].matches('{text}')"})], [node()])
    cluster.filter(pod(annotations={"note": "a" * (250 << 10) + "!"}))


def test_large_annotations_do_not_make_the_keys_of_classes_large() -> None:
    cluster = Evaluation([policy(filters={"f": "pod.metadata.labels.size() == 0"})], [node()])
    cluster.filter(pod(annotations={"note": "a" * (250 << 10)}))
    assert len(repr([one.key for one in cluster.evaluator.classes])) < 1_000


ARITHMETIC = {
    "NaN": "0.0 / 0.0",
    "infinity": "1e308 * 10.0",
    "an overflow of integers": "9223372036854775807 + pod.spec.priority",
    "a quantity that overflows": "double(quantity(pod.metadata.labels['q']).asInteger())",
    "a quantity with a thousand nines": "quantity(pod.metadata.labels['nines']).asApproximateFloat()",
    "an element that there is not, on the engine": ("double([1][pod.spec.priority] + now.getHours('Europe/Berlin'))"),
    "no quantity": "quantity(pod.metadata.labels['high']).asApproximateFloat()",
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_a_score_that_is_no_number_adds_nothing_and_is_counted(name: str) -> None:
    cluster = Evaluation([policy(scores={"s": ARITHMETIC[name], "t": "7.0"})], [node("a"), node("b")])
    labels = {"q": "10E", "nines": "9" * 1001, "high": "high"}
    assert cluster.scores(pod(labels=labels, priority=1)) == [7.0, 7.0]
    (failures,) = cluster.evaluator.tally.drain()
    assert (failures.rule, failures.count) == ("s", 2)
    assert 0 < len(failures.last_message) <= 256


def test_one_extreme_score_does_not_spoil_the_others() -> None:
    scored = {"s": {"expression": "free['cpu'] > 2.0 ? 1e308 : -1e308", "normalize": "MinMax"}}
    assert Evaluation([policy(scores=scored)], [node("a", cpu=1.0), node("b")]).scores(pod()) == [0.0, 100.0]


def test_nothing_wrong_is_nothing_said() -> None:
    assert faults() == {}
