"""Demands: the newest pods, in whatever order they are heard, and their exact moments."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.learned.demands import Demands, moments, newest, unite

PODS = {(1, "a"): (4.0,), (2, "b"): (0.5,), (3, "c"): (1.0,), (4, "d"): (2.0,)}


def test_the_newest_three() -> None:
    found = moments(newest(PODS, 3), [0.0])
    assert found.number == 3
    assert (found.mean[0], found.second[0][0]) == pytest.approx((1.166667, 1.75), abs=1e-6)


@pytest.mark.parametrize("order", [*permutations(PODS)])
def test_heard_in_any_order_by_two_leaders(order: tuple[tuple[int, str], ...]) -> None:
    first: Demands = {}
    second: Demands = {}
    for one in order:
        first = unite(first, {one: PODS[one]}, 3)
        second = unite(second, {one: PODS[one]} if one[0] % 2 else {}, 3)
    assert unite(second, first, 3) == unite(first, second, 3) == newest(PODS, 3)


def test_pods_of_one_second_are_told_by_their_uid() -> None:
    assert [*newest({(5, "b"): (1.0,), (5, "c"): (2.0,), (5, "a"): (3.0,)}, 2)] == [(5, "c"), (5, "b")]


def test_the_first_request_of_a_pod_stays() -> None:
    assert unite({(1, "a"): (1.0,)}, {(1, "a"): (9.0,)}, 5) == {(1, "a"): (1.0,)}


def test_floors_and_several_resources() -> None:
    found = moments({(1, "a"): (0.0, 2.0), (2, "b"): (3.0, 4.0)}, [1.0, 0.0])
    assert found.mean == (2.0, 3.0)
    assert found.second == ((5.0, 7.0), (7.0, 10.0))


def test_no_pods() -> None:
    assert moments({}, [0.0, 1.0]) == (0, (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)))


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=30))
def test_moments_are_the_same_in_any_order(amounts: list[float]) -> None:
    pods = {(at, str(at)): (amount,) for at, amount in enumerate(amounts)}
    assert moments(pods, [0.0]) == moments(dict(reversed(pods.items())), [0.0])
