"""What the last leader publishes is what was observed, each once, whatever order things happen in."""

from collections import Counter

import pytest

from support.interleavings import Failure
from support.learned.explorer import EXPLORER, run_case
from support.learned.mutations import MUTATIONS, Mutate

CASES = 5_000
PARTS = 4
USUAL = ["counted", "late", "written", "refused", "landed late", "outcomes"]


@pytest.mark.parametrize("part", range(PARTS))
def test_each_outcome_counts_once(part: int) -> None:
    seen = EXPLORER.explore(f"tests-{part}", CASES // PARTS)
    assert min(seen[one] for one in USUAL) > 0, seen
    assert seen["counted"] > CASES // PARTS


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(Failure, match="PromiseBrokenError"):
        EXPLORER.explore("mutations", CASES)


def test_a_case_is_decided_by_its_numbers() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        run_case(EXPLORER.numbers_of("again"), Counter(), trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 30
