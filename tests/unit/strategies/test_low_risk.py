"""lowRisk, as tables: what pods request and may use, what is measured, and what the risk is."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin import low_risk
from fairlead.strategies.builtin.low_risk import LowRisk
from fairlead.strategies.contract import Reads, Unknown
from support.examples import MANY
from support.strategies.facts import Node, Notes, Pod
from support.strategies.load import MEASURED_AT, NOWHERE, SECOND, STALE, asking, measured

NOW = MEASURED_AT + SECOND
CPU = {"name": "cpu", "mean": "mean", "deviation": "deviation", "measure": "UsedRatio"}
NO_DEVIATION = {"name": "cpu", "mean": "mean"}
MEMORY = {"name": "memory", "mean": "memMean", "measure": "Used"}
BOTH = {"cpu": 10.0, "memory": 10.0}
Given = dict[str, Any]


def a_score(*resources: Given, **params: Any) -> Any:
    return low_risk.compile_low_risk(LowRisk.model_validate({"resources": resources or (CPU,), **params}))


def numbers(score: Any, node: Node, pod: Pod) -> dict[str, Any]:
    notes = Notes()
    score.for_pod(pod)(node, NOW, notes)
    return notes.items["cpu"]


@dataclass(frozen=True)
class Case:
    node: Node
    pod: Pod
    want: dict[str, float]
    score: float
    resource: Given = field(default_factory=lambda: NO_DEVIATION)
    params: Given = field(default_factory=dict)


ONE = asking(1.0)
CASES = {
    "the example": Case(
        measured(10, requested=4, limits=8, mean=0.35, deviation=0.05),
        asking(1.0, 4.0),
        {"riskLimit": 2 / 7, "mu": 0.35, "riskLoad": 0.318732, "risk": 0.302221},
        69.7779,
        CPU,
    ),
    # What Trimaran's LowRiskOverCommitment says of the same.
    "Trimaran: cpu, less limited than there is": Case(
        measured(4, requested=1, limits=2, mean=0.8), ONE, {"riskLimit": 0.0, "riskLoad": 1.0, "risk": 0.5}, 50.0
    ),
    "Trimaran: memory, of which no pod requests any": Case(
        measured(4096, mean=0.25), asking(2048, 6144), {"riskLimit": 0.5, "riskLoad": 0.0, "risk": 0.25}, 75.0
    ),
    "Trimaran: cpu, all requested and more limited": Case(
        measured(4, requested=3, limits=4, mean=0.8), ONE, {"riskLimit": 1.0, "riskLoad": 1.0, "risk": 1.0}, 0.0
    ),
    "Trimaran: memory, more limited than there is": Case(
        measured(4096, requested=512, limits=6144, mean=0.25), asking(512, 1024),
        {"riskLimit": 0.5, "riskLoad": 1.0, "risk": 0.75}, 25.0,
    ),
    # A hot node whose pods have no limits, or have limits and something else uses more.
    "a hot node with pods without limits": Case(
        measured(10, requested=2, unlimited=1, mean=0.9, deviation=0.02), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "whose load varies less": Case(
        measured(10, requested=2, unlimited=1, mean=0.9, deviation=0.01), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "and still less": Case(
        measured(10, requested=2, unlimited=1, mean=0.9, deviation=0.005), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "and not at all": Case(
        measured(10, requested=2, unlimited=1, mean=0.9, deviation=0.0), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "a hot node with pods that could not use as much": Case(
        measured(10, requested=2, limits=3, mean=0.9, deviation=0.02), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "whose load varies a lot": Case(
        measured(10, requested=2, limits=2, mean=0.9, deviation=0.05), ONE, {"riskLoad": 0.0}, 100.0, CPU
    ),
    "whose load varies a lot, with a pod without a limit": Case(
        measured(10, requested=2, limits=2, unlimited=1, mean=0.9, deviation=0.05), ONE,
        {"riskLoad": 0.999952}, 50.0024, CPU,
    ),
    # Limits that bound the load.
    "a node full of limits that bound the load to what is requested": Case(
        measured(10, requested=5, limits=5, mean=0.4, deviation=0.05), ONE, {"riskLoad": 0.0}, 100.0, CPU
    ),
    "the same without a limit": Case(
        measured(10, requested=5, limits=5, unlimited=1, mean=0.4, deviation=0.05), ONE,
        {"riskLoad": 0.190419}, 90.479, CPU,
    ),
    "limits of all there is bound nothing": Case(
        measured(10, requested=5, limits=10, mean=0.4, deviation=0.05), ONE,
        {"riskLimit": 1 / 5, "riskLoad": 0.190419}, 80.479, CPU,
    ),
    "a load at the limits is bounded": Case(
        measured(10, requested=5, limits=5, mean=0.5, deviation=0.05), ONE, {"riskLoad": 0.0}, 100.0, CPU
    ),
    "limits below what is requested bound nothing": Case(
        measured(10, requested=5, limits=3, mean=0.28, deviation=0.05), ONE, {"riskLoad": 0.036389}, 98.18055, CPU
    ),
    # No pods.
    "a node without pods, whatever is measured": Case(
        measured(10, mean=0.9, deviation=0.05), ONE, {"riskLimit": 0.0, "riskLoad": 0.0}, 100.0, CPU
    ),
    "a node with pods that say nothing": Case(
        measured(10, unlimited=3, mean=0.2, deviation=0.05), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "an idle node with pods that say nothing": Case(
        measured(10, unlimited=3, mean=0.0, deviation=0.05), ONE, {"riskLoad": 0.0}, 100.0, CPU
    ),
    # Deviations.
    "a deviation is that of the smoothed mean": Case(
        measured(10, requested=5, unlimited=1, mean=0.4, deviation=0.05), ONE, {"sigma": 0.05, "riskLoad": 0.024725},
        98.7637, CPU, {"windows": 1},
    ),
    "a deviation that cannot be": Case(
        measured(10, requested=5, unlimited=1, mean=0.4, deviation=0.9), ONE, {"riskLoad": 0.399996}, 80.0002, CPU
    ),
    "a deviation too small to matter": Case(
        measured(10, requested=4, unlimited=1, mean=0.4, deviation=0.0002), ONE, {"riskLoad": 0.0}, 100.0, CPU
    ),
    "a deviation that only matters for the windows": Case(
        measured(10, requested=4, unlimited=1, mean=0.4, deviation=0.0003), ONE, {"riskLoad": 0.499926}, 75.0037, CPU
    ),
    "a mean at what is requested, though floats are a little above": Case(
        measured(1, requested=0.3, unlimited=1, mean=0.1 + 0.2), asking(0.1), {"riskLoad": 0.0}, 100.0
    ),
    "a mean of everything": Case(
        measured(10, requested=9, unlimited=1, mean=1.0, deviation=0.3), ONE, {"riskLoad": 1.0}, 50.0, CPU
    ),
    "everything is requested": Case(
        measured(10, requested=10, unlimited=1, mean=1.0, deviation=0.3), ONE, {"riskLoad": 0.0}, 50.0, CPU
    ),
    # Limits.
    "limits of all there is": Case(
        measured(10, requested=2, limits=5, mean=0.0), asking(1.0, 5.0), {"riskLimit": 0.0}, 100.0
    ),
    "limits of all there is, though floats are a little above": Case(
        measured(0.3, requested=0.1, limits=0.1, mean=0.0), asking(0.2), {"riskLimit": 0.0}, 100.0
    ),
    "a limit is at least the request": Case(
        measured(10, requested=8, limits=8, mean=0.0), asking(4.0, 1.0), {"limit": 4.0, "riskLimit": 1.0}, 50.0
    ),
    "more requested than there is": Case(
        measured(10, requested=20, limits=20, mean=0.0), ONE, {"riskLimit": 1.0, "riskLoad": 0.0}, 50.0
    ),
    # Weights and units.
    "limits alone": Case(
        measured(10, requested=4, limits=8, mean=0.9), asking(1.0, 4.0), {"risk": 2 / 7}, 500 / 7,
        NO_DEVIATION | {"limitWeightPercent": 100},
    ),
    "load alone": Case(
        measured(10, requested=4, limits=8, mean=0.9), asking(1.0, 4.0), {"risk": 1.0}, 0.0,
        NO_DEVIATION | {"limitWeightPercent": 0},
    ),
    "a quarter of limits": Case(
        measured(10, requested=4, limits=8, mean=0.9), asking(1.0, 4.0), {"risk": 0.75 + 0.5 / 7}, 25 - 50 / 7,
        NO_DEVIATION | {"limitWeightPercent": 25},
    ),
    "a ratio is of the capacity, and the load of what is allocatable": Case(
        measured(8, capacity=10, requested=4, limits=6, mean=0.4), ONE, {"used": 4.0, "mu": 0.5, "riskLoad": 0.0}, 100.0
    ),
    "free cores": Case(
        measured(8, capacity=10, requested=4, limits=6, mean=3.9), ONE, {"used": 4.1, "riskLoad": 1.0}, 50.0,
        NO_DEVIATION | {"measure": "Free"},
    ),
    "pods placed since are in the limits and not in the load": Case(
        measured(10, requested=4, limits=8, unmeasured=3.0, mean=0.3), asking(1.0, 4.0),
        {"mu": 0.3, "riskLimit": 2 / 7, "riskLoad": 0.0}, 100 - 100 / 7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_low_risk(case: Case) -> None:
    score = a_score(case.resource, **case.params)
    found = numbers(score, case.node, case.pod)
    assert {name: found[name] for name in case.want} == pytest.approx(case.want, abs=1e-5)
    assert score.for_pod(case.pod)(case.node, NOW) == pytest.approx(case.score, abs=1e-3)


def test_a_load_that_is_bounded_to_what_is_requested_is_no_risk_below_nothing() -> None:
    node = measured(10, requested=3 * (1 + 5e-10), limits=3, mean=0.28, deviation=0.05)
    assert numbers(a_score(), node, ONE)["riskLoad"] == 0.0


UNKNOWN: dict[str, tuple[Node, Unknown]] = {
    "no mean": (measured(10, deviation=0.1), Unknown("data mean", "is missing")),
    "a stale mean": (measured(10, mean=STALE, deviation=0.1), STALE),
    "a deviation that the rule names and that is missing": (
        measured(10, mean=0.1), Unknown("data deviation", "is missing"),
    ),
    "a stale deviation": (measured(10, mean=0.1, deviation=STALE), STALE),
    "nothing allocatable": (measured(0, mean=0.1, deviation=0.1), NOWHERE),
    "no capacity": (measured(10, capacity=0, mean=0.1, deviation=0.1), NOWHERE),
}  # fmt: skip


@pytest.mark.parametrize(("node", "want"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_load_that_is_not_known_is_no_low_risk(node: Node, want: Unknown) -> None:
    score = a_score().for_pod(ONE)
    assert score(node, NOW) == score(node, NOW, Notes()) == want


def test_the_worst_known_resource_decides() -> None:
    pod = Pod(request={"cpu": 1.0}, limit={"cpu": 2.0})
    score = a_score(NO_DEVIATION, MEMORY).for_pod(pod)
    rest: Given = {"allocatable": BOTH, "capacity": BOTH, "unlimited": {"cpu": 1, "memory": 1}}
    assert score(Node(**rest, values={"mean": 0.0, "memMean": 0.1}), NOW) == 50.0
    assert score(Node(**rest, values={"mean": 0.1, "memMean": 0.0}), NOW) == 50.0
    assert score(Node(**rest, values={"mean": 0.1}), NOW) == 50.0
    assert score(Node(**rest, values={"mean": 0.0, "memMean": 0.0}), NOW) == 100.0


@pytest.mark.parametrize("pod", [Pod(), asking(0.0), asking(0.0, 0.0), Pod(request={"gpu": 1.0}, limit={"gpu": 1.0})])
def test_a_pod_that_asks_for_nothing_gets_no_points_anywhere(pod: Pod) -> None:
    score = a_score().for_pod(pod)
    for node in (measured(10, mean=0.1, deviation=0.0), measured(10, mean=0.9, unlimited=1), Node()):
        notes = Notes()
        assert score(node, NOW) == score(node, NOW, notes) == 0.0
        assert notes.values == {"request": 0.0, "limit": 0.0}


def test_a_pod_that_only_has_a_limit_gets_points() -> None:
    assert a_score().for_pod(asking(0.0, 1.0))(measured(10, mean=0.1, deviation=0.0), NOW) == 100.0


def test_a_trace_shows_every_number() -> None:
    node = measured(10, capacity=20, requested=4, limits=8, unlimited=0, mean=0.175, deviation=0.025)
    assert numbers(a_score(), node, asking(1.0, 4.0)) == pytest.approx(
        {
            "allocatable": 10.0, "capacity": 20.0, "mean": 0.175, "deviation": 0.025, "used": 3.5,
            "mu": 0.35, "sigma": 0.05, "request": 1.0, "limit": 4.0, "requested": 4.0, "limits": 8.0, "unlimited": 0,
            "alpha": 6.02, "beta": 11.18, "riskLimit": 2 / 7, "riskLoad": 0.318732, "risk": 0.302221,
        },
        abs=1e-5,
    )  # fmt: skip


def test_reads_name_what_is_used_and_no_more() -> None:
    both = frozenset({"cpu", "memory"})
    assert a_score(CPU, MEMORY).reads == Reads(
        request=both, limit=both, allocatable=both, requested=both, limits=both,
        capacity=frozenset({"cpu"}), data=frozenset({"mean", "deviation", "memMean"}),
    )  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [
        {"windows": 0}, {"windows": 61}, {"windows": 2.5}, {"resources": []}, {"lag": "60s"},
        {"resources": [CPU | {"limitWeightPercent": 101}]}, {"resources": [CPU | {"forecast": "f"}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_written_wrongly_is_refused(params: Given) -> None:
    with pytest.raises(ValidationError):
        LowRisk.model_validate({"resources": [CPU]} | params)


_amounts = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 16.0, 1e18]) | st.floats(0, 1e18)
_values = _amounts | _amounts.map(lambda amount: -amount) | st.floats(0, 1)
_weights = st.integers(0, 100)
_nodes = st.builds(
    measured, _amounts, capacity=_amounts, requested=_amounts, limits=_amounts, unlimited=st.integers(0, 2),
    mean=_values, deviation=_values,
)  # fmt: skip


@settings(derandomize=True, database=None, max_examples=MANY)
@given(
    _nodes,
    _amounts,
    _amounts,
    _weights,
    st.integers(1, 60),
    st.sampled_from(["Used", "Free", "UsedRatio", "FreeRatio"]),
)
def test_no_number_is_too_strange(
    node: Node, request: float, limit: float, weight: int, windows: int, measure: str
) -> None:
    score = a_score(CPU | {"limitWeightPercent": weight, "measure": measure}, windows=windows)
    found = score.for_pod(asking(request, limit))(node, NOW)
    has_cpu = node.allocatable["cpu"] > 0 and (node.capacity["cpu"] > 0 or "Ratio" not in measure)
    if not (request or limit):
        assert found == 0.0
    elif has_cpu:
        assert 0.0 <= found <= 100.0
    else:
        assert found == NOWHERE
