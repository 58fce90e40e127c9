"""When an entry is over: by four facts that stay true, whatever the age of the view that shows them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.grants.entry import COPY, AnyEntry, LedgerEntry, NewerEntry, UnreadableEntry
from fairlead.grants.entry_state import GONE, EntryState, Gone, PodState, judge, judge_listed, judge_read
from fairlead.resource_versions import is_newer
from fairlead.webhook.binding.api_calls import Posted
from support.grants.api_server import ApiServer
from support.grants.replica import RESOURCE

HOLDS, UNCLEAR = EntryState.HOLDS, EntryState.UNCLEAR
ENTRY = LedgerEntry("ns/a", "10", "policy", {})
UNREADABLE = UnreadableEntry("why")


def seen(rv: str, node: str = "", uid: str = "u", *, ended: bool = False) -> PodState:
    return PodState(uid, "ns/a", rv, node, ended)


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        ("11", "10", True),
        ("10", "11", False),
        ("100", "99", True),
        ("99", "100", False),
        ("10", "10", False),
        ("a", "a", False),
        ("a", "10", None),
        ("10", "a", None),
        ("010", "9", None),
        ("0", "9", None),
        ("", "9", None),
        ("¹", "9", None),
    ],
)
def test_versions_are_compared_as_numbers_or_not_at_all(version: str, than: str, newer: bool | None) -> None:
    assert is_newer(version, than) is newer


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (None, UNCLEAR),
        (GONE, EntryState.POD_GONE),
        (seen("10"), HOLDS),
        (seen("9"), HOLDS),
        (seen("11"), EntryState.POD_CHANGED),
        (seen("x"), UNCLEAR),
        (seen("9", "node-1"), HOLDS),
        (seen("11", "node-1"), HOLDS),
        (seen("x", "node-1"), HOLDS),
        (seen("11", "node-1", ended=True), EntryState.POD_ENDED),
        (seen("11", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("x", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("11", ended=True), EntryState.POD_ENDED),
        (seen("11", uid="after"), EntryState.POD_GONE),
        (seen("9", uid="before"), UNCLEAR),
        (seen("9", "node-2", uid="before"), UNCLEAR),
        (seen("9", uid="before", ended=True), UNCLEAR),
        (seen("x", uid="other"), UNCLEAR),
        (seen(""), UNCLEAR),
        (seen("", "node-1"), HOLDS),
        (seen("", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("", "node-1", uid="other"), UNCLEAR),
    ],
)
def test_a_view_of_any_age(shown: PodState | Gone | None, state: EntryState) -> None:
    assert judge("u", ENTRY, "node-1", shown) is state


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (None, UNCLEAR),
        (GONE, EntryState.POD_GONE),
        (seen("10"), HOLDS),
        (seen("10", "node-1"), HOLDS),
        (seen("10", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("99", uid="other"), UNCLEAR),
    ],
)
def test_an_entry_that_cannot_be_read_names_no_version(shown: PodState | Gone | None, state: EntryState) -> None:
    assert judge("u", UNREADABLE, "node-1", shown) is state


@pytest.mark.parametrize(
    ("read", "state"),
    [
        (GONE, EntryState.POD_GONE),
        (seen("9", uid="other"), EntryState.POD_GONE),
        (seen("10"), HOLDS),
        (seen("x"), EntryState.POD_CHANGED),
        (seen("11", "node-1"), HOLDS),
        (seen("11", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("11", "node-1", ended=True), EntryState.POD_ENDED),
    ],
)
def test_a_read_after_the_entry_was_seen(read: PodState | Gone, state: EntryState) -> None:
    assert judge_read("u", ENTRY, "node-1", read) is state


NEWER = NewerEntry(2, "ns/a", "10")


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (None, UNCLEAR),
        (GONE, EntryState.POD_GONE),
        (seen("10"), HOLDS),
        (seen("11"), EntryState.POD_CHANGED),
        (seen("11", "node-1"), HOLDS),
        (seen("11", "node-2"), EntryState.POD_ELSEWHERE),
        (seen("11", ended=True), EntryState.POD_ENDED),
        (seen("11", uid="after"), EntryState.POD_GONE),
    ],
)
def test_an_entry_of_a_newer_version_is_over_by_the_same_facts(
    shown: PodState | Gone | None, state: EntryState
) -> None:
    assert judge("u", NEWER, "node-1", shown) is state


NAMED = UnreadableEntry("why", "ns/a")


@pytest.mark.parametrize(
    ("entry", "unplaced", "here", "state"),
    [
        (ENTRY, None, None, EntryState.POD_GONE),
        (ENTRY, seen("10"), None, HOLDS),
        (ENTRY, seen("11"), None, EntryState.POD_CHANGED),
        (ENTRY, seen("10"), seen("11", "node-1"), HOLDS),
        (ENTRY, None, seen("11", "node-1"), HOLDS),
        (ENTRY, None, seen("11", "node-1", ended=True), EntryState.POD_ENDED),
        (NEWER, seen("11"), None, EntryState.POD_CHANGED),
        (NEWER, None, None, EntryState.POD_GONE),
        (NAMED, seen("11"), None, HOLDS),
        (NAMED, None, None, EntryState.POD_GONE),
        (UNREADABLE, None, seen("11", "node-1"), HOLDS),
        (UNREADABLE, None, None, EntryState.POD_GONE),
    ],
)
def test_two_lists_after_the_entry_was_seen(
    entry: AnyEntry, unplaced: PodState | None, here: PodState | None, state: EntryState
) -> None:
    lists = [{one.uid: one} if one is not None else {} for one in (unplaced, here)]
    assert judge_listed("u", entry, "node-1", *lists) is state


CHANGES = st.lists(st.sampled_from(["patch", "bind-1", "bind-2", "end", "delete", "create"]), max_size=8)


@given(CHANGES, st.data())
def test_an_entry_is_over_once_its_binding_has_no_effect_any_more(changes: list[str], data: st.DataObject) -> None:
    """Over by some view, if and only if the Binding is refused, and no pod runs by it."""
    server = ApiServer({}, numbers=True)
    server.create_pod("ns/a", {RESOURCE: 1})
    for change in changes:
        exists = "ns/a" in server.pods
        if change == "create" and not exists:
            server.create_pod("ns/a", {RESOURCE: 1})
        elif exists and change == "delete":
            server.delete_pod("ns/a")
        elif exists and change == "end":
            server.change_pod("ns/a", ended=True)
        elif exists and change == "patch":
            server.change_pod("ns/a", ended=server.pods["ns/a"].ended)
        elif exists and change.startswith("bind") and not server.pods["ns/a"].node:
            server.change_pod("ns/a", node=f"node-{change[-1]}")
    versions = [one["ns/a"] for one in server.pod_history if "ns/a" in one and not one["ns/a"].node]
    named = data.draw(st.sampled_from(versions))
    entry = LedgerEntry("ns/a", named.rv, "policy", {})
    was_over, bound_from = False, ""
    heard = set[str]()
    for before, state in pairwise([{}, *server.pod_history]):
        heard |= {one.uid for one in before.values()} - {one.uid for one in state.values()}
        shown = state.get("ns/a")
        was_over |= judge(named.uid, entry, "node-1", GONE if named.uid in heard else shown).is_over
        if shown is not None and shown.uid == named.uid and shown.node and not before["ns/a"].node:
            bound_from = before["ns/a"].rv
    now = server.pods.get("ns/a")
    runs = now is not None and now.uid == named.uid and now.node == "node-1" and not now.ended
    metadata = {"namespace": "ns", "name": "a", "uid": named.uid, "resourceVersion": named.rv}
    binding = {"metadata": {**metadata, "annotations": {COPY: "{}"}}, "target": {"name": "node-1"}}
    lands = isinstance(server.post_binding(binding), Posted) and now is not None and not now.ended
    assert was_over == (not lands and not (runs and bound_from == named.rv))
