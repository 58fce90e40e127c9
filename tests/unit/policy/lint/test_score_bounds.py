"""What a score gives lies between the bounds that are known of it beforehand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cel.check import NUMBER, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.score_bounds import bounds
from fairlead.policy.views.pod_and_node import NodeView, PodView
from support.policy.building import placed

_ENVIRONMENT = Environment(RULE)
_GIB = float(1 << 30)


def compiled(text: str) -> CompiledExpression:
    return CompiledExpression(check(text, _ENVIRONMENT, NUMBER))


_INF = math.inf
BOUNDS: dict[str, tuple[str, tuple[float, float]]] = {
    "a number": ("3", (3, 3)),
    "how many": ("pods.size()", (0, _INF)),
    "how many, turned round": ("-pods.filter(p, p.spec.priority > 0).size()", (-_INF, 0)),
    "an amount": ("free['cpu']", (0, _INF)),
    "an amount or a default": ("free[?'example.com/gpu'].orValue(0.0)", (0, _INF)),
    "an amount or a default below 0": ("free[?'example.com/gpu'].orValue(-1.0)", (-_INF, _INF)),
    "bytes": ("allocatable.memory", (1 << 28, _INF)),
    "a share": ("requested['cpu'] / allocatable['cpu']", (0, 1)),
    "a share of something else": ("requested['cpu'] / allocatable['pods']", (-_INF, _INF)),
    "a choice": ("node.spec.unschedulable ? 3.0 : -free['cpu']", (-_INF, 3)),
    "the least of several": ("math.least(free['cpu'], 5.0, 7.0)", (0, 5)),
    "the greater of two": ("math.greatest(-free['cpu'], 5.0)", (5, 5)),
    "something else": ("allocatable['cpu'] * (double(pods.size()) - 3.0)", (-_INF, _INF)),
}


@pytest.mark.parametrize(("text", "want"), BOUNDS.values(), ids=BOUNDS)
def test_the_bounds_are(text: str, want: tuple[float, float]) -> None:
    assert bounds(compiled(text)) == want


_PARTS = st.sampled_from(
    ["free['cpu']", "allocatable['memory']", "requested.cpu / allocatable.cpu", "double(pods.size())", "2.0", "-0.5"]
)
_SCORES = st.recursive(
    _PARTS,
    lambda below: st.one_of(
        st.tuples(below, st.sampled_from("+-*/"), below).map(lambda one: f"({one[0]}) {one[1]} ({one[2]})"),
        below.map(lambda one: f"-({one})"),
        st.tuples(st.sampled_from(["least", "greatest"]), below, below).map(
            lambda one: f"math.{one[0]}({one[1]}, {one[2]})"
        ),
        st.tuples(below, below).map(lambda one: f"node.spec.unschedulable ? ({one[0]}) : ({one[1]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(_SCORES, st.floats(0.25, 64), st.floats(0, 1), st.integers(0, 3), st.booleans())
def test_a_score_is_within_its_bounds(text: str, cpu: float, used: float, count: int, unschedulable: bool) -> None:
    whole = {"metadata": {"name": "n"}, "spec": {"unschedulable": unschedulable}}
    node = NodeView(
        from_json("Node", whole),
        pods=[placed(f"p{at}") for at in range(count)],
        allocatable={"cpu": cpu, "memory": 4 * _GIB},
        requested={"cpu": cpu * used, "memory": _GIB},
    )
    expression = compiled(text)
    low, high = bounds(expression)
    value = expression.for_pod(PodView(None))(node, 0)
    slack = 1e-9 * max(1.0, abs(value)) if math.isfinite(value) else 0.0
    assert math.isnan(value) or low - slack <= value <= high + slack
