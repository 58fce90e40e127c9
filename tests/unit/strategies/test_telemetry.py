"""telemetry, as tables: the rules, what was measured, and what comes of it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.policy.evaluate.scoring import normalize_scores
from fairlead.strategies.builtin.telemetry import STRATEGY, TelemetryFilter, TelemetryScore
from fairlead.strategies.contract import PASS, Filter, Normalize, Reads, Reject, Score, Unknown, Verdict
from support.policy import building
from support.strategies.facts import Node, Notes, Pod
from support.strategies.watched import WatchedNode
from support.suites import running

Measured = Mapping[str, float | Unknown]

NO_HEAT = Unknown("data heat", "is missing")
STALE_HEAT = Unknown("data heat", "is stale")
NO_POWER = Unknown("data power", "is missing")
TOO_HOT = Reject("heat is too high")
TOO_WEAK = Reject("power is too low")
FORBIDDEN = Reject("heat has a forbidden value")

HOT = {"value": "heat", "operator": "GreaterThan", "target": 80}
WEAK = {"value": "power", "operator": "LessThan", "target": 200}
ODD = {"value": "heat", "operator": "Equals", "target": 7.1}


def filters(*rules: dict[str, Any], **params: Any) -> Filter:
    assert STRATEGY.filter is not None
    return STRATEGY.filter.compile(TelemetryFilter.model_validate({"rules": [*rules]} | params))


def scores(**params: Any) -> Score:
    assert STRATEGY.score is not None
    return STRATEGY.score.compile(TelemetryScore.model_validate({"value": "heat", "prefer": "Lowest"} | params))


def verdict(rule: Filter, values: Measured, notes: Notes | None = None) -> Verdict:
    return rule.for_pod(Pod())(Node(values=values), 0, notes)


_ONE_RULE: dict[str, tuple[dict[str, Any], Measured, Verdict]] = {
    "more than the target": (HOT, {"heat": 80.1}, TOO_HOT),
    "as much as the target": (HOT, {"heat": 80.0}, PASS),
    "a little more than the target, as sums of floats are": (HOT, {"heat": 80.00000000000001}, PASS),
    "less than the target": (HOT, {"heat": 79.9}, PASS),
    "less than a lower target": (WEAK, {"power": 199.9}, TOO_WEAK),
    "as much as a lower target": (WEAK, {"power": 200.0}, PASS),
    "a little less than a lower target, as sums of floats are": (WEAK, {"power": 199.99999999999997}, PASS),
    "more than a lower target": (WEAK, {"power": 1e18}, PASS),
    "the forbidden value": (ODD, {"heat": 7.1}, FORBIDDEN),
    "the forbidden value, as a factor makes it": (ODD, {"heat": 71 * 0.1}, FORBIDDEN),
    "another value": (ODD, {"heat": 7.2}, PASS),
    "a forbidden zero": (ODD | {"target": 0}, {"heat": -0.0}, FORBIDDEN),
    "a forbidden number that is huge": (ODD | {"target": 1e18}, {"heat": 1e18}, FORBIDDEN),
    "less than nothing": (HOT | {"target": -5}, {"heat": -4.0}, TOO_HOT),
    "no value": (HOT, {}, NO_HEAT),
    "a value that is too old": (HOT, {"heat": STALE_HEAT}, STALE_HEAT),
}


@pytest.mark.parametrize("when", ["AnyOf", "AllOf"])
@pytest.mark.parametrize(("rule", "values", "want"), _ONE_RULE.values(), ids=_ONE_RULE)
def test_one_threshold_decides_alone(rule: dict[str, Any], values: Measured, want: Verdict, when: str) -> None:
    assert verdict(filters(rule, rejectWhen=when), values) == want


_FINE: Measured = {"heat": 20.0, "power": 500.0}
_BOTH: Measured = {"heat": 90.0, "power": 100.0}
_ONLY_HOT: Measured = {"heat": 90.0, "power": 500.0}
_ONLY_WEAK: Measured = {"heat": 20.0, "power": 100.0}
_TWO_RULES: dict[str, tuple[Measured, Verdict, Verdict]] = {
    "neither fires": (_FINE, PASS, PASS),
    "both fire, and the first is said": (_BOTH, TOO_HOT, TOO_HOT),
    "the first fires": (_ONLY_HOT, TOO_HOT, PASS),
    "the second fires": (_ONLY_WEAK, TOO_WEAK, PASS),
    "one is missing, and the other fires": ({"power": 100.0}, TOO_WEAK, NO_HEAT),
    "one is missing, and the other does not fire": ({"power": 500.0}, NO_HEAT, PASS),
    "one fires, and the other is missing": ({"heat": 90.0}, TOO_HOT, NO_POWER),
    "one does not fire, and the other is missing": ({"heat": 20.0}, NO_POWER, PASS),
    "both are missing, and the first is said": ({}, NO_HEAT, NO_HEAT),
    "one is stale, the other missing": ({"heat": STALE_HEAT}, STALE_HEAT, STALE_HEAT),
}


@pytest.mark.parametrize(("values", "any_of", "all_of"), _TWO_RULES.values(), ids=_TWO_RULES)
def test_what_is_not_known_matters_only_where_it_could_decide(
    values: Measured, any_of: Verdict, all_of: Verdict
) -> None:
    for params, want in (({}, any_of), ({"rejectWhen": "AnyOf"}, any_of), ({"rejectWhen": "AllOf"}, all_of)):
        rule = filters(HOT, WEAK, **params)
        assert verdict(rule, values) == want
        assert verdict(rule, values, Notes()) == want


def test_a_verdict_is_made_once() -> None:
    rule = filters(HOT)
    assert verdict(rule, {"heat": 90.0}) is verdict(rule, {"heat": 91.0})
    assert verdict(rule, _FINE) is PASS


def test_without_a_trace_nothing_is_read_behind_what_decides() -> None:
    for when, values in (("AnyOf", _BOTH), ("AllOf", _FINE)):
        rule = filters(HOT, WEAK, rejectWhen=when)
        blind = WatchedNode(Node(values=values), Reads(data=frozenset({"heat"})))
        assert rule.for_pod(Pod())(blind, 0) == verdict(rule, values)


def test_reads_and_reasons_of_a_filter() -> None:
    rule = filters(HOT, WEAK, HOT | {"target": 90}, ODD, WEAK | {"value": "heat"})
    assert rule.reads == Reads(data=frozenset({"heat", "power"}))
    assert rule.reasons == ("heat is too high", "power is too low", "heat has a forbidden value", "heat is too low")
    assert not rule.resolvable, "load does not fall when pods are evicted"


def test_the_trace_of_a_filter_shows_all_rules() -> None:
    notes = Notes()
    assert verdict(filters(HOT, WEAK), {"heat": 90.0, "power": NO_POWER}, notes) == TOO_HOT
    assert notes.items == {
        "heat": {"value": 90.0, "operator": "GreaterThan", "target": 80.0, "fires": True},
        "power": {"why": "is missing", "operator": "LessThan", "target": 200.0, "fires": None},
    }


@given(
    st.lists(st.sampled_from([10.0, 30.0, None]), min_size=1, max_size=4),
    st.sampled_from(["AnyOf", "AllOf"]),
)
def test_a_verdict_is_the_one_that_all_possible_values_give(values: list[float | None], when: str) -> None:
    """Unknown is said exactly where the values that are not known could decide."""
    names = [f"v{at}" for at in range(len(values))]
    rule = filters(*(HOT | {"value": name, "target": 20} for name in names), rejectWhen=when)
    measured = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    unknown = [name for name in names if name not in measured]
    possible = {isinstance(verdict(rule, measured | dict.fromkeys(unknown, guess)), Reject) for guess in (10.0, 30.0)}
    found = verdict(rule, measured)
    if len(possible) > 1:
        assert found == Unknown(f"data {unknown[0]}", "is missing")
    else:
        assert isinstance(found, Reject) is possible.pop()


_SCORES: dict[str, tuple[dict[str, Any], Normalize | None, list[float | None], list[float]]] = {
    "the lowest is best": ({}, None, [20.0, 40.0, 30.0], [100.0, 0.0, 50.0]),
    "the highest is best": ({"prefer": "Highest"}, None, [20.0, 40.0, 30.0], [0.0, 100.0, 50.0]),
    "all equal": ({}, None, [40.0, 40.0], [100.0, 100.0]),
    "a node without a value gets the mean": ({}, None, [20.0, None, 40.0, 40.0], [100.0, 100 / 3, 0.0, 0.0]),
    "by rank": ({}, "Rank", [20.0, 21.0, 90.0, 20.0], [100.0, 50.0, 0.0, 100.0]),
    "by rank, the highest best": ({"prefer": "Highest"}, "Rank", [20.0, 21.0, 90.0], [0.0, 50.0, 100.0]),
    "as they are": ({"prefer": "Highest"}, "None", [20.0, 140.0, -3.0], [20.0, 100.0, 0.0]),
    "as they are, the lowest best": ({}, "None", [20.0, 140.0, -3.0], [80.0, 0.0, 100.0]),
    "a range": ({"range": {"from": 30, "to": 80}}, None, [30.0, 80.0, 55.0, 40.0], [100.0, 0.0, 50.0, 80.0]),
    "a range, the highest best": (
        {"prefer": "Highest", "range": {"from": 30, "to": 80}}, None, [30.0, 80.0, 55.0, 40.0], [0.0, 100.0, 50.0, 20.0]
    ),
    "beyond the range": ({"range": {"from": 30, "to": 80}}, None, [-1e18, 1e18, 81.0], [100.0, 0.0, 0.0]),
    "a tenth of a degree in a range": ({"range": {"from": 0, "to": 100}}, None, [40.0, 40.1], [60.0, 59.9]),
    "a tenth of a degree without": ({}, None, [40.0, 40.1], [100.0, 0.0]),
    "a range below zero": ({"range": {"from": -50, "to": -10}}, None, [-30.0, -50.0], [50.0, 100.0]),
    "a range that is hardly one": ({"range": {"from": 0, "to": 5e-324}}, None, [0.0, 1.7e308, -1.0], [100, 0, 100]),
    "the widest range": ({"range": {"from": -1e18, "to": 1e18}}, None, [0.0, -1e18, 1.7e308], [50.0, 100.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize(("params", "normalize", "values", "want"), _SCORES.values(), ids=_SCORES)
def test_scores(
    params: dict[str, Any], normalize: Normalize | None, values: list[float | None], want: list[float]
) -> None:
    rule = scores(**params)
    nodes = [Node(values={} if value is None else {"heat": value}) for value in values]
    raw = [rule.for_pod(Pod())(node, 0) for node in nodes]
    assert [isinstance(one, Unknown) for one in raw] == [value is None for value in values]
    known = [one if isinstance(one, float) else None for one in raw]
    assert normalize_scores(known, normalize or rule.normalize) == pytest.approx(want, abs=1e-9)


@given(st.lists(st.floats(-1e18, 1e18), min_size=2, max_size=6), st.sampled_from(["None", "MinMax", "Rank"]))
def test_a_better_value_never_scores_less(values: list[float], normalize: Normalize) -> None:
    for params in ({}, {"range": {"from": -10, "to": 10}}):
        rule = scores(**params).for_pod(Pod())
        raw = [rule(Node(values={"heat": value}), 0) for value in sorted(values)]
        found = normalize_scores([one for one in raw if isinstance(one, float)], normalize)
        assert found == sorted(found or [], reverse=True)
        assert len(found) == len(values)


def test_a_range_stands_in_place_of_normalize() -> None:
    assert (scores().normalize, scores(range={"from": 0, "to": 1}).normalize) == ("MinMax", "None")
    assert scores().reads == Reads(data=frozenset({"heat"}))


def test_the_trace_of_a_score_shows_the_value_and_the_range() -> None:
    notes = Notes()
    scores(range={"from": 30, "to": 80}).for_pod(Pod())(Node(values={"heat": 40.0}), 0, notes)
    assert notes.values == {"value": 40.0, "prefer": "Lowest", "from": 30.0, "to": 80.0}


_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a range that goes down": ({"range": {"from": 80, "to": 30}}, "from must be less than to"),
    "a range of one value": ({"range": {"from": 30, "to": 30}}, "from must be less than to"),
    "half a range": ({"range": {"from": 30}}, "Field required"),
    "a direction that there is not": ({"prefer": "lowest"}, "'Lowest' or 'Highest'"),
    "what is for filters": ({"rules": [HOT]}, "Extra inputs"),
}


@pytest.mark.parametrize(("params", "want"), _BAD.values(), ids=_BAD)
def test_a_score_that_is_written_wrongly_is_refused(params: dict[str, Any], want: str) -> None:
    with pytest.raises(ValidationError) as refused:
        scores(**params)
    assert any(want in str(one.get("ctx", {}).get("failed", one["msg"])) for one in refused.value.errors())


@pytest.mark.parametrize(
    "params", [{"rules": []}, {"rules": [HOT], "value": "heat"}, {"rules": [HOT | {"target": "8"}]}]
)
def test_a_filter_that_is_written_wrongly_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        filters(**params)


def cluster(**values: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name, "annotations": {"metric": value}}} for name, value in values.items()]


def entry(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "metric", "nodeAnnotation": {"key": "metric"}, **fields}]


def rules(operator: str, target: float) -> dict[str, Any]:
    return {"f": {"telemetry": {"rules": [{"value": "metric", "operator": operator, "target": target}]}}}


_WORKERS = cluster(worker1="10", worker2="30", worker3="20")
_POLICIES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = {
    "a threshold leaves one worker": (
        {"data": entry(), "filters": rules("LessThan", 20.5)},
        _WORKERS,
        {"passed": ["worker2"], "rejected": {"worker1": "metric is too low", "worker3": "metric is too low"}},
    ),
    "a value that is the target passes": (
        {"data": entry(), "filters": rules("GreaterThan", 20)}, _WORKERS, {"passed": ["worker1", "worker3"]}
    ),
    "all are the forbidden value": (
        {"data": entry(), "filters": rules("Equals", 0)},
        cluster(a="0", b="0.0", c="-0"),
        {"passed": [], "rejected": {"a": "metric has a forbidden value"}},
    ),
    "the order is that of the metric": (
        {"data": entry(), "scores": {"s": {"telemetry": {"value": "metric", "prefer": "Highest"}}}},
        _WORKERS,
        {"order": ["worker2", "worker3", "worker1"], "scores": {"worker2": 100, "worker3": 50, "worker1": 0}},
    ),
    "of thirteen nodes none has less than nothing": (
        {
            "data": entry(),
            "scores": {"s": {"normalize": "Rank", "telemetry": {"value": "metric", "prefer": "Lowest"}}},
        },
        cluster(**{f"n{at}": str(at) for at in range(13)}),
        {"scores": {"n0": 100, "n6": 50, "n12": 0}},
    ),
    "a factor does not move a value off its target": (
        {"data": entry(factor=0.1), "filters": rules("Equals", 7.1)}, cluster(a="71", b="72"), {"passed": ["b"]}
    ),
    "a threshold is within, whatever the factor": (
        {"data": entry(factor=0.1), "filters": rules("GreaterThan", 7.1)}, cluster(a="71", b="72"), {"passed": ["a"]}
    ),
    "no value and no number reject": (
        {"data": entry(), "filters": rules("GreaterThan", 20)},
        [*cluster(a="10", b="NaN", c="ten"), {"metadata": {"name": "d"}}],
        {"passed": ["a"], "rejected": {"d": "data metric is missing"}},
    ),
    "unless onError is Pass": (
        {"data": entry(), "filters": {"f": {"onError": "Pass", **rules("GreaterThan", 20)["f"]}}},
        [*cluster(a="10", b="30"), {"metadata": {"name": "d"}}],
        {"passed": ["a", "d"], "rejected": {"b": "metric is too high"}},
    ),
    "the policy's own range": (
        {
            "data": entry(),
            "scores": {
                "s": {"telemetry": {"value": "metric", "prefer": "Lowest", "range": {"from": 0, "to": 40}}, "weight": 5}
            },
        },
        _WORKERS,
        {"scores": {"worker1": 375, "worker2": 125, "worker3": 250}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "nodes", "expect"), _POLICIES.values(), ids=_POLICIES)
def test_policies(spec: dict[str, Any], nodes: list[dict[str, Any]], expect: dict[str, Any]) -> None:
    found = running.result(expect, building.policy(**spec), nodes=nodes)
    assert running.difference_lines(found) == []
