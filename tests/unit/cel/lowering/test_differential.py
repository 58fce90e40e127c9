"""Lowered expressions against the engine: the short run, and that it would find what it is there to find."""

import pytest

from differential.cases import Case
from differential.compare import run
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


def test_a_text_that_is_too_long_to_be_converted_is_counted_apart() -> None:
    found = run(Case(f"int('{'0' * 1_100}1') == 1", (), (0,)))
    assert not found.differences
    assert {*found.known} == {"the engine converts texts of any length"}
