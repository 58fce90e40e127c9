"""A new ledger takes the grants that annotations of the pods on its node record."""

import pytest

from fairlead.grants.adoption import REBUILT, first_entries
from fairlead.grants.entry import Grant, GrantedDevice, LedgerEntry
from fairlead.grants.entry_state import PodState

GRANT: Grant = {"gpu": (GrantedDevice("1", {"example.org/mem": 4}),)}


def placed(recorded: Grant, node: str = "node-1", *, ended: bool = False) -> PodState:
    return PodState("u", "ns/a", "7", node, ended, recorded=recorded, order=3)


def test_a_recorded_grant_becomes_an_entry() -> None:
    assert first_entries("node-1", [placed(GRANT)]) == {"u": LedgerEntry("ns/a", "7", REBUILT, GRANT, 3)}


@pytest.mark.parametrize("pod", [placed({}), placed(GRANT, ended=True), placed(GRANT, node="node-2")])
def test_other_pods_have_none(pod: PodState) -> None:
    assert first_entries("node-1", [pod]) == {}
