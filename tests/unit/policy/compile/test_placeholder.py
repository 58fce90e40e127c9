"""Placeholders of policies that do not compile."""

from typing import Any

import pytest

from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.evaluate.matching import policy_set
from support.policy import NOW, Evaluation, node, obj, pod, policy

BAD: dict[str, Any] = {"filters": [{"name": "f", "expression": "nonsense("}]}
MEANT: dict[str, tuple[Any, bool]] = {
    "nothing said: all pods of its scheduler": ({}, True),
    "its namespaces": ({"match": {"namespaces": ["ml"]}}, True),
    "other namespaces": ({"match": {"namespaces": ["other"]}}, False),
    "its namespaces by label": ({"match": {"namespaceSelector": {"matchLabels": {"team": "x"}}}}, False),
    "its pods": ({"match": {"podSelector": {"matchLabels": {"tier": "gold"}}}}, True),
    "other pods": ({"match": {"podSelector": {"matchLabels": {"tier": "silver"}}}}, False),
    "conditions are taken as true": ({"match": {"conditions": [{"name": "c", "expression": "false"}]}}, True),
    "conditions that are no list": ({"match": {"conditions": 5, "namespaces": ["other"]}}, False),
    "a selector that cannot be read": (
        {"match": {"namespaces": ["other"], "podSelector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}}},
        True,
    ),
    "a selector that is a text": ({"match": {"podSelector": "tier=gold"}}, True),
    "namespaces that are a text": ({"match": {"namespaces": "other"}}, True),
    "namespaces that are numbers": ({"match": {"namespaces": [1]}}, True),
    "no namespace at all": ({"match": {"namespaces": []}}, True),
    "a match that is a list": ({"match": ["other"]}, True),
    "nulls are absent": ({"match": {"namespaces": None, "podSelector": None}}, True),
    "another scheduler": ({"schedulerName": "other"}, False),
    "Disabled": ({"mode": "Disabled"}, False),
    "off, which YAML reads as false": ({"mode": False}, False),
    "Shadow": ({"mode": "Shadow"}, False),
    "a mode that there is not": ({"mode": "Observe"}, True),
    "its only rule is in shadow": ({"filters": [BAD["filters"][0] | {"mode": "Shadow"}]}, False),
    "rules in shadow, and one that decides": (
        {"filters": [BAD["filters"][0] | {"mode": "Shadow"}], "scores": [{"name": "s", "expression": "1"}]},
        True,
    ),
    "rules in shadow, and a group": (
        {"filters": [BAD["filters"][0] | {"mode": "Shadow"}], "binding": {"gang": [{"name": "g"}]}},
        True,
    ),
    "failurePolicy Ignore": ({"failurePolicy": "Ignore"}, False),
    "a failurePolicy that there is not": ({"failurePolicy": "Perhaps"}, True),
}


@pytest.mark.parametrize("name", MEANT)
def test_its_pods_are_refused_or_pass(name: str) -> None:
    spec, want = MEANT[name]
    one = placeholder_policy(obj("broken", **(BAD | spec)))
    why = Evaluation([one], [node()]).refusal(pod(labels={"tier": "gold"}, of_namespace={"team": "ml"}))
    assert (why and why.reason) == ("policy broken does not compile" if want else None)


SHAPES: list[Any] = [
    None,
    [],
    "text",
    5,
    {},
    {"metadata": None, "spec": "x"},
    {"metadata": [], "spec": {"priority": "high"}},
]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_no_object_is_too_odd(shape: Any) -> None:
    assert placeholder_policy({"metadata": {"name": "x"}, "spec": shape}).enforced
    if isinstance(shape, dict):
        assert placeholder_policy(shape).scheduler_name == "fairlead"


def test_it_takes_the_place_in_order_that_the_policy_has_and_others_go_on() -> None:
    broken = placeholder_policy(obj("z", priority=5, **BAD))
    assert broken.order == (-5, "z")
    assert placeholder_policy(obj("z", priority=2.0)).priority == 2
    assert placeholder_policy(obj("z", priority=float("nan"))).priority == 0
    cluster = Evaluation([broken, policy("a", filters={"f": "false"})], [node()])
    assert cluster.reasons(pod(), NOW) == {"n": "z/: policy z does not compile"}


def test_a_set_with_it_is_another_than_with_what_compiled() -> None:
    given = obj("p", generation=3)
    stands, yet = placeholder_policy(given), placeholder_policy(given, yet=False)
    compiled = policy("p", generation=3)
    assert (stands.generation, bool(stands.placeholder), bool(compiled.placeholder)) == ("3", True, False)
    assert len({policy_set([one]).generation for one in (stands, yet, compiled)}) == 3
