"""No device is granted twice, whatever order things happen in; and a core with one rule broken is found out."""

from collections import Counter

import pytest

from support.grants.explorer import EXPLORER, run_case
from support.grants.mutations import MUTATIONS, Mutate, no_resource_version
from support.interleavings import Failure

CASES = 8_000
PARTS = 4
USUAL = [
    "bindings",
    "bound in the end",
    "refused in the end",
    "create_ledger Conflicting",
    "delete_ledger Conflicting",
    "delete_ledger Posted",
    "patch_ledger Conflicting",
    "patch_ledger Ledger",
    "patch_ledger Missing",
    "post_binding Conflicting",
    "post_binding Missing",
    "post_binding Posted",
    "read_pod Gone",
    "timed out",
]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_device_is_granted_twice(part: int) -> None:
    seen = EXPLORER.explore(f"tests-{part}", CASES // PARTS)
    assert min(seen[one] for one in USUAL) > 0, seen
    assert seen["bindings"] > CASES // PARTS


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(Failure, match=r"PromiseBrokenError: (?:pods|entries) hold|runs on"):
        EXPLORER.explore("mutations", CASES)


def test_a_failure_is_replayed_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    no_resource_version(monkeypatch)
    with pytest.raises(Failure) as failure:
        EXPLORER.explore("mutations", CASES)
    name = str(failure.value).split()[1]
    numbers = EXPLORER.numbers_of(name)
    least = EXPLORER.shrunk(numbers)
    kind = type(EXPLORER.broken_by(numbers))
    assert type(EXPLORER.broken_by(least)) is kind
    parts = [least[:at] + least[at + 1 :] for at in range(1, len(least))]
    assert not any(type(EXPLORER.broken_by(one)) is kind for one in parts)
    monkeypatch.undo()
    assert EXPLORER.broken_by(least) is None


def test_a_case_is_decided_by_its_numbers() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        run_case(EXPLORER.numbers_of("again"), Counter(), trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 50
