"""Measured values as a multiple of a step."""

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions.quantity import round_to_step

STEPS = (0.1, 0.01, 0.3, 0.5, 1.0, 7.0, 1e3, 1e-9)


@pytest.mark.parametrize(
    ("value", "step", "want"),
    [
        (35.15, 0.1, 35.2),  # a little less in binary
        (-35.15, 0.1, -35.1),
        (35.149, 0.1, 35.1),
        (0.35, 0.1, 0.4),
        (7.1000000000000005, 0.1, 7.1),
        (0.45, 0.3, 0.6),
        (2.5, 5.0, 5.0),
        (1e300, 1e-9, 1e300),
        (0.0, 0.1, 0.0),
    ],
)
def test_the_nearest_multiple_half_up(value: float, step: float, want: float) -> None:
    assert round_to_step(value, step) == want


@given(whole=st.integers(-(10**8), 10**8), digits=st.integers(0, 4), step=st.sampled_from(STEPS))
def test_it_is_that_of_the_decimal_that_one_would_write(whole: int, digits: int, step: float) -> None:
    value, exact = whole / 10**digits, Fraction(repr(step))
    multiple = floor(Fraction(whole, 10**digits) / exact + Fraction(1, 2)) * exact
    assert round_to_step(value, step) == float(f"{float(multiple):.15g}")
