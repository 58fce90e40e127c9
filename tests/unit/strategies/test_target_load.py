"""targetLoad, as tables: what is measured, what is predicted, and how the node scores."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin import target_load
from fairlead.strategies.builtin.target_load import TargetLoad
from fairlead.strategies.contract import Predicted, Reads, Unknown
from support.examples import MANY
from support.strategies.facts import Node, Notes, OnNode, Pod
from support.strategies.load import MEASURED_AT, NOWHERE, SECOND, STALE, measured, placed

NOW = MEASURED_AT + SECOND
USED = {"value": "value", "measure": "Used"}
SIXTY = USED | {"targetPercent": 60}
Given = dict[str, Any]


def a_score(**params: Any) -> Any:
    return target_load.compile_target_load(TargetLoad.model_validate(USED | params))


def needing(limits: float = 0.0, requests: float = 0.0, unsaid: int = 0) -> Pod:
    return Pod(expected={"cpu": Predicted(limits, requests, unsaid)})


def node(cores: float, *unmeasured: OnNode, **values: float | Unknown) -> Node:
    return Node(
        capacity={"cpu": cores}, values=values, measured_at=dict.fromkeys(values, MEASURED_AT), pods=list(unmeasured)
    )


@dataclass(frozen=True)
class Case:
    node: Node
    want: float | Unknown
    pod: Pod = field(default_factory=needing)
    params: Given = field(default_factory=lambda: SIXTY)


SINCE = placed(9.0, 0, limits=0.4)
RATIO: Given = {"measure": "UsedRatio"}
CASES = {
    "the example: at the target, though floats are a little above": Case(
        node(8, SINCE, value=3.2), 100.0, needing(1.2)
    ),
    "the example: above the target": Case(node(8, value=6.0), 37.5),
    "just above the target points fall to the target": Case(node(8, value=4.8001), 59.998125),
    "just below it they are nearly all": Case(node(8, value=4.7999), 99.9991666),
    "nothing is used": Case(node(8, value=0.0), 60.0),
    "all is used": Case(node(8, value=8.0), 0.0),
    "all is used, though floats are a little above": Case(node(0.3, value=0.1), 0.0, needing(0.2)),
    "more than all": Case(node(8, value=8.1), 0.0),
    "far more than all": Case(node(1e-300, value=1e18), 0.0),
    # What Trimaran's TargetLoadPacking says of the same, rounded there.
    "Trimaran: a new node": Case(node(1, value=0.0), 40.0, params=RATIO),
    "Trimaran: a hot node": Case(node(1, value=0.5), 100 / 3, params=RATIO),
    "Trimaran: more than the node has": Case(node(1, value=0.3), 0.0, needing(1.0), RATIO),
    # And where it is otherwise: it gives 0.
    "no value": Case(node(1), Unknown("data value", "is missing")),
    "a stale value": Case(node(1, value=STALE), STALE),
    "no capacity": Case(Node(values={"value": 1.0}), NOWHERE),
    "a capacity of nothing": Case(node(0, value=1.0), NOWHERE),
    "another resource": Case(node(1, value=1.0), NOWHERE, params=SIXTY | {"resource": "memory"}),
    # What is predicted.
    "limits are used in full": Case(node(10, value=0.0), 60 + 40 / 3, needing(limits=2)),
    "requests are multiplied": Case(node(10, value=0.0), 60 + 20, needing(requests=2)),
    "as the rule says": Case(
        node(10, value=0.0), 60 + 40 / 3, needing(requests=4), SIXTY | {"multiplierPercent": 50}
    ),
    "containers that say nothing": Case(node(10, value=0.0), 60 + 20, needing(unsaid=3)),
    "as the rule says, too": Case(
        node(10, value=0.0), 60 + 10, needing(unsaid=3), SIXTY | {"defaultRequest": "500m"}
    ),
    "all together": Case(node(10, value=1.0), 60 + 40 * 5.5 / 6, needing(1, 1, 2)),
    "pods placed since count alike": Case(
        node(10, placed(9.0, 0, limits=1.0, requests=1.0, unsaid=2), value=1.0), 60 + 40 * 5.5 / 6
    ),
    "several of them": Case(
        node(10, placed(9.0, 59, limits=1.0), placed(9.0, -60, limits=1.5), value=0.5), 60 + 20
    ),
    "not those before the lag": Case(
        node(10, placed(9.0, 60, limits=1.0), placed(9.0, 61, limits=1.5), value=3.0), 60 + 20
    ),
    "no lag": Case(
        node(10, placed(9.0, 0, limits=1.0), placed(9.0, -1, limits=1.5), value=1.5), 60 + 20,
        params=SIXTY | {"lag": "0s"},
    ),
    "other resources do not count": Case(
        node(10, OnNode(placed_at=NOW, expected={"memory": Predicted(5.0)}), value=3.0), 60 + 20,
        Pod(expected={"memory": Predicted(5.0)}),
    ),
    # The unit of what is measured; allocatable does not matter.
    "a ratio": Case(measured(1, capacity=10, value=0.3), 60 + 20, params=SIXTY | RATIO),
    "free cores": Case(measured(1, capacity=10, value=7.0), 60 + 20, params=SIXTY | {"measure": "Free"}),
    "a free ratio": Case(measured(1, capacity=10, value=0.7), 60 + 20, params=SIXTY | {"measure": "FreeRatio"}),
    "more free than there is": Case(node(10, value=11.0), 60.0, params=SIXTY | {"measure": "Free"}),
    "usage below nothing": Case(node(10, value=-1.0), 60 + 20, needing(3.0)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_target_load(case: Case) -> None:
    score = a_score(**case.params).for_pod(case.pod)
    found = score(case.node, NOW)
    assert score(case.node, NOW, Notes()) == found
    assert found == (case.want if isinstance(case.want, Unknown) else pytest.approx(case.want, abs=1e-6))


def test_no_rounding_error_is_worth_more_than_all_points() -> None:
    assert a_score(targetPercent=60).for_pod(needing())(node(8, value=4.8 * (1 + 5e-10)), NOW) == 100.0


def test_defaults_are_those_of_trimaran() -> None:
    params = TargetLoad.model_validate({"value": "value"})
    assert (params.target_percent, params.multiplier_percent, params.default_request.amount) == (40, 150, 1.0)
    assert (params.measure, params.resource) == ("UsedRatio", "cpu")


def test_memory_has_a_default_of_its_own() -> None:
    params = USED | {"resource": "memory", "defaultRequest": "256Mi", "targetPercent": 50}
    full = Node(capacity={"memory": 2.0**30}, values={"value": 2.0**28})
    found = a_score(**params).for_pod(Pod(expected={"memory": Predicted(unsaid=1)}))(full, NOW)
    assert found == pytest.approx(100.0)


@pytest.mark.parametrize(
    "params",
    [
        {"targetPercent": 0}, {"targetPercent": 100}, {"multiplierPercent": 0}, {"defaultRequest": 1},
        {"defaultRequest": "-1"}, {"defaultRequest": "one"}, {"measure": "Percent"}, {"lag": "1d"}, {"value": "a-b"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_written_wrongly_is_refused(params: Given) -> None:
    with pytest.raises(ValidationError):
        TargetLoad.model_validate(USED | params)


def test_a_trace_shows_every_number() -> None:
    notes = Notes()
    a_score(targetPercent=60, measure="UsedRatio").for_pod(needing(1.2))(node(8, SINCE, value=0.4), NOW, notes)
    assert notes.values == pytest.approx(
        {
            "capacity": 8.0, "value": 0.4, "used": 3.2, "predicted": 1.2, "unmeasured": 0.4, "percent": 60.0,
            "target": 60.0, "points": 100.0,
        }
    )  # fmt: skip
    notes = Notes()
    a_score().for_pod(needing())(node(8), NOW, notes)
    assert notes.values == {"capacity": 8.0, "value": "data value is missing"}


def test_reads_name_what_is_used_and_no_more() -> None:
    assert a_score(lag="90s").reads == Reads(
        limit=frozenset({"cpu"}),
        capacity=frozenset({"cpu"}),
        data=frozenset({"value"}),
        unmeasured=frozenset({("value", 90)}),
    )
    assert a_score(resource="memory").reads.unmeasured == {("value", 60)}


_tenths = st.integers(0, 100)


@settings(derandomize=True, database=None, max_examples=MANY)
@given(_tenths, _tenths, _tenths, st.integers(1, 40), st.integers(1, 99))
def test_tenths_score_as_they_are_written(used: int, limit: int, unmeasured: int, cores: int, target: int) -> None:
    """Points fall at once just above the target: whether a load is above it must not depend on rounding errors."""
    percent = Fraction(10 * (used + limit + unmeasured), cores)
    if percent <= target:
        want = target + (100 - target) * percent / target
    else:
        want = target * max(100 - percent, Fraction(0)) / (100 - target)
    scored = a_score(targetPercent=target).for_pod(needing(limit / 10))(
        node(cores, placed(9.0, 0, limits=unmeasured / 10), value=used / 10), NOW
    )
    assert scored == pytest.approx(float(want), abs=1e-6)


_amounts = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 16.0, 1e18]) | st.floats(0, 1e18)
_values = _amounts | _amounts.map(lambda amount: -amount) | st.floats(0, 1)
_expected = st.builds(Predicted, _amounts, _amounts, st.integers(0, 1000))


@settings(derandomize=True, database=None, max_examples=MANY)
@given(
    _amounts,
    _values,
    _expected,
    _expected,
    st.integers(1, 99),
    st.sampled_from(["Used", "Free", "UsedRatio", "FreeRatio"]),
)
def test_no_number_is_too_strange(
    capacity: float, value: float, own: Predicted, others: Predicted, target: int, measure: str
) -> None:
    unmeasured = OnNode(placed_at=MEASURED_AT, expected={"cpu": others})
    score = a_score(targetPercent=target, measure=measure, defaultRequest="999999999E").for_pod(
        Pod(expected={"cpu": own})
    )
    found = score(node(capacity, unmeasured, value=value), NOW)
    if capacity > 0:
        assert 0.0 <= found <= 100.0
    else:
        assert found == NOWHERE


@settings(derandomize=True, database=None, max_examples=MANY)
@given(st.floats(0, 2), st.floats(0, 2), st.integers(1, 99))
def test_points_rise_up_to_the_target_and_fall_behind_it(one: float, other: float, target: int) -> None:
    low, high = sorted((one, other))
    score = a_score(targetPercent=target).for_pod(needing())
    below, above = (float(score(node(1.0, value=used), NOW)) for used in (low, high))
    if 100 * high <= target:
        assert below <= above + 1e-9
    elif 100 * low > target + 1e-6:
        assert below >= above - 1e-9
    else:
        assert below >= target - 1e-9
