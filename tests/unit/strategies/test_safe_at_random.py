"""safe, for loads and parameters at random."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.strategies.contract import PASS
from support.examples import MANY
from support.strategies.facts import Node, Notes, Pod
from support.strategies.load import NOWHERE, asking, measured
from support.strategies.safe import CPU, NO_DEVIATION, NOW, REFUSED, Given, a_filter, a_score, numbers

# Everything up to 1e18, also far too small and below nothing.
_amounts = st.sampled_from([0.0, 5e-324, 1e-300, 1e-18, 1e-9, 1.0, 16.0, 1e12, 1e18]) | st.floats(0, 1e18)
_values = _amounts | _amounts.map(lambda amount: -amount) | st.floats(0, 1)
_nodes = st.builds(
    measured,
    _amounts,
    capacity=_amounts,
    unmeasured=_amounts,
    mean=_values,
    deviation=_values,
    forecast=_values,
)
_rules = st.fixed_dictionaries(
    {
        "limitPercent": st.integers(1, 100),
        "tolerancePercent": st.integers(1, 100),
        "forecastPercent": st.integers(0, 100),
    }
)
_resources = st.sampled_from(["Used", "Free", "UsedRatio", "FreeRatio"]).map(
    lambda measure: CPU | {"measure": measure, "forecast": "forecast"}
)


@settings(derandomize=True, database=None, max_examples=MANY)
@given(_nodes, _amounts, _resources, _rules)
def test_no_number_is_too_strange(node: Node, request: float, resource: Given, params: Given) -> None:
    pod = asking(request)
    verdict = a_filter(resource, **params).for_pod(pod)(node, NOW)
    points = a_score(resource, **params).for_pod(pod)(node, NOW)
    balance = a_score(resource, **params, objective="Balance").for_pod(pod)(node, NOW)
    has_cpu = node.allocatable["cpu"] > 0 and ("Ratio" not in resource["measure"] or node.capacity["cpu"] > 0)
    if not has_cpu:
        assert verdict == points == balance == NOWHERE
        return
    risk, tolerance = numbers(a_filter(resource, **params), node, pod)["risk"], params["tolerancePercent"] / 100
    assert 0.0 <= risk <= 1.0
    assert verdict == (PASS if risk <= tolerance + 1e-9 else REFUSED)
    assert 0.0 <= points <= 100.0
    assert points == pytest.approx(100 * (1 - sqrt(min(risk / tolerance, 1.0))), abs=1e-9)
    assert 0.0 <= balance <= 100.0


@settings(derandomize=True, database=None, max_examples=MANY)
@given(
    st.integers(0, 160), st.integers(0, 80), st.integers(0, 40), st.integers(1, 100), st.sampled_from([1, 2, 4, 10, 16])
)
def test_tenths_are_compared_as_they_are_written(
    used: int, request: int, unmeasured: int, limit: int, cores: int
) -> None:
    node = measured(float(cores), mean=used / 10, unmeasured=unmeasured / 10)
    found = a_filter(NO_DEVIATION, limitPercent=limit).for_pod(asking(request / 10))(node, NOW)
    assert found == (PASS if limit == 100 or 10 * (used + request + unmeasured) <= cores * limit else REFUSED)


@settings(derandomize=True, database=None, max_examples=MANY)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 100), st.integers(1, 100))
def test_a_bound_of_the_risk_decides_what_the_risk_itself_decides(
    used: float, deviation: float, limit: int, tolerance: int
) -> None:
    node, params = measured(1, mean=used, deviation=deviation), {"limitPercent": limit, "tolerancePercent": tolerance}
    for rule in (a_filter(**params), a_score(**params)):
        decide = rule.for_pod(Pod())
        assert decide(node, NOW) == decide(node, NOW, Notes())
