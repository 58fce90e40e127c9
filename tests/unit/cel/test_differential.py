"""Lowered expressions against the engine: the short run, and that it would find what it is there to find."""

import pytest

from differential.faults import FAULTS
from differential.short import CASES, Difference, compare_short, compare_shrinking


def test_lowered_expressions_do_what_the_engine_does() -> None:
    assert compare_short() >= CASES


def test_a_difference_would_come_shrunk() -> None:
    compare_shrinking()


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str) -> None:
    with FAULTS[fault](), pytest.raises(Difference):
        compare_short()
