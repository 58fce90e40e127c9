"""No part of a group is bound, whatever order things happen in; and code with one rule broken is found out."""

from collections import Counter

import pytest

from support.groups.explorer import EXPLORER, run_case
from support.groups.mutations import MUTATIONS, Mutate
from support.interleavings import Failure

CASES = 8_000
PARTS = 4
USUAL = [
    "all started",
    "bindings",
    "complete",
    "patch_ledger Conflicting",
    "patch_ledger Ledger",
    "post_binding Conflicting",
    "post_binding Missing",
    "post_binding Posted",
    "read_body bytes",
    "read_pod Gone",
    "same text",
    "timed out",
]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_part_of_a_group_is_bound_and_each_starts_in_the_end(part: int) -> None:
    seen = EXPLORER.explore(f"tests-{part}", CASES // PARTS)
    assert min(seen[one] for one in USUAL) > 0, seen
    assert seen["complete"] > CASES // PARTS // 4


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(Failure, match=r"PromiseBrokenError: .* (?:posts a Binding|lands after)") as found:
        EXPLORER.explore("mutations", CASES)
    print(f"{mutate.__name__}: found at case {str(found.value).split()[1]}")


def test_a_case_is_decided_by_its_numbers() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        run_case(EXPLORER.numbers_of("again"), Counter(), trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 20
