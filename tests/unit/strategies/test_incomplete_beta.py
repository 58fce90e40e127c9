"""The incomplete beta function against values of 40 digits, and what holds for all of its values."""

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.strategies.builtin.incomplete_beta import incomplete_beta
from support.examples import MANY

# x, alpha, beta, and the series of the hypergeometric function summed up with 40 digits, for exactly these floats.
# Plain ones, the shapes of nodes in the examples, two peaks at the ends, narrow ones, skewed ones, and tails far out.
TABLE = [
    (0.5, 2.0, 2.0, 0.5),
    (0.25, 1.0, 1.0, 0.25),
    (0.3, 1.0, 5.0, 0.83193),
    (0.3, 5.0, 1.0, 0.0024299999999999994),
    (0.75, 2.0, 5.0, 0.995361328125),
    (0.1, 2.0, 5.0, 0.114265),
    (0.9, 0.5, 0.5, 0.7951672353008665),
    (0.1, 0.5, 0.5, 0.20483276469913345),
    (0.5, 0.5, 1.5, 0.8183098861837906),
    (0.5, 3.0, 7.0, 0.91015625),
    (0.5, 10.0, 10.0, 0.5),
    (0.25, 10.0, 10.0, 0.008903279303922318),
    (0.75, 10.0, 10.0, 0.9910967206960777),
    (0.6, 40.0, 20.0, 0.1374965455355013),
    (0.15, 3.36, 8.58, 0.14917904113929426),
    (0.85, 8.58, 3.36, 0.8508209588607056),
    (0.9, 12.5, 2.5, 0.7327550529675138),
    (0.1, 2.5, 12.5, 0.26724494703248636),
    (0.9, 4.0, 1.5, 0.8272309364602383),
    (0.9, 1.5, 4.0, 0.9997639643799211),
    (0.95, 30.0, 3.0, 0.7861144729410084),
    (0.5, 0.35, 0.65, 0.6725284237745468),
    (0.8, 20.0, 5.0, 0.45987732975757933),
    (0.7, 7.5, 2.5, 0.32105651413381825),
    (0.9, 0.0101, 0.000101, 0.010119149708934586),
    (0.9, 0.000101, 0.01, 0.9902183842710749),
    (0.1, 0.01, 0.000101, 0.009781615728925077),
    (0.5, 0.00505, 0.00505, 0.5),
    (0.9, 6.3e-05, 0.01, 0.9938755594988937),
    (0.999, 0.0025, 0.0076, 0.7651257652970523),
    (0.001, 0.0025, 0.0076, 0.7396168007375669),
    (0.1, 2.5e-09, 0.0101, 0.999999747020749),
    (0.99, 1e-08, 1e-08, 0.5000000229755986),
    (0.01, 1e-08, 1e-08, 0.49999997702440135),
    (0.5, 500000.0, 500000.0, 0.5),
    (0.501, 500000.0, 500000.0, 0.9772499490383685),
    (0.499, 500000.0, 500000.0, 0.022750050961631484),
    (0.9, 900000.0, 100000.0, 0.49964538457247143),
    (0.8995, 900000.0, 100000.0, 0.04794708081177851),
    (0.9005, 900000.0, 100000.0, 0.9523673177200224),
    (0.1, 100000.0, 900000.0, 0.5003546154275654),
    (0.0999, 100000.0, 900000.0, 0.36973959235212933),
    (0.5, 5000.0, 5000.0, 0.5),
    (0.51, 5000.0, 5000.0, 0.9772579676754255),
    (0.9, 900.0, 100.0, 0.48878396952018915),
    (0.88, 900.0, 100.0, 0.02148900079347408),
    (0.92, 900.0, 100.0, 0.98685207094772),
    (0.7, 49000.0, 21000.0, 0.499561276303877),
    (0.702, 49000.0, 21000.0, 0.875969410033997),
    (0.99, 9900.0, 100.0, 0.48690134634099086),
    (0.9, 1e-06, 100000.0, 1.0),
    (1e-06, 1e-06, 100000.0, 0.9999981770729028),
    (1e-05, 1.0, 100000.0, 0.6321223982334278),
    (1e-06, 0.5, 500000.0, 0.6826894921371464),
    (0.999999, 500000.0, 0.5, 0.3173105078558956),
    (0.999, 10000.0, 20.0, 0.9964911660735046),
    (0.001, 20.0, 10000.0, 0.003508833926495376),
    (1e-09, 0.001, 1.0, 0.9794899854086989),
    (0.5, 0.001, 1000.0, 1.0),
    (0.5, 1000.0, 0.001, 1.8773732655583773e-307),
    (0.1, 20.0, 3.0, 1.891000000000002e-18),
    (0.1, 100.0, 10.0, 1.6682342770293488e-88),
    (0.01, 100.0, 2.0, 1.0000000000000021e-198),
    (0.5, 600.0, 60.0, 4.739303509357075e-114),
    (0.001, 30.0, 30.0, 5.749508368870677e-74),
    (1e-12, 3.0, 4.0, 1.9999999999955e-35),
    (1e-300, 0.5, 0.5, 6.366197723675813e-151),
    (1e-300, 0.01, 2.0, 0.0010099999999999998),
    (5e-324, 0.001, 1.0, 0.475000191437443),
    (0.2, 2000.0, 500.0, 0.0),
    (0.3, 50.0, 0.001, 2.0425966010533077e-31),
    (0.9999999999, 0.5, 2.0, 1.0),
    (0.9999999999, 2.0, 0.1, 0.8899999990908559),
    (0.9999999999999999, 0.3, 0.2, 0.9995842469383784),
    (0.9999999999999999, 0.0001, 0.0001, 0.5018334619817308),
    (1.1102230246251565e-16, 0.3, 0.2, 7.0353420957207456e-06),
]

_shapes = st.floats(-9, 5.69).map(lambda exponent: 10.0**exponent)
# So that 1 - x is exact.
_shares = st.integers(0, 2**20).map(lambda part: part / 2**20)


@pytest.mark.parametrize(("x", "alpha", "beta", "want"), TABLE)
def test_values_are_exact_to_as_many_digits_as_the_gamma_function_leaves(
    x: float, alpha: float, beta: float, want: float
) -> None:
    assert isclose(incomplete_beta(x, alpha, beta), want, rel_tol=1e-11 + 5e-15 * (alpha + beta))


def test_there_are_enough_values() -> None:
    assert len({row[:3] for row in TABLE}) == len(TABLE) >= 60


@pytest.mark.parametrize(("x", "want"), [(0.0, 0.0), (-1.0, 0.0), (-0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
@pytest.mark.parametrize("alpha", [1e-9, 1.0, 5e5])
@pytest.mark.parametrize("beta", [1e-9, 1.0, 5e5])
def test_nothing_is_below_0_and_all_is_below_1(x: float, want: float, alpha: float, beta: float) -> None:
    assert incomplete_beta(x, alpha, beta) == want


@settings(derandomize=True, database=None, max_examples=MANY)
@given(_shares, _shapes, _shapes)
def test_what_is_below_x_and_what_is_above_are_all(x: float, alpha: float, beta: float) -> None:
    assert incomplete_beta(x, alpha, beta) == pytest.approx(1.0 - incomplete_beta(1.0 - x, beta, alpha), abs=1e-9)


@settings(derandomize=True, database=None, max_examples=MANY)
@given(st.floats(0, 1), st.floats(0, 1), _shapes, _shapes)
def test_it_rises_from_0_to_1(x: float, other: float, alpha: float, beta: float) -> None:
    low, high = sorted((x, other))
    assert 0.0 <= incomplete_beta(low, alpha, beta) <= incomplete_beta(high, alpha, beta) + 1e-9 <= 1.0 + 1e-9


@settings(derandomize=True, database=None, max_examples=MANY)
@given(st.floats(0, 1), _shapes, _shapes)
def test_a_larger_alpha_leaves_less_below_and_a_larger_beta_more(x: float, alpha: float, beta: float) -> None:
    found = incomplete_beta(x, alpha, beta)
    assert incomplete_beta(x, alpha * 1.5, beta) <= found + 1e-8
    assert incomplete_beta(x, alpha, beta * 1.5) >= found - 1e-8
