"""A new ledger takes what annotations say only if it is what the pod asks for."""

import json

import pytest

from fairlead.grants.adoption import REBUILT, first_entries
from fairlead.grants.entry import Entry, GrantedDevice, encode_copy
from fairlead.grants.entry_state import PodState
from support.grants.replica import DEVICES, KIND, RESOURCE, ask_of

GOOD = {KIND: (GrantedDevice("1", {RESOURCE: 4}),)}


def placed(copy: str | None, node: str = "node-1", *, ended: bool = False, devices: int = 1) -> PodState:
    request = {RESOURCE: 4, DEVICES: devices}
    return PodState("u", "ns/a", "7", node, ended, request, copy)


def test_a_copy_becomes_an_entry() -> None:
    assert first_entries("node-1", [placed(encode_copy(GOOD))], ask_of) == {"u": Entry("ns/a", "7", REBUILT, GOOD)}


@pytest.mark.parametrize(
    "pod",
    [
        placed(None),
        placed("{"),
        placed(json.dumps({"v": 1})),
        placed(encode_copy({KIND: (GrantedDevice("1", {RESOURCE: 3}),)})),
        placed(encode_copy({KIND: (GrantedDevice("1", {RESOURCE: 2}), GrantedDevice("2", {RESOURCE: 2}))})),
        placed(encode_copy(GOOD), devices=2),
        placed(encode_copy(GOOD), ended=True),
        placed(encode_copy(GOOD), node="node-2"),
    ],
)
def test_other_pods_have_none(pod: PodState) -> None:
    assert first_entries("node-1", [pod], ask_of) == {}


def test_a_pod_that_asks_for_nothing_has_none() -> None:
    assert first_entries("node-1", [placed(encode_copy(GOOD))], lambda _pod: None) == {}
