"""safe, as tables: what is measured, what the pod requests, what the risk is, and what the rule makes of it."""

from dataclasses import dataclass, field
from math import sqrt

import pytest
from pydantic import ValidationError

from fairlead.strategies.builtin.safe import SafeFilter, SafeScore
from fairlead.strategies.contract import PASS, Pass, Reads, Reject, Unknown
from support.strategies.facts import Node, Notes, OnNode, Pod
from support.strategies.load import MEASURED_AT, MISSING, NOWHERE, SECOND, STALE, asking, measured, placed
from support.strategies.safe import CPU, NO_DEVIATION, NOW, REFUSED, Given, a_filter, a_score, numbers
from support.strategies.watched import WatchedNode

FORECAST = NO_DEVIATION | {"forecast": "forecast"}
SPEC = {"limitPercent": 85, "tolerancePercent": 25}
Values = dict[str, float | Unknown]


@dataclass(frozen=True)
class Case:
    node: Node
    want: dict[str, float]
    verdict: Pass | Reject = PASS
    overload: float | None = None
    balance: float | None = None
    request: float = 0.0
    resource: Given = field(default_factory=lambda: CPU)
    params: Given = field(default_factory=dict)


CASES = {
    "the example": Case(
        measured(16, mean=9.5, deviation=2.0),
        {"mu": 0.71875, "sigma": 0.125, "alpha": 8.5801, "beta": 3.3574, "risk": 0.14952},
        PASS,
        22.663,
        46.385,
        request=2,
        params=SPEC,
    ),
    "the example with a core placed since": Case(
        measured(16, mean=9.5, deviation=2.0, unmeasured=1.0),
        {"mu": 0.78125, "sigma": 0.125, "risk": 0.33996, "unmeasured": 1.0},
        REFUSED,
        0.0,
        43.26,
        request=2,
        params=SPEC,
    ),
    # A deviation of another time than the mean.
    "an idle node with a deviation that cannot be": Case(
        measured(16, mean=0.05, deviation=1.28), {"mu": 0.00625, "sigma": 0.08, "risk": 0.00611}, PASS, request=0.05
    ),
    "an idle node with one that just can be": Case(
        measured(16, mean=0.05, deviation=1.2), {"sigma": 0.075, "risk": 0.00497}, PASS, request=0.05
    ),
    "nothing is used and nothing requested": Case(measured(16, mean=0.0, deviation=1.28), {"risk": 0.0}, PASS, 100.0),
    "a full node": Case(measured(16, mean=16.0, deviation=1.28), {"mu": 1.0, "risk": 1.0}, REFUSED, 0.0),
    "a node that uses more than it has": Case(
        measured(16, mean=30.0, deviation=4.0), {"mu": 1.0, "risk": 1.0}, REFUSED
    ),
    "a full node where all is allowed": Case(
        measured(16, mean=16.0, deviation=1.28), {"risk": 0.0}, PASS, 100.0, params={"limitPercent": 100}
    ),
    "any deviation where all is allowed": Case(
        measured(16, mean=15.0, deviation=8.0), {"risk": 0.0}, PASS, 100.0, params={"limitPercent": 100}
    ),
    "a deviation of more than the node": Case(
        measured(16, mean=8.0, deviation=40.0), {"sigma": 1.0, "risk": 0.4945}, REFUSED, 0.0, 25.0
    ),
    "a deviation below nothing": Case(
        measured(16, mean=8.0, deviation=-3.0), {"sigma": 0.0, "risk": 0.0}, PASS, 100.0, 75.0
    ),
    # Next to no deviation.
    "a deviation too small to matter, below the limit": Case(
        measured(10, mean=8.99, deviation=0.0049), {"mu": 0.899, "sigma": 0.00049, "risk": 0.0}, PASS, 100.0, 55.05
    ),
    "a deviation too small to matter, above the limit": Case(
        measured(10, mean=9.01, deviation=0.0049), {"risk": 1.0}, REFUSED, 0.0
    ),
    "the least deviation that matters": Case(
        measured(10, mean=8.99, deviation=0.005), {"sigma": 0.0005, "risk": 0.022512}, PASS
    ),
    "without a deviation the mean is compared": Case(
        measured(10, mean=8.9), {"sigma": 0.0, "risk": 0.0}, PASS, 100.0, 55.5, resource=NO_DEVIATION
    ),
    "and it is too much above the limit": Case(
        measured(10, mean=9.1), {"risk": 1.0}, REFUSED, 0.0, 54.5, resource=NO_DEVIATION
    ),
    "a sum of floats above the limit that should be at it": Case(
        measured(1, mean=0.1), {"mu": 0.3, "risk": 0.0}, PASS, 100.0, 85.0, 0.2, NO_DEVIATION, {"limitPercent": 30}
    ),
    "what is more than the limit by more than a rounding error": Case(
        measured(1, mean=0.1), {"risk": 1.0}, REFUSED, 0.0, None, 0.20001, NO_DEVIATION, {"limitPercent": 30}
    ),
    # The unit of what is measured.
    "used cores": Case(
        measured(16, capacity=20, mean=10.0, deviation=2.0), {"used": 10.0, "mu": 0.625, "sigma": 0.125}
    ),
    "free cores are missing from what is allocatable": Case(
        measured(16, capacity=20, mean=6.0, deviation=2.0), {"used": 10.0, "mu": 0.625, "sigma": 0.125},
        resource=CPU | {"measure": "Free"},
    ),
    "a ratio is of the capacity": Case(
        measured(16, capacity=20, mean=0.5, deviation=0.1), {"used": 10.0, "mu": 0.625, "sigma": 0.125},
        resource=CPU | {"measure": "UsedRatio"},
    ),
    "a free ratio is of the capacity": Case(
        measured(16, capacity=20, mean=0.5, deviation=0.1), {"used": 10.0, "mu": 0.625, "sigma": 0.125},
        resource=CPU | {"measure": "FreeRatio"},
    ),
    "more free cores than there are are no usage": Case(
        measured(16, mean=20.0, deviation=2.0), {"used": 0.0, "mu": 0.0, "risk": 0.0}, PASS, 100.0,
        resource=CPU | {"measure": "Free"},
    ),
    # Forecasts.
    "a forecast is mixed in": Case(
        measured(16, mean=4.0, forecast=9.0), {"used": 5.0, "mu": 0.3125}, resource=FORECAST
    ),
    "with its weight": Case(
        measured(16, mean=4.0, forecast=9.0), {"used": 6.0}, resource=FORECAST, params={"forecastPercent": 40}
    ),
    "or in place of the mean": Case(
        measured(16, mean=4.0, forecast=9.0), {"used": 9.0}, resource=FORECAST, params={"forecastPercent": 100}
    ),
    "or not at all": Case(
        measured(16, mean=4.0, forecast=9.0), {"used": 4.0}, resource=FORECAST, params={"forecastPercent": 0}
    ),
    "a forecast of what is free is free": Case(
        measured(16, mean=12.0, forecast=7.0), {"used": 5.0}, resource=FORECAST | {"measure": "Free"}
    ),
    "a forecast of a free ratio": Case(
        measured(16, capacity=20, mean=0.8, forecast=0.55), {"used": 5.0}, resource=FORECAST | {"measure": "FreeRatio"}
    ),
    "a forecast that is not there is left out": Case(measured(16, mean=4.0), {"used": 4.0}, resource=FORECAST),
    "a forecast that is stale is left out": Case(
        measured(16, mean=4.0, forecast=STALE), {"used": 4.0}, resource=FORECAST
    ),
    "a forecast below nothing lowers the mean": Case(
        measured(16, mean=4.0, forecast=-6.0), {"used": 2.0}, resource=FORECAST
    ),
    "but not below nothing": Case(
        measured(16, mean=1.0, forecast=-6.0), {"used": 0.0, "mu": 0.125}, request=2, resource=FORECAST
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_safe(case: Case) -> None:
    pod = asking(case.request)
    rule = a_filter(case.resource, **case.params)
    found = numbers(rule, case.node, pod)
    assert {name: found[name] for name in case.want} == pytest.approx(case.want, rel=1e-4, abs=1e-5)
    assert rule.for_pod(pod)(case.node, NOW) == case.verdict
    for objective, want in (("Overload", case.overload), ("Balance", case.balance)):
        score = a_score(case.resource, **case.params, objective=objective).for_pod(pod)
        if want is not None:
            assert score(case.node, NOW) == pytest.approx(want, abs=1e-3), objective


@pytest.mark.parametrize("deviation", [0.1, 0.99, 1.28, 1.6, 16.0])
@pytest.mark.parametrize("used", [0.016, 0.05, 0.1, 0.1616, 0.5])
def test_an_idle_node_is_not_refused_for_its_deviation(used: float, deviation: float) -> None:
    assert a_filter().for_pod(asking(0.05))(measured(16, mean=used, deviation=deviation), NOW) is PASS


def test_a_small_risk_is_no_rounding_error() -> None:
    found = numbers(a_filter(), measured(1.0, mean=0.3, deviation=0.05), asking(0))["risk"]
    assert found == pytest.approx(2.00232287245016e-39, rel=1e-9, abs=0.0)


def test_a_tolerance_of_everything_refuses_nothing() -> None:
    rule = a_filter(tolerancePercent=100).for_pod(asking(8))
    assert rule(measured(16, mean=16.0, deviation=0.0), NOW) is PASS


def test_a_risk_at_the_tolerance_is_tolerated() -> None:
    """Two equal peaks, at 0 and at 1: the risk is one half."""
    node = measured(16, mean=8.0, deviation=8.0)
    assert numbers(a_filter(limitPercent=50), node, asking(0))["risk"] == pytest.approx(0.5, abs=1e-12)
    assert a_filter(limitPercent=50, tolerancePercent=50).for_pod(asking(0))(node, NOW) is PASS
    assert a_filter(limitPercent=50, tolerancePercent=49).for_pod(asking(0))(node, NOW) == REFUSED


# Pods placed around the moment of the measurement, by how many seconds before it.
LAGS = {
    "60s unless the rule says otherwise": ({}, {59: 1.0, 60: 0.0, 61: 0.0}),
    "no lag": ({"lag": "0s"}, {-1: 1.0, 0: 0.0, 1: 0.0}),
    "half a window of an hour": ({"lag": "30m"}, {0: 1.0, 1799: 1.0, 1800: 0.0}),
}


@pytest.mark.parametrize(("params", "want"), LAGS.values(), ids=LAGS)
def test_pods_that_the_mean_does_not_contain_count_with_their_requests(params: Given, want: dict[int, float]) -> None:
    rule = a_filter(**params)
    for before_s, unmeasured in want.items():
        node = Node(
            allocatable={"cpu": 16.0},
            values={"mean": 8.0, "deviation": 0.0},
            measured_at={"mean": MEASURED_AT, "deviation": MEASURED_AT + 7200 * SECOND},
            pods=[placed(1.0, before_s), placed(4.0, 90_000)],
        )
        found = numbers(rule, node, asking(2))
        assert (found["unmeasured"], found["mu"]) == (unmeasured, (8.0 + unmeasured + 2.0) / 16.0), before_s


def test_a_value_without_a_time_lacks_no_pods() -> None:
    node = Node(allocatable={"cpu": 16.0}, values={"mean": 8.0, "deviation": 0.0}, pods=[placed(8.0, -60)])
    assert numbers(a_filter(), node, asking(2))["unmeasured"] == 0.0


def test_what_other_resources_are_requested_does_not_count() -> None:
    pod = Pod(request={"memory": 16.0})
    node = Node(
        allocatable={"cpu": 16.0},
        values={"mean": 8.0, "deviation": 0.0},
        measured_at={"mean": MEASURED_AT},
        pods=[OnNode(placed_at=MEASURED_AT, request={"memory": 16.0})],
    )
    assert numbers(a_filter(), node, pod)["mu"] == 0.5


MEMORY = {"name": "memory", "mean": "free", "measure": "FreeRatio"}
TWO = {"cpu": 10.0, "memory": 100.0}
LOW: Values = {"mean": 2.0, "deviation": 1.0}
HIGH: Values = {"mean": 9.9, "deviation": 1.0}
MEAN: Values = {"mean": 2.0}
ROOM: Values = {"free": 0.5}
FULL: Values = {"free": 0.01}
STALE_MEMORY: Values = {"free": Unknown("data free", "is stale")}
SEVERAL: dict[str, tuple[Node, Pass | Reject | Unknown]] = {
    "both are low": (Node(allocatable=TWO, capacity=TWO, values=LOW | ROOM), PASS),
    "the first is high": (Node(allocatable=TWO, capacity=TWO, values=HIGH | ROOM), REFUSED),
    "the second is high": (
        Node(allocatable=TWO, capacity=TWO, values=LOW | FULL), Reject("overload risk on memory"),
    ),
    "the first of two that are high is said": (Node(allocatable=TWO, capacity=TWO, values=HIGH | FULL), REFUSED),
    "the one that is known passes": (Node(allocatable=TWO, capacity=TWO, values=LOW), PASS),
    "the other one that is known passes": (Node(allocatable=TWO, capacity=TWO, values=ROOM), PASS),
    "the one that is known is high": (
        Node(allocatable=TWO, capacity=TWO, values=FULL), Reject("overload risk on memory"),
    ),
    "none is known: the first that is missing": (
        Node(allocatable=TWO, capacity=TWO, values=STALE_MEMORY), Unknown("data mean", "is missing"),
    ),
    "a deviation that the rule names and that is missing": (
        Node(allocatable=TWO, capacity=TWO, values=MEAN | STALE_MEMORY),
        Unknown("data deviation", "is missing"),
    ),
    "a deviation that is stale": (
        Node(allocatable=TWO, capacity=TWO, values=LOW | {"deviation": STALE} | STALE_MEMORY), STALE,
    ),
    "a resource that the node does not have is left out": (
        Node(allocatable={"cpu": 10.0}, capacity=TWO, values=LOW | FULL), PASS,
    ),
    "or has none of": (Node(allocatable=TWO | {"memory": 0.0}, capacity=TWO, values=LOW | FULL), PASS),
    "or does not say the capacity of, where ratios are measured": (
        Node(allocatable=TWO, capacity={"cpu": 10.0}, values=LOW | FULL), PASS,
    ),
    "what is missing is said rather than what the node does not have": (
        Node(allocatable={"memory": 100.0}, capacity=TWO, values=STALE_MEMORY), Unknown("data free", "is stale"),
    ),
    "in any order": (Node(allocatable={"cpu": 10.0}, capacity=TWO, values=FULL), Unknown("data mean", "is missing")),
    "the node has none of both": (Node(allocatable={"gpu": 1.0}, capacity=TWO, values=LOW | ROOM), NOWHERE),
    "a node without anything": (Node(), NOWHERE),
}  # fmt: skip


@pytest.mark.parametrize(("node", "want"), SEVERAL.values(), ids=SEVERAL)
def test_the_worst_known_resource_decides(node: Node, want: Pass | Reject | Unknown) -> None:
    rule = a_filter(CPU, MEMORY)
    assert rule.for_pod(asking(0))(node, NOW) == want
    assert rule.for_pod(asking(0))(node, NOW, Notes()) == want
    for objective in ("Overload", "Balance"):
        score = a_score(CPU, MEMORY, objective=objective).for_pod(asking(0))
        found = score(node, NOW)
        assert score(node, NOW, Notes()) == found
        if isinstance(want, Unknown):
            assert found == want
        elif objective == "Overload":
            assert found == pytest.approx(0.0 if isinstance(want, Reject) else 100.0, abs=0.1)
        else:
            assert isinstance(found, float)


@pytest.mark.parametrize(("objective", "want"), [("Overload", 0.0), ("Balance", 50.0 * (1 - 0.99) + 50.0)])
def test_a_score_is_that_of_the_worst_known_resource(objective: str, want: float) -> None:
    score = a_score(NO_DEVIATION, MEMORY, objective=objective).for_pod(asking(0))
    assert score(Node(allocatable=TWO, capacity=TWO, values={"mean": 1.0} | FULL), NOW) == pytest.approx(want)
    assert score(Node(allocatable=TWO, capacity=TWO, values={"mean": 9.9} | ROOM), NOW) == pytest.approx(want)
    assert score(Node(allocatable=TWO, capacity=TWO, values={"mean": 9.9}), NOW) == pytest.approx(want)


def test_a_verdict_is_made_once() -> None:
    rule = a_filter().for_pod(asking(1))
    full = measured(16, mean=16.0, deviation=0.0)
    assert rule(full, NOW) is rule(full, NOW)
    missing = measured(16, mean=MISSING, deviation=1.0)
    assert rule(missing, NOW) is MISSING


def test_a_trace_shows_every_number() -> None:
    node = measured(16, capacity=20, mean=0.4, deviation=0.1, forecast=0.6, unmeasured=1.0)
    resource = CPU | {"measure": "UsedRatio", "forecast": "forecast"}
    common = {
        "allocatable": 16.0, "capacity": 20.0, "mean": 0.4, "deviation": 0.1, "forecast": 0.6,
        "used": 8.8, "unmeasured": 1.0, "request": 2.0, "mu": 0.7375, "sigma": 0.125,
    }  # fmt: skip
    fit = {"alpha": 8.400125, "beta": 2.989875, "limit": 0.85, "risk": 0.197814, "tolerance": 0.25}
    rules = {
        "filter": (a_filter(resource, **SPEC), fit),
        "overload": (a_score(resource, **SPEC), fit | {"phi": 0.791256, "points": 100 - 100 * sqrt(0.791256)}),
        "balance": (a_score(resource, objective="Balance"), {"spread": 0.353553, "points": 45.44733}),
    }
    for name, (rule, more) in rules.items():
        assert numbers(rule, node, asking(2)) == pytest.approx(common | more, rel=1e-4), name


def test_a_trace_shows_what_is_missing() -> None:
    notes = Notes()
    node = Node(allocatable={"cpu": 4.0}, values={"mean": 2.0, "deviation": STALE})
    a_filter(CPU | {"forecast": "forecast"}, MEMORY).for_pod(asking(1))(node, NOW, notes)
    assert notes.items == {
        "cpu": {
            "allocatable": 4.0, "mean": 2.0, "deviation": "data x is stale", "forecast": "data forecast is missing",
            "tolerance": 0.3,
        },
        "memory": {
            "allocatable": 0.0, "capacity": 0.0, "mean": "data free is missing", "deviation": 0.0, "tolerance": 0.3,
        },
    }  # fmt: skip


def test_reads_name_what_is_used_and_no_more() -> None:
    for rule in (a_filter, a_score):
        assert rule(CPU | {"forecast": "forecast"}, MEMORY, lag="5m").reads == Reads(
            request=frozenset({"cpu", "memory"}),
            allocatable=frozenset({"cpu", "memory"}),
            capacity=frozenset({"memory"}),
            data=frozenset({"mean", "deviation", "forecast", "free"}),
            unmeasured=frozenset({("mean", 300), ("free", 300)}),
        )
        without = rule(FORECAST, forecastPercent=0)
        assert without.reads == Reads(
            request=frozenset({"cpu"}),
            allocatable=frozenset({"cpu"}),
            data=frozenset({"mean"}),
            unmeasured=frozenset({("mean", 60)}),
        )
        assert without.for_pod(asking(1))(WatchedNode(measured(16, mean=1.0, forecast=2.0), without.reads), NOW)


def test_reasons_name_the_resources_and_no_eviction_helps() -> None:
    rule = a_filter(MEMORY, CPU)
    assert rule.reasons == ("overload risk on memory", "overload risk on cpu")
    assert not rule.resolvable, "the load does not fall in the moment of an eviction"


_BAD: dict[str, tuple[type[SafeFilter], Given]] = {
    "no resource": (SafeFilter, {"resources": []}),
    "five resources": (SafeFilter, {"resources": [CPU | {"name": f"r{at}"} for at in range(5)]}),
    "a resource twice": (SafeFilter, {"resources": [CPU, NO_DEVIATION]}),
    "an objective of a filter": (SafeFilter, {"resources": [CPU], "objective": "Overload"}),
    "another objective": (SafeScore, {"resources": [CPU], "objective": "Spread"}),
    "another measure": (SafeScore, {"resources": [CPU | {"measure": "Ratio"}]}),
    "no mean": (SafeScore, {"resources": [{"name": "cpu", "deviation": "deviation"}]}),
    "a share for percent": (SafeScore, {"resources": [CPU], "limitPercent": 0.9}),
    "a lag of more than a day": (SafeScore, {"resources": [CPU], "lag": "25h"}),
}


@pytest.mark.parametrize(("model", "params"), _BAD.values(), ids=_BAD)
def test_what_is_written_wrongly_is_refused(model: type[SafeFilter], params: Given) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(params)
