"""The nodeAffinity that lint prints selects exactly the nodes that the filter passes."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.values.structs import from_json
from fairlead.policy.affinity.node_affinity import as_yaml, node_affinity
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import filter_of
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import PASS, Reject
from support.examples import MANY

_ENVIRONMENT = Environment(RULE)
_L = "node.metadata.labels"


def compiled(text: str) -> CompiledExpression:
    return CompiledExpression(check(text, _ENVIRONMENT, BOOL))


def selects(terms: list[dict[str, Any]], name: str, labels: Mapping[str, str]) -> bool:
    """Evaluate terms as kube-scheduler does: all of a term must hold, and an empty term matches no node."""
    return any(
        term
        and all(_holds(one, labels) for one in term.get("matchExpressions", []))
        and all(_holds(one, {"metadata.name": name}) for one in term.get("matchFields", []))
        for term in terms
    )


def _holds(requirement: dict[str, Any], values: Mapping[str, str]) -> bool:
    key, wanted = requirement["key"], requirement.get("values", [])
    if key == "metadata.name":
        assert len(wanted) == 1, "the API server takes one"
    match requirement["operator"]:
        case "In":
            assert wanted
            return key in values and values[key] in wanted
        case "NotIn":
            assert wanted
            return key not in values or values[key] not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
        case "Gt" | "Lt" as operator:  # what is not a number of 64 bits is neither
            [bound] = wanted
            if not re.fullmatch("[0-9]+", values.get(key, "")) or int(values[key]) >= 1 << 63:
                return False
            return int(values[key]) > int(bound) if operator == "Gt" else int(values[key]) < int(bound)
    raise AssertionError(requirement)


def passes(expression: CompiledExpression, name: str, labels: Mapping[str, str], *, rejects_on_error: bool) -> bool:
    """Report whether the filter passes a node."""
    node = NodeView(from_json("Node", {"metadata": {"name": name, "labels": dict(labels)}}))
    verdict = filter_of(expression, "r", "r", resolvable=False).for_pod(PodView(None))(node, 0)
    if verdict is PASS:
        return True
    return False if isinstance(verdict, Reject) else not rejects_on_error


TOLD = {
    "a value": (f"{_L}['a'] == 'x'", [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}]),
    "a value, the other way round": (
        f"'x' == {_L}['a']",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}],
    ),
    "a field in place of a key": (
        f"{_L}.a == 'x'",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}],
    ),
    "not a value, and absent raises": (
        f"{_L}['a'] != 'x'",
        [
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "NotIn", "values": ["x"]},
                ]
            }
        ],
    ),
    "not a value, and absent will do": (
        f"{_L}[?'a'].orValue('') != 'x'",
        [{"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}],
    ),
    "one of some": (
        f"{_L}[?'a'].orValue('') in ['y', 'x']",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}],
    ),
    "either value": (
        f"{_L}[?'a'].orValue('') == 'y' || {_L}[?'a'].orValue('') == 'x'",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}],
    ),
    "a value or absent": (
        f"{_L}[?'a'].orValue('x') == 'x'",
        [
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]},
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
        ],
    ),
    "there": (f"'a' in {_L}", [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]),
    "there, asked otherwise": (
        f"has({_L}.a) && {_L}[?'a'].hasValue()",
        [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}],
    ),
    "not there": (f"!('a' in {_L})", [{"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}]),
    "two labels": (
        f"{_L}['a'] == 'x' && 'b' in {_L}",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "b", "operator": "Exists"}]}],
    ),
    "either label": (
        f"'a' in {_L} || 'b' in {_L}",
        [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "b", "operator": "Exists"}]},
        ],
    ),
    "a name": (
        "node.metadata.name == 'n'",
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}],
    ),
    "more than a number": (
        f"int({_L}['a']) > 4 && {_L}['b'] == 'x'",
        [
            {
                "matchExpressions": [
                    {"key": "b", "operator": "In", "values": ["x"]},
                    {"key": "a", "operator": "Gt", "values": ["4"]},
                ]
            }
        ],
    ),
    "a number and up to another": (
        f"2 <= int({_L}[?'a'].orValue('0')) && int({_L}.a) <= 8",
        [
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Gt", "values": ["1"]},
                    {"key": "a", "operator": "Lt", "values": ["9"]},
                ]
            }
        ],
    ),
    "no node": (f"{_L}['a'] == 'x' && {_L}['a'] == 'y'", []),
    "every node": (f"'a' in {_L} || !('a' in {_L})", [{}]),
}


@pytest.mark.parametrize(("text", "want"), TOLD.values(), ids=TOLD)
def test_it_says(text: str, want: list[dict[str, object]]) -> None:
    assert node_affinity(compiled(text), rejects_on_error=True) == want


NOT_TOLD = {
    "a number or something else": f"int({_L}['a']) > 4 || {_L}['b'] == 'x'",
    "a number that what is absent has": f"int({_L}[?'a'].orValue('9')) > 4",
    "a number below 0": f"int({_L}['a']) > -3",
    "a fraction": f"double({_L}['a']) > 3.0",
    "it depends on the pod": f"{_L}['a'] == pod.metadata.name",
    "labels are compared": f"{_L}['a'] == {_L}['b']",
    "a part of a value is asked for": f"{_L}['a'].startsWith('x')",
    "a value that no label can have": f"{_L}['a'] == 'x y'",
    "a key that no label can have": f"'a b' in {_L}",
    "a key that is computed": f"{_L}['a' + {_L}['b']] == 'x'",
    "labels are walked": f"{_L}.exists(key, key == 'a')",
    "more of the node": "node.spec.unschedulable",
    "the name of something else": "node.metadata.annotations['a'] == 'x'",
    "the labels of something else": "pods.exists(node, node.metadata.labels['a'] == 'x')",
    "too much": " || ".join(f"({_L}[?'a{at}'].orValue('') == 'x' && 'b{at}' in {_L})" for at in range(20)),
}


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD)
def test_there_is_none_where(text: str) -> None:
    assert node_affinity(compiled(text), rejects_on_error=True) is None


def test_it_is_printed_as_a_pod_would_have_it() -> None:
    terms = node_affinity(compiled(f"{_L}['a'] == 'x'"), rejects_on_error=True)
    assert terms
    assert as_yaml(terms) == (
        "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n"
        "      - matchExpressions:\n        - key: a\n          operator: In\n          values:\n          - x\n"
    )


_KEYS, _VALUES = st.sampled_from("ab"), st.sampled_from(["", "x", "y"])
_READS = st.one_of(
    _KEYS.map(lambda key: f"{_L}['{key}']"),
    st.tuples(_KEYS, _VALUES).map(lambda one: f"{_L}[?'{one[0]}'].orValue('{one[1]}')"),
    st.just("node.metadata.name"),
)
_ATOMS = st.one_of(
    st.tuples(_READS, st.sampled_from(["==", "!="]), _VALUES).map(lambda one: f"{one[0]} {one[1]} '{one[2]}'"),
    st.tuples(_READS, st.sets(_VALUES)).map(lambda one: f"{one[0]} in {sorted(one[1])}"),
    _KEYS.map(lambda key: f"'{key}' in {_L}"),
    _KEYS.map(lambda key: f"has({_L}.{key})"),
    _KEYS.map(lambda key: f"{_L}[?'{key}'].hasValue()"),
    st.sampled_from(["true", "false"]),
)
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda below: st.one_of(
        st.tuples(below, st.sampled_from(["&&", "||"]), below).map(lambda one: f"({one[0]}) {one[1]} ({one[2]})"),
        below.map(lambda one: f"!({one})"),
        st.tuples(below, below, below).map(lambda one: f"({one[0]}) ? ({one[1]}) : ({one[2]})"),
    ),
    max_leaves=5,
)


_NUMBERS = st.tuples(
    st.sampled_from(["{_L}['a']", "{_L}[?'a'].orValue('3')", "{_L}[?'b'].orValue('x')"]).map(
        lambda read: read.replace("{_L}", _L)
    ),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.sampled_from([0, 1, 3, 7, (1 << 63) - 1]),
    st.booleans(),
).map(lambda one: f"{one[2]} {one[1]} int({one[0]})" if one[3] else f"int({one[0]}) {one[1]} {one[2]}")


@settings(max_examples=MANY)
@given(st.lists(_NUMBERS, min_size=1, max_size=2), _EXPRESSIONS)
def test_it_selects_the_nodes_with_the_numbers_that_the_filter_passes(numbers: list[str], text: str) -> None:
    expression = compiled(" && ".join([numbers[0], f"({text})", *numbers[1:]]))
    terms = node_affinity(expression, rejects_on_error=True)
    for a in (None, "", "x", "0", "1", "3", "03", "4", "1e3", "99", str((1 << 63) - 1), str(1 << 63)):
        for b in (None, "x", "7") if terms is not None else ():
            labels = {key: value for key, value in {"a": a, "b": b}.items() if value is not None}
            want = passes(expression, "x", labels, rejects_on_error=True)
            assert (terms == [{}] or selects(terms or [], "x", labels)) == want, (labels, terms)


@settings(max_examples=MANY)
@given(_EXPRESSIONS, st.booleans())
def test_it_selects_the_nodes_that_the_filter_passes(text: str, rejects_on_error: bool) -> None:
    expression = compiled(text)
    terms = node_affinity(expression, rejects_on_error=rejects_on_error)
    if terms is None:  # a chain of choices may be too large
        assert text.count("?") > 3
        return
    for name in ("x", "z"):
        for a in (None, "", "x", "z"):
            for b in (None, "", "x", "z"):
                labels = {key: value for key, value in {"a": a, "b": b}.items() if value is not None}
                want = passes(expression, name, labels, rejects_on_error=rejects_on_error)
                assert (terms == [{}] or selects(terms, name, labels)) == want, (name, labels, terms)
