"""Table of wake-ups, and its place in the guide."""

import pytest

from bench.wakeups.__main__ import BEGIN, END, PAGE
from bench.wakeups.report import CauseResult, table

RESULTS = {
    "an edit": (
        [0.25, 0.35, 0.3],
        "| an edit | 3 | 0.3 s | 0.3 s |",
        "p50 0.30 s, p99 0.35 s ok",
    ),
    "once": ([2.96], "| once | 1 | 3.0 s | 3.0 s |", "p50 2.96 s, p99 2.96 s ok"),
    "slow": ([3.0, 3.0], "| slow | 2 | **3.0 s**, aim <3 s | 3.0 s |", "p50 3.00 s, p99 3.00 s short"),
    "seldom slow": ([1.0] * 9 + [11.0], "| seldom slow | 10 | 1.0 s | **10.1 s**, aim <10 s |", "p99 10.10 s short"),
}


@pytest.mark.parametrize("cause", RESULTS)
def test_a_cause_has_a_row_that_says_which_target_is_missed(cause: str) -> None:
    took, row, said = RESULTS[cause]
    result = CauseResult(cause, took)
    assert [*table([result])][2:] == [row]
    assert str(result).startswith(f"{cause}: {len(took)} times, ")
    assert str(result).endswith(said)


def test_rows_have_the_columns_of_the_head() -> None:
    assert len({line.count("|") for line in table(CauseResult("c", took) for took, *_ in RESULTS.values())}) == 1


def test_the_guide_has_the_marks() -> None:
    text = PAGE.read_text()
    assert 0 < text.find(BEGIN) < text.find(END)
