"""Scores, from raw values to points: normalization, missing values, weights, what is sent."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.policy.evaluate.scoring import normalize_scores, on_the_wire, totals
from fairlead.strategies.contract import Normalize
from support.policy import Evaluation, node, pod, policy

NAN, INF = math.nan, math.inf
NORMALIZED: dict[str, tuple[list[float | None], Normalize, list[float] | None]] = {
    "None takes values as they are": ([0.0, 33.3, 100.0], "None", [0.0, 33.3, 100.0]),
    "and cuts what lies outside": ([-5.0, 250.0], "None", [0.0, 100.0]),
    "MinMax stretches": ([2.0, 4.0, 3.0], "MinMax", [0.0, 100.0, 50.0]),
    "MinMax of equal values is 100": ([7.0, 7.0], "MinMax", [100.0, 100.0]),
    "MinMax of one value is 100": ([7.0], "MinMax", [100.0]),
    "a difference below 1e-9 is noise": ([1.0, 1.0 + 1e-10], "MinMax", [100.0, 100.0]),
    "MinMax of the largest values there are": ([-1.7e308, 1.7e308, 0.0], "MinMax", [0.0, 100.0, 50.0]),
    "Rank takes the order": ([10.0, 1.0, 2.0], "Rank", [100.0, 0.0, 50.0]),
    "equal values have equal rank": ([1.0, 2.0, 2.0, 3.0], "Rank", [0.0, 50.0, 50.0, 100.0]),
    "Rank of equal values is 100": ([3.0, 3.0], "Rank", [100.0, 100.0]),
    "one without a value gets the mean": ([20.0, None, 40.0], "None", [20.0, 30.0, 40.0]),
    "the mean is taken after cutting": ([-100.0, None, 300.0], "None", [0.0, 50.0, 100.0]),
    "and after stretching": ([0.0, 1.0, 1.0, 1.0, None], "MinMax", [0.0, 100.0, 100.0, 100.0, 75.0]),
    "and after ranking": ([5.0, None, 5.0], "Rank", [100.0, 100.0, 100.0]),
    "NaN is no value": ([10.0, NAN], "None", [10.0, 10.0]),
    "nor is infinity": ([10.0, INF, -INF], "MinMax", [100.0, 100.0, 100.0]),
    "nobody has a value": ([None, NAN], "MinMax", None),
    "nobody is there": ([], "Rank", None),
}


@pytest.mark.parametrize("name", NORMALIZED)
def test_raw_values_become_scores(name: str) -> None:
    values, how, want = NORMALIZED[name]
    found = normalize_scores(values, how)
    assert found == (want if want is None else pytest.approx(want))


ANY = st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=8)


@given(values=ANY, how=st.sampled_from(["None", "MinMax", "Rank"]))
def test_scores_never_leave_0_to_100_and_keep_the_order(values: list[float | None], how: Normalize) -> None:
    found = normalize_scores(values, how)
    known = [value for value in values if value is not None and math.isfinite(value)]
    assert (found is None) == (not known)
    if found is not None:
        assert all(0.0 <= score <= 100.0 for score in found)
        pairs = sorted(
            (value, score)
            for value, score in zip(values, found, strict=True)
            if value is not None and math.isfinite(value)
        )
        assert all(one[1] <= other[1] for one, other in pairwise(pairs))


@given(
    rules=st.lists(st.tuples(st.lists(st.floats(0, 100), min_size=3, max_size=3), st.integers(1, 1000)), max_size=6),
    random=st.randoms(use_true_random=False),
)
def test_totals_are_the_same_in_any_order(rules: list[tuple[list[float], int]], random: Any) -> None:
    columns: list[tuple[list[float], Normalize, int]] = [(values, "None", weight) for values, weight in rules]
    before = totals(columns, 3)
    random.shuffle(columns)
    assert totals(columns, 3) == before


WIRE: dict[str, tuple[list[float], list[int]]] = {
    "nobody": ([], []),
    "the lowest is 0": ([70.0, 50.0, 60.0], [2, 0, 1]),
    "all equal are all 0": ([33.3, 33.3], [0, 0]),
    "half is rounded up": ([0.0, 4.999, 5.0, 14.999999, 15.0], [0, 0, 1, 1, 2]),
    "just below half is not": ([0.0, 4.999999999999999], [0, 0]),
    "large totals": ([0.0, 3_200_000.0], [0, 320_000]),
}


@given(values=ANY, how=st.sampled_from(["None", "MinMax", "Rank"]))
def test_many_nodes_that_share_values_have_the_same_scores(values: list[float | None], how: Normalize) -> None:
    found = normalize_scores(values, how)
    assert normalize_scores(values * 5, how) == (found and pytest.approx(found * 5))


@pytest.mark.parametrize("name", WIRE)
def test_what_the_scheduler_is_told(name: str) -> None:
    sums, want = WIRE[name]
    assert on_the_wire(sums) == want


@given(sums=st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
def test_the_wire_is_the_exact_difference_rounded_half_up(sums: list[float]) -> None:
    low = min(sums)
    want = [math.floor(Fraction(total - low) / 10 + Fraction(1, 2)) for total in sums]
    assert on_the_wire(sums) == want
    assert on_the_wire(sums * 5) == want * 5


CASES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "nothing rated": ({}, [0.0, 0.0, 0.0]),
    "weights count after normalisation": (
        {"s": {"expression": "free['cpu']", "normalize": "MinMax", "weight": 3}},
        [0.0, 150.0, 300.0],
    ),
    "whole numbers are numbers": ({"s": "20"}, [20.0, 20.0, 20.0]),
    "one that raises is neutral": ({"s": "double(node.metadata.labels['v'])"}, [10.0, 20.0, 15.0]),
    "one that is infinite is neutral": ({"s": "30.0 / (free['cpu'] - 1.0)"}, [22.5, 30.0, 15.0]),
    "NaN is neutral": ({"s": "free['cpu'] == 2.0 ? 0.0 / 0.0 : 40.0"}, [40.0, 40.0, 40.0]),
    "one that always raises adds nothing": ({"s": "double(node.metadata.labels['x'])", "t": "5.0"}, [5.0, 5.0, 5.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_are_added_up(name: str) -> None:
    scores, want = CASES[name]
    labels = [{"v": "10"}, {"v": "20"}, {}]
    cluster = Evaluation(
        [policy(scores=scores)], [node(f"n{at}", cpu=at + 1.0, labels=held) for at, held in enumerate(labels)]
    )
    assert cluster.scores(pod()) == pytest.approx(want)


def test_several_policies_add_up_and_a_node_that_is_not_known_is_neutral() -> None:
    cluster = Evaluation(
        [policy("a", scores={"s": "free['cpu']"}), policy("b", scores={"s": {"expression": "1.0", "weight": 2}})],
        [node("n1", cpu=10.0), node("n2", cpu=30.0)],
    )
    assert cluster.scores(pod(), ["n1", "other", "n2"]) == [12.0, 22.0, 32.0]
    assert cluster.scores(pod(), ["n2"]) == [32.0]
    assert cluster.scores(pod(), []) == []


def test_normalisation_is_over_the_nodes_of_the_call() -> None:
    ranked = policy(scores={"s": {"expression": "free['cpu']", "normalize": "MinMax"}})
    cluster = Evaluation([ranked], [node(f"n{at}", cpu=float(at)) for at in range(5)])
    assert cluster.scores(pod(), ["n0", "n4", "n2"]) == [0.0, 100.0, 50.0]
    assert cluster.scores(pod(), ["n2", "n4"]) == [0.0, 100.0]
