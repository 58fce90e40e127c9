"""Members of a group share a domain, whatever order things happen in; and a core with one rule broken is found out."""

import pytest

from support.grants.domain_explorer import EXPLORER
from support.grants.domain_mutations import MUTATIONS
from support.grants.mutations import Mutate
from support.interleavings import Failure

CASES = 5_000
USUAL = [
    "bindings",
    "bound in the end",
    "refused in the end",
    "delete_ledger Posted",
    "list_pods list",
    "patch_ledger Conflicting",
    "patch_ledger Missing",
    "post_binding Conflicting",
    "post_binding Missing",
    "read_pod Gone",
    "timed out",
]


def test_no_member_is_bound_in_another_domain() -> None:
    seen = EXPLORER.explore("tests", CASES)
    assert min(seen[one] for one in USUAL) > 0, seen
    assert seen["bindings"] > CASES


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(Failure, match="PromiseBrokenError"):
        EXPLORER.explore("mutations", CASES)
