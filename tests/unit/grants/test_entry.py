"""Entries as text: what is written is read, and what cannot be read is told apart from what is newer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.grants.entry import (
    AMOUNT_MAX,
    ORDER_MAX,
    Grant,
    GrantedDevice,
    LedgerEntry,
    NewerEntry,
    UnreadableEntry,
    decode_copy,
    decode_entry,
    encode_copy,
    encode_entry,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = TEXTS.filter(lambda one: "/" not in one and one != "")
DEVICES = st.builds(
    GrantedDevice,
    TEXTS,
    st.dictionaries(TEXTS.filter(lambda one: one != "id"), st.integers(0, AMOUNT_MAX), max_size=3),
)
GRANTS: st.SearchStrategy[Grant] = st.dictionaries(
    TEXTS.filter(lambda one: one != "v"), st.lists(DEVICES, max_size=3).map(tuple), max_size=3
)
ENTRIES = st.builds(
    LedgerEntry,
    st.builds("{}/{}".format, NAMES, NAMES),
    TEXTS.filter(bool),
    TEXTS,
    GRANTS,
    st.integers(0, ORDER_MAX),
)
GOOD = {
    "v": 1,
    "pod": "ns/name",
    "rv": "4711",
    "by": "policy",
    "g": {"gpu": [{"id": "2", "aliyun.com/gpu-mem": 16}]},
}


def test_an_entry_is_written_as_the_specification_says() -> None:
    entry = LedgerEntry("ns/name", "4711", "policy", {"gpu": (GrantedDevice("2", {"aliyun.com/gpu-mem": 16}),)})
    assert json.loads(encode_entry(entry)) == {**GOOD, "n": 0}
    assert decode_entry(json.dumps(GOOD)) == entry


@pytest.mark.parametrize(("devices", "is_shared"), [(1, True), (50, False)])
def test_equal_grants_are_kept_once_unless_they_are_long(devices: int, is_shared: bool) -> None:
    text = json.dumps({**GOOD, "g": {"gpu": [{"id": f"GPU-{number}", "memory": 16} for number in range(devices)]}})
    first, second = decode_entry(text), decode_entry(text)
    assert isinstance(first, LedgerEntry)
    assert isinstance(second, LedgerEntry)
    assert first == second
    assert (first.grant is second.grant) is is_shared


@given(ENTRIES)
def test_what_is_written_is_read(entry: LedgerEntry) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(GRANTS)
def test_a_copy_is_what_was_granted(grant: Grant) -> None:
    assert decode_copy(encode_copy(grant)) == grant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '"\ud800"',
        "[" * 100_000,
        json.dumps({key: one for key, one in GOOD.items() if key != "v"}),
        json.dumps({key: one for key, one in GOOD.items() if key != "rv"}),
        json.dumps({**GOOD, "v": 0}),
        json.dumps({**GOOD, "v": "1"}),
        json.dumps({**GOOD, "pod": "name"}),
        json.dumps({**GOOD, "rv": ""}),
        json.dumps({**GOOD, "g": {"gpu": [{"amount": 1}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": 2, "amount": 1}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": "2", "amount": "1"}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": "2", "amount": -1}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": "2", "amount": 1.5}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": "2", "amount": True}]}}),
        json.dumps({**GOOD, "g": {"gpu": [{"id": "2", "amount": AMOUNT_MAX + 1}]}}),
    ],
)
def test_what_cannot_be_read_is_an_entry_all_the_same(text: str) -> None:
    assert isinstance(decode_entry(text), UnreadableEntry)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert isinstance(decode_entry(text), LedgerEntry | NewerEntry | UnreadableEntry)
    decode_copy(text)


@pytest.mark.parametrize("rest", [{}, {"g": 4}, {"pod": None}])
def test_a_newer_entry_need_not_look_like_ours(rest: dict[str, object]) -> None:
    assert decode_entry(json.dumps({**rest, "v": 2})) == NewerEntry(2)


@pytest.mark.parametrize("version", [2, 99])
def test_a_newer_entry_tells_its_pod_and_the_version_of_it(version: int) -> None:
    written = {"v": version, "pod": "ns/name", "rv": "4711", "g": "in another way"}
    assert decode_entry(json.dumps(written)) == NewerEntry(version, "ns/name", "4711")


@pytest.mark.parametrize(
    ("wrong", "pod"), [({"g": 1}, "ns/name"), ({"rv": ""}, "ns/name"), ({"pod": "name"}, ""), ({"v": "1"}, "ns/name")]
)
def test_an_entry_that_cannot_be_read_may_tell_its_pod(wrong: dict[str, object], pod: str) -> None:
    found = decode_entry(json.dumps({**GOOD, **wrong}))
    assert isinstance(found, UnreadableEntry)
    assert (found.pod, found.rv) == (pod, "")


@pytest.mark.parametrize("order", [-1, ORDER_MAX + 1, AMOUNT_MAX, AMOUNT_MAX + 1, 10**30])
def test_an_order_that_nothing_can_follow_is_not_believed(order: int) -> None:
    found = decode_entry(json.dumps({**GOOD, "n": order}))
    assert isinstance(found, LedgerEntry)
    assert found.order == 0


@pytest.mark.parametrize("text", ['{"v":2,"gpu":[]}', '{"gpu":[]}', '{"v":1,"gpu":[{"id":1}]}', "2", "[[0,1]]"])
def test_an_annotation_of_others_is_no_copy(text: str) -> None:
    assert decode_copy(text) is None
