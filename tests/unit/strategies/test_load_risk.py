"""loadRisk, as tables: what is measured, what the pod requests, and how the node scores."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin import load_risk
from fairlead.strategies.builtin.load_risk import LoadRisk
from fairlead.strategies.contract import Reads, Unknown
from support.examples import MANY
from support.strategies.facts import Node, Notes, Pod
from support.strategies.load import MEASURED_AT, NOWHERE, SECOND, STALE, asking, measured

NOW = MEASURED_AT + SECOND
CPU = {"name": "cpu", "mean": "mean", "deviation": "deviation", "measure": "Used"}
RATIO = CPU | {"measure": "UsedRatio"}
MEMORY = {"name": "memory", "mean": "memMean", "deviation": "memDev"}
ONE_CORE = {"cpu": 1.0, "memory": 1024.0}
Given = dict[str, Any]


def a_score(*resources: Given, **params: Any) -> Any:
    return load_risk.compile_load_risk(LoadRisk.model_validate({"resources": resources or (CPU,), **params}))


@dataclass(frozen=True)
class Case:
    node: Node
    want: float | Unknown
    request: float = 0.0
    resource: Given = field(default_factory=lambda: CPU)
    params: Given = field(default_factory=dict)


ROOT = {"sensitivity": 2}
CASES = {
    "the example": Case(measured(1, mean=0.5, deviation=0.16), 52.5, 0.05, params=ROOT),
    # What Trimaran's LoadVariationRiskBalancing says of the same, rounded there.
    "Trimaran: plain": Case(measured(100, mean=40.0, deviation=36.0), 57.0, 10),
    "Trimaran: usage below nothing": Case(measured(100, mean=-40.0, deviation=36.0), 65.0, 10, params=ROOT),
    "Trimaran: usage above everything": Case(measured(100, mean=200.0, deviation=36.0), 20.0, 10, params=ROOT),
    "Trimaran: a deviation below nothing": Case(measured(100, mean=40.0, deviation=-36.0), 75.0, 10, params=ROOT),
    "Trimaran: a deviation above everything": Case(measured(100, mean=40.0, deviation=120.0), 25.0, 10, params=ROOT),
    "Trimaran: no sensitivity": Case(measured(100, mean=40.0, deviation=36.0), 75.0, 10, params={"sensitivity": 0}),
    "nothing allocatable": Case(measured(0, mean=40.0, deviation=36.0), NOWHERE, 10),
    # And where it is otherwise.
    "no sensitivity ignores a deviation of everything, too": Case(
        measured(100, mean=40.0, deviation=100.0), 75.0, 10, params={"sensitivity": 0}
    ),
    "no mean": Case(measured(100, deviation=1.0), Unknown("data mean", "is missing")),
    "a deviation that the rule names and that is missing": Case(
        measured(100, mean=1.0), Unknown("data deviation", "is missing")
    ),
    "a stale deviation": Case(measured(100, mean=1.0, deviation=STALE), STALE),
    "no deviation": Case(measured(100, mean=40.0), 75.0, 10, {"name": "cpu", "mean": "mean", "measure": "Used"}),
    "a sensitivity below 1": Case(
        measured(100, mean=40.0, deviation=50.0), 100 - 25 - 12.5, 10, params={"sensitivity": 0.5}
    ),
    "a margin": Case(measured(100, mean=40.0, deviation=20.0), 100 - 25 - 20, 10, params={"margin": 2}),
    "no margin": Case(measured(100, mean=40.0, deviation=20.0), 75.0, 10, params={"margin": 0}),
    "a margin of more than everything": Case(
        measured(100, mean=40.0, deviation=20.0), 25.0, 10, params={"margin": 10}
    ),
    "the margin is a factor of the root": Case(
        measured(100, mean=40.0, deviation=4.0), 100 - 25 - 20, 10, params={"margin": 2, "sensitivity": 2}
    ),
    "pods placed since count": Case(measured(100, mean=40.0, deviation=20.0, unmeasured=20.0), 100 - 35 - 10, 10),
    "not those before the lag": Case(
        measured(100, mean=40.0, deviation=20.0, unmeasured=20.0), 100 - 25 - 10, 10, params={"lag": "0s"}
    ),
    "ratios are of the capacity": Case(
        measured(16, capacity=20, mean=0.4, deviation=0.08), 100 - 25 - 5, resource=RATIO
    ),
    "free cores": Case(
        measured(16, capacity=20, mean=8.0, deviation=1.6), 100 - 25 - 5, resource=CPU | {"measure": "Free"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_load_risk(case: Case) -> None:
    score = a_score(case.resource, **case.params).for_pod(asking(case.request))
    found = score(case.node, NOW)
    assert score(case.node, NOW, Notes()) == found
    assert found == (case.want if isinstance(case.want, Unknown) else pytest.approx(case.want, abs=1e-9))


# Trimaran's table of whole nodes: one core, 1 GiB, measured in percent. It gives 0 where nothing is measured.
NODES: dict[str, tuple[dict[str, float], dict[str, float], float]] = {
    "half used": ({"mean": 0.5, "deviation": 0.0}, {}, 75.0),
    "all used": ({"mean": 1.0, "deviation": 0.0}, {}, 50.0),
    "cpu alone is measured": ({"mean": 0.3, "deviation": 0.16}, {"cpu": 0.2, "memory": 256.0}, 67.0),
    "memory is worse": (
        {"mean": 0.4, "deviation": 0.16, "memMean": 0.5, "memDev": 0.1}, {"cpu": 0.1, "memory": 512.0}, 45.0,
    ),
    "cpu is worse": (
        {"mean": 0.8, "deviation": 0.2, "memMean": 0.25, "memDev": 0.15}, {"cpu": 0.1, "memory": 512.0}, 45.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("values", "request_", "want"), NODES.values(), ids=NODES)
def test_the_worst_known_resource_decides(values: dict[str, float], request_: dict[str, float], want: float) -> None:
    node = Node(allocatable=ONE_CORE, capacity=ONE_CORE, values=values)
    assert a_score(RATIO, MEMORY).for_pod(Pod(request=request_))(node, NOW) == pytest.approx(want, abs=1e-9)


def test_without_any_value_nothing_is_said() -> None:
    found = a_score(RATIO, MEMORY).for_pod(asking(0))(Node(allocatable=ONE_CORE, capacity=ONE_CORE), NOW)
    assert found == Unknown("data mean", "is missing")


@pytest.mark.parametrize(
    "params",
    [{"margin": -1}, {"sensitivity": -1}, {"margin": 10.5}, {"sensitivity": 11}, {"resources": []}, {"forecast": "f"}],
    ids=str,
)
def test_what_is_written_wrongly_is_refused(params: Given) -> None:
    with pytest.raises(ValidationError):
        LoadRisk.model_validate({"resources": [CPU]} | params)


def test_a_trace_shows_every_number() -> None:
    notes = Notes()
    node = measured(16, capacity=20, mean=0.4, deviation=0.08, unmeasured=1.0)
    a_score(RATIO, sensitivity=2).for_pod(asking(3))(node, NOW, notes)
    assert notes.items["cpu"] == pytest.approx(
        {
            "allocatable": 16.0, "capacity": 20.0, "mean": 0.4, "deviation": 0.08, "used": 8.0, "unmeasured": 1.0,
            "request": 3.0, "mu": 0.75, "sigma": 0.1, "spread": 0.1**0.5, "points": 100 - 37.5 - 50 * 0.1**0.5,
        }
    )  # fmt: skip


def test_reads_name_what_is_used_and_no_more() -> None:
    assert a_score(CPU, MEMORY, lag="2m").reads == Reads(
        request=frozenset({"cpu", "memory"}),
        allocatable=frozenset({"cpu", "memory"}),
        capacity=frozenset({"memory"}),
        data=frozenset({"mean", "deviation", "memMean", "memDev"}),
        unmeasured=frozenset({("mean", 120), ("memMean", 120)}),
    )
    assert a_score().reads.unmeasured == {("mean", 60)}


_amounts = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 16.0, 1e18]) | st.floats(0, 1e18)
_values = _amounts | _amounts.map(lambda amount: -amount) | st.floats(0, 1)
_factors = st.sampled_from([0.0, 5e-324, 1e-9, 1.0, 10.0]) | st.floats(0, 10)
_measures = st.sampled_from(["Used", "Free", "UsedRatio", "FreeRatio"])


@settings(derandomize=True, database=None, max_examples=MANY)
@given(_amounts, _amounts, _amounts, _values, _values, _amounts, _factors, _factors, _measures)
def test_no_number_is_too_strange(
    allocatable: float, capacity: float, unmeasured: float, mean: float, deviation: float, request: float,
    margin: float, sensitivity: float, measure: str,
) -> None:  # fmt: skip
    node = measured(allocatable, capacity=capacity, unmeasured=unmeasured, mean=mean, deviation=deviation)
    score = a_score(CPU | {"measure": measure}, margin=margin, sensitivity=sensitivity)
    found = score.for_pod(asking(request))(node, NOW)
    if allocatable > 0 and (capacity > 0 or "Ratio" not in measure):
        assert 0.0 <= found <= 100.0
    else:
        assert found == NOWHERE
