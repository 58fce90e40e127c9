"""Ranges hold for every node: what an expression comes to lies within its range."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.analysis.ranges import Range, Ranges
from fairlead.cel.check import NUMBER, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Type
from fairlead.policy.compile.expression import CompiledExpression
from support.policy import NOW, node, pod

_RULES = Environment(RULE, {"used": Type("double")})
_USED = CompiledExpression(check("requested['cpu'] / allocatable['cpu']", Environment(RULE), NUMBER))


def _compiled(text: str) -> CompiledExpression:
    return CompiledExpression(check(text, _RULES, NUMBER), {"used": _USED})


def _range(text: str) -> Range:
    compiled = _compiled(text)
    trees = {name: one.expression.checked for name, one in compiled.variables.items()}
    return Ranges(trees).of(compiled.expression.checked, compiled.expression.checked.root)


KNOWN: dict[str, Range] = {
    "free['memory']": Range(0, 1, "memory"),
    "allocatable.memory": Range(1, 1, "memory"),
    "free[?'example.com/gpu'].orValue(0.0)": Range(0, 1, "example.com/gpu"),
    "free['memory'] / allocatable['memory']": Range(0, 1),
    "free['memory'] / allocatable['cpu']": Range(),
    "free['memory'] / free['memory']": Range(0, float("inf")),
    "1.0 - variables.used": Range(0, 1),
    "100.0 * (1.0 - variables.used)": Range(0, 100),
    "(allocatable['cpu'] - requested['cpu']) / allocatable['cpu']": Range(0, 1),
    "-free['cpu'] / 2.0": Range(-0.5, 0, "cpu"),
    "node.spec.unschedulable ? 10.0 : 30.0": Range(10, 30),
    "math.least(0.5, variables.used)": Range(0, 0.5),
    "math.abs(variables.used - 1.0)": Range(0, 1),
    "math.floor(variables.used * 10.0)": Range(-1, 11),
    "data['load']": Range(),
    "double(pods.size())": Range(0, float("inf")),
}


@pytest.mark.parametrize(("text", "want"), KNOWN.items(), ids=KNOWN)
def test_a_range_is_known(text: str, want: Range) -> None:
    if "data" in text:
        rules = Environment(RULE, {}, ("load",))
        checked = check(text, rules, NUMBER).checked
        assert Ranges({}).of(checked, checked.root) == want
    else:
        assert _range(text) == want


_SHARE = st.floats(0, 1)
_LEAF = st.sampled_from(
    ["variables.used", "1.0", "0.5", "2.0", "free['cpu'] / allocatable['cpu']", "double(pods.size())", "-3.0"]
)
_TEXTS = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda one: f"({one[0]} {one[1]} {one[2]})"),
        inner.map(lambda one: f"({one} / 4.0)"),
        inner.map(lambda one: f"-({one})"),
        st.tuples(inner, inner).map(lambda one: f"math.least({one[0]}, {one[1]})"),
        st.tuples(inner, inner).map(lambda one: f"(node.spec.unschedulable ? {one[0]} : {one[1]})"),
        inner.map(lambda one: f"math.abs({one})"),
    ),
    max_leaves=6,
)


@given(_TEXTS, _SHARE, st.integers(1, 128), st.booleans())
def test_a_result_lies_within_its_range(text: str, share: float, cores: int, unschedulable: bool) -> None:
    found = _range(text)
    one = node(cpu=float(cores), used=cores * share, unschedulable=unschedulable)
    result = _compiled(text).for_pod(pod())(one, NOW)
    slack = 1e-9 * max(1.0, abs(result))
    assert found.low - slack <= result <= found.high + slack
