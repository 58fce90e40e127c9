"""Ledgers as ConfigMaps."""

import re

import pytest

from fairlead.grants.entry import GrantedDevice, LedgerEntry, NewerEntry, encode_entry
from fairlead.grants.ledger import create_body, decode_ledger, delete_body, ledger_name, merge_patch

ENTRY = LedgerEntry("ns/a", "7", "policy", {"gpu": (GrantedDevice("0", {"example.org/mem": 4}),)}, 1)
NEWER = '{"v":2}'
LONG = ".".join(["label-" + "n" * 3] * 24)


def config_map(data: dict[str, str] | None, node: str = "node-1") -> dict[str, object]:
    metadata = {
        "name": ledger_name(node),
        "uid": "u",
        "resourceVersion": "9",
        "labels": {"fairlead.dev/grants": ""},
        "annotations": {"fairlead.dev/node": node},
    }
    return {"metadata": metadata, "data": data}


def test_a_name_is_the_nodes() -> None:
    assert ledger_name("node-1") == "fairlead-grants-node-1"


@pytest.mark.parametrize("longer", range(12))
def test_a_long_name_is_cut_and_still_the_nodes_own(longer: int) -> None:
    names = [ledger_name("n" * longer + LONG + ending) for ending in ("a", "b")]
    assert len(set(names)) == 2
    for name in names:
        assert len(name) <= 253
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)


def test_the_node_of_a_long_name_is_in_the_annotation() -> None:
    made = create_body(LONG, {})
    made["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert decode_ledger(made).subject == LONG


def test_each_key_is_read_for_itself() -> None:
    ledger = decode_ledger(config_map({"a": encode_entry(ENTRY), "b": "{", "c": NEWER}))
    assert (ledger.subject, ledger.uid, ledger.rv) == ("node-1", "u", "9")
    assert ledger.entries == {"a": ENTRY}
    assert ledger.unreadable.keys() == {"b"}
    assert ledger.newer == {"c": NewerEntry(2)}


@pytest.mark.parametrize("data", [None, {}])
def test_a_ledger_may_be_empty(data: dict[str, str] | None) -> None:
    assert decode_ledger(config_map(data)).entries == {}


def test_a_ledger_without_annotation_is_of_the_node_in_its_name() -> None:
    body = config_map({})
    del body["metadata"]["annotations"]  # type: ignore[attr-defined]
    assert decode_ledger(body).subject == "node-1"


def test_a_patch_names_the_version_and_only_what_changes() -> None:
    ledger = decode_ledger(config_map({"a": encode_entry(ENTRY), "b": encode_entry(ENTRY)}))
    assert merge_patch(ledger, {"c": ENTRY, "b": ENTRY}, ["a", "b"]) == {
        "metadata": {"resourceVersion": "9", "managedFields": [{}]},
        "data": {"a": None, "b": encode_entry(ENTRY), "c": encode_entry(ENTRY)},
    }


@pytest.mark.parametrize("lost", ["labels", "annotations"])
def test_a_patch_writes_back_what_watches_find_a_ledger_by(lost: str) -> None:
    body: dict[str, dict[str, object]] = config_map({})  # type: ignore[assignment]
    del body["metadata"][lost]
    ledger = decode_ledger(body)
    assert not ledger.marked
    assert merge_patch(ledger, {}, ())["metadata"] == {
        "resourceVersion": "9",
        "managedFields": [{}],
        "labels": {"fairlead.dev/grants": ""},
        "annotations": {"fairlead.dev/node": "node-1"},
    }


def test_a_new_ledger_can_be_found_by_its_label() -> None:
    made = create_body("node-1", {"a": ENTRY})
    assert made["metadata"] == {
        "name": "fairlead-grants-node-1",
        "labels": {"fairlead.dev/grants": ""},
        "annotations": {"fairlead.dev/node": "node-1"},
    }
    assert made["data"] == {"a": encode_entry(ENTRY)}


@pytest.mark.parametrize(
    ("data", "over", "node_exists", "deleted"),
    [
        ({}, "", False, True),
        ({}, "", True, False),
        ({"a": encode_entry(ENTRY)}, "", False, False),
        ({"a": encode_entry(ENTRY)}, "a", False, True),
        ({"a": encode_entry(ENTRY)}, "a", True, False),
        ({"a": encode_entry(ENTRY), "b": "{"}, "a", False, False),
        ({"a": encode_entry(ENTRY), "b": "{"}, "ab", False, True),
        ({"c": NEWER}, "", False, False),
        ({"c": NEWER}, "c", False, True),
    ],
)
def test_a_ledger_ends_when_its_node_is_gone_and_all_is_over(
    data: dict[str, str], over: str, node_exists: bool, deleted: bool
) -> None:
    body = delete_body(decode_ledger(config_map(data)), {*over}, is_needed=node_exists)
    assert (body is not None) == deleted
    if body is not None:
        assert body["preconditions"] == {"uid": "u", "resourceVersion": "9"}
