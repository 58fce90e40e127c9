"""Comparisons of what is computed with what is written."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.strategies.builtin.comparison import at_least, at_most, equal

_CASES: dict[str, tuple[float, float, bool]] = {
    "a number is itself": (7.1, 7.1, True),
    "a product that is a little more": (71 * 0.1, 7.1, True),
    "a sum that is a little more": (0.1 + 0.2, 0.3, True),
    "a billionth of a large number": (1e12 + 100, 1e12, True),
    "more than a billionth of a large number": (1e12 + 1e4, 1e12, False),
    "less than a billionth of 1": (9e-10, 0.0, True),
    "a billionth of 1": (1e-9, 0.0, False),
    "a thousandth": (80.001, 80.0, False),
    "the other sign": (1.0, -1.0, False),
    "the largest that there are": (1.7e308, -1.7e308, False),
    "zeros of two signs": (0.0, -0.0, True),
}


@pytest.mark.parametrize(("one", "other", "want"), _CASES.values(), ids=_CASES)
def test_equal(one: float, other: float, want: bool) -> None:
    assert equal(one, other) is want
    assert equal(other, one) is want


@pytest.mark.parametrize(("one", "other", "want"), _CASES.values(), ids=_CASES)
def test_what_is_equal_is_within_either_limit(one: float, other: float, want: bool) -> None:
    assert (at_most(one, other), at_least(one, other)) == (want or one < other, want or one > other)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_sums_of_tenths_compare_as_they_are_written(one: int, two: int, limit: int) -> None:
    """Floats alone take one in twenty of these sums for more or less than the number that they are."""
    exact, written = Decimal(one + two) / 10, Decimal(limit) / 10
    value = one * 0.1 + two / 10
    assert at_most(value, float(written)) is (exact <= written)
    assert at_least(value, float(written)) is (exact >= written)
    assert equal(value, float(written)) is (exact == written)
