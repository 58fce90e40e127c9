"""Learned state as it is written to be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.values import Quantity
from fairlead.cli.reports.written_learned import amount_text, written_demands
from fairlead.suites.suite import LearnedDemand


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "0"),
        (0.05, "50m"),
        (1.5, "1500m"),
        (2.0, "2"),
        (1024.0, "1024"),
        (float(1 << 30), "1Gi"),
        (1.5 * (1 << 30), "1536Mi"),
        (1_500_000_000.0, "1.5G"),
        (0.1 + 0.2, "300m"),
        (1e30, "999999999E"),
    ],
)
def test_amounts_are_written_as_people_write_them(amount: float, text: str) -> None:
    assert amount_text(amount) == text


@given(
    st.floats(0.0, 1e26) | st.integers(0, 1 << 62).map(float) | st.integers(0, 10**8).map(lambda milli: milli / 1000)
)
def test_any_amount_can_be_read_back(amount: float) -> None:
    read = LearnedDemand.model_validate({"cpu": amount_text(amount)}).amounts["cpu"]
    assert isinstance(read, Quantity)
    assert read.amount == pytest.approx(amount, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**8))
def test_what_the_scheduler_counts_of_cores_is_read_back_to_the_last_bit(milli: int) -> None:
    assert Quantity(amount_text(milli / 1000)).amount == milli / 1000


def test_equal_pods_that_follow_each_other_are_written_once() -> None:
    demands = {(at, "u"): (cpu, 0.0) for at, cpu in enumerate([1.0, 1.0, 0.5, 1.0])}
    assert written_demands(demands, ["cpu", "memory"])["demands"] == [
        {"cpu": "1", "memory": "0", "copies": 2},
        {"cpu": "500m", "memory": "0", "copies": 1},
        {"cpu": "1", "memory": "0", "copies": 1},
    ]
