"""congestion, as a table: the value of the node, and its score."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin.congestion import STRATEGY, Congestion
from fairlead.strategies.contract import Reads, Score, Unknown
from support.policy import building
from support.strategies.facts import Node, Notes, Pod
from support.suites import running

MISSING = Unknown("data congestion", "is missing")
STALE = Unknown("data congestion", "is stale")


def compiled(**params: Any) -> Score:
    assert STRATEGY.score is not None
    return STRATEGY.score.compile(Congestion.model_validate({"value": "congestion"} | params))


def score(value: float | Unknown, **params: Any) -> object:
    return compiled(**params).for_pod(Pod())(Node(values={"congestion": value}), 0)


_CASES: dict[str, tuple[dict[str, Any], float, float]] = {
    "none": ({}, 0.0, 100.0),
    "some": ({}, 35.0, 65.0),
    "half a point is not rounded": ({}, 0.5, 99.5),
    "as much as there can be": ({}, 100.0, 0.0),
    "more than there can be": ({}, 250.0, 0.0),
    "less than none": ({}, -20.0, 100.0),
    "of another scale": ({"max": 10}, 2.5, 75.0),
    "of another scale, and more": ({"max": 10.0}, 35.0, 0.0),
    "of the smallest scale": ({"max": 1e-9}, 5e-10, 50.0),
    "of the largest scale": ({"max": 1e18}, 2.5e17, 75.0),
    "the largest number": ({"max": 1e-9}, 1.7e308, 0.0),
    "the smallest number": ({}, -1.7e308, 100.0),
}


@pytest.mark.parametrize(("params", "value", "want"), _CASES.values(), ids=_CASES)
def test_congestion(params: dict[str, Any], value: float, want: float) -> None:
    assert score(value, **params) == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("why", [MISSING, STALE])
def test_without_a_value_there_is_no_score(why: Unknown) -> None:
    assert score(why) is why
    assert compiled().for_pod(Pod())(Node(), 0, Notes()) == MISSING


@given(st.floats(-1e18, 1e18), st.floats(-1e18, 1e18), st.floats(1e-9, 1e18))
def test_more_congestion_never_scores_more(one: float, other: float, most: float) -> None:
    low, high = sorted((one, other))
    less, more = score(high, max=most), score(low, max=most)
    assert isinstance(less, float)
    assert isinstance(more, float)
    assert 0.0 <= less <= more <= 100.0


def test_the_trace_shows_the_value_and_the_most() -> None:
    notes = Notes()
    compiled(max=10).for_pod(Pod())(Node(values={"congestion": 2.0}), 0, notes)
    assert notes.values == {"value": 2.0, "max": 10.0}


def test_it_reads_the_value_and_nothing_else_and_only_scores() -> None:
    assert compiled().reads == Reads(data=frozenset({"congestion"}))
    assert compiled().normalize == "None"
    assert STRATEGY.filter is None


@pytest.mark.parametrize("params", [{}, {"value": "congestion", "max": 0}, {"value": "no name"}])
def test_what_is_written_wrongly_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Congestion.model_validate(params)


_WITHOUT: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "without a default no annotation is the mean": ({}, {"calm": 200, "busy": 100, "silent": 150, "odd": 150}),
    "with a default of 0 no annotation is no congestion": (
        {"default": 0.0},
        {"calm": 200, "busy": 100, "silent": 200},
    ),
}


@pytest.mark.parametrize(("entry", "want"), _WITHOUT.values(), ids=_WITHOUT)
def test_a_policy_says_what_no_annotation_means(entry: dict[str, Any], want: dict[str, float]) -> None:
    made = building.policy(
        data=[{"name": "congestion", "nodeAnnotation": {"key": "congestion-factor"}} | entry],
        scores={"uncongested": {"weight": 2, "congestion": {"value": "congestion", "max": 10.0}}},
    )
    factors = {"calm": "0", "busy": "5", "odd": "lots"}
    nodes = [{"metadata": {"name": name, "annotations": {"congestion-factor": one}}} for name, one in factors.items()]
    found = running.result({"scores": want}, made, nodes=[*nodes, {"metadata": {"name": "silent"}}])
    assert running.difference_lines(found) == []


@pytest.mark.parametrize(("text", "want"), [("abc", 150), ("0x10", 150), ("7.5", 50), ("-3", 200), ("11", 0)])
def test_a_text_that_the_agent_does_not_read_is_no_lack_of_congestion(text: str, want: float) -> None:
    """The agent takes all but whole numbers for 0, so that the node would have most points."""
    made = building.policy(
        data=[{"name": "congestion", "nodeAnnotation": {"key": "congestion-factor"}, "default": 0.0}],
        scores={"uncongested": {"weight": 2, "congestion": {"value": "congestion", "max": 10.0}}},
    )
    factors = {"calm": "0", "busy": "5", "odd": text}
    nodes = [{"metadata": {"name": name, "annotations": {"congestion-factor": one}}} for name, one in factors.items()]
    assert (
        running.difference_lines(running.result({"scores": {"calm": 200, "busy": 100, "odd": want}}, made, nodes=nodes))
        == []
    )
