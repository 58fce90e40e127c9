"""Turns as ConfigMaps, and what filter says by them."""

import json
import re
from typing import Any, Final

import pytest

from fairlead.groups.group import Group, Membership, group_hash
from fairlead.groups.members import GroupIndex
from fairlead.groups.turns import (
    NO_TURNS,
    PLACING,
    RESTING,
    WAITING,
    PreferredGroup,
    PublishedRest,
    PublishedTurn,
    Turns,
    read_turns,
    rejection,
    scheduler_of,
    turns_body,
    turns_name,
)

A: Final = Group("sched", "ns", "a")
OWN: Final = group_hash(A)
OTHER: Final = group_hash(Group("sched", "ns", "b"))
NOW: Final = 1_800_000_000.0
LONG: Final = ".".join(["label-" + "n" * 3] * 24)
TURNS: Final = Turns(
    PublishedTurn(OWN, NOW, NOW + 30.5, held_members=5, size=8, attempt=3),
    {OTHER: PublishedRest(NOW + 20, 2)},
    PreferredGroup(OTHER, NOW + 5),
)


def turn(group: str, until: float = NOW + 1) -> PublishedTurn:
    return PublishedTurn(group, NOW - 9, until, held_members=1, size=2, attempt=1)


def rest(until: float = NOW + 1) -> dict[str, PublishedRest]:
    return {OWN: PublishedRest(until, 1)}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (NO_TURNS, None),
        (Turns(turn(OTHER)), PLACING),
        (Turns(turn(OWN)), None),
        (Turns(turn(OTHER, NOW)), None),
        (Turns(rests=rest()), RESTING),
        (Turns(rests=rest(NOW)), None),
        (Turns(rests={OTHER: PublishedRest(NOW + 1, 1)}), None),
        (Turns(turn(OTHER), rest()), RESTING),
        (Turns(preferred=PreferredGroup(OTHER, NOW + 1)), PLACING),
        (Turns(preferred=PreferredGroup(OTHER, NOW)), None),
        (Turns(preferred=PreferredGroup(OWN, NOW + 1)), None),
        (Turns(turn(OWN), preferred=PreferredGroup(OTHER, NOW + 1)), None),
        (Turns(turn(OTHER, NOW), preferred=PreferredGroup(OTHER, NOW + 1)), PLACING),
    ],
    ids=[
        "nothing published",
        "another group's turn",
        "own turn",
        "another group's turn that is over",
        "own rest",
        "own rest that is over",
        "another group's rest",
        "rest comes before turn",
        "another is preferred",
        "another was preferred",
        "own group is preferred",
        "own turn comes before preference",
        "after the turn, another is preferred",
    ],
)
def test_a_member_of_a_complete_group_is_rejected_by_what_is_published(turns: Turns, expected: str | None) -> None:
    index = GroupIndex()
    for uid in "01":
        index.put_known(uid, Membership(A, 2, 30, "policy", "gang"))
    assert rejection("0", Membership(A, 2, 30, "policy", "gang"), index, turns, NOW) == expected


@pytest.mark.parametrize(
    ("known", "uid", "says", "expected"),
    [
        ({"0": 2}, "0", 2, WAITING),
        ({"0": 2, "1": 2}, "0", 2, None),
        ({"0": 2, "1": 3}, "0", 2, WAITING),
        ({"0": 2, "1": 2}, "0", 3, WAITING),
        ({"1": 2}, "0", 2, None),
        ({}, "0", 2, WAITING),
    ],
    ids=["alone", "complete", "a sibling says more", "it says more", "not heard of itself", "heard of none"],
)
def test_a_group_waits_for_its_members(known: dict[str, int], uid: str, says: int, expected: str | None) -> None:
    index = GroupIndex()
    for one, size in known.items():
        index.put_known(one, Membership(A, size, 30, "policy", "gang"))
    assert rejection(uid, Membership(A, says, 30, "policy", "gang"), index, NO_TURNS, NOW) == expected


def test_a_group_waits_for_its_members_before_all_else() -> None:
    turns = Turns(turn(OTHER), rest())
    assert rejection("0", Membership(A, 2, 30, "policy", "gang"), GroupIndex(), turns, NOW) == WAITING


def test_a_group_that_has_started_is_not_rejected() -> None:
    index = GroupIndex()
    index.put_placed(("ns", "7"), (A,))
    turns = Turns(turn(OTHER), rest())
    assert rejection("0", Membership(A, 2, 30, "policy", "gang"), index, turns, NOW) is None


def test_what_is_written_is_read() -> None:
    document = read_turns(turns_body("sched", TURNS))
    assert (document.value, document.fault) == (TURNS, "")


def test_nothing_at_all_is_written_and_read() -> None:
    assert read_turns(turns_body("sched", NO_TURNS)).value == NO_TURNS


def test_a_body_is_found_by_its_label_and_says_its_format() -> None:
    metadata = turns_body("sched", TURNS)["metadata"]
    assert metadata["name"] == "fairlead-turns-sched"
    assert metadata["labels"] == {"fairlead.dev/turns": ""}
    assert metadata["annotations"] == {"fairlead.dev/format": "1", "fairlead.dev/scheduler": "sched"}


def test_what_is_not_there_is_no_fault() -> None:
    document = read_turns(None)
    assert (document.value, document.fault) == (None, "")


GOOD: Final = json.loads(turns_body("sched", TURNS)["data"]["turns"])


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"turns": ""},
        {"turns": "[]"},
        {"turns": "{"},
        {"turns": '{"later":' + "[" * 100_000},
        {"turns": 3},
        {"turns": json.dumps({**GOOD, "turn": {**GOOD["turn"], "until": "soon"}})},
        {"turns": json.dumps({**GOOD, "turn": {**GOOD["turn"], "held_members": -1}})},
        {"turns": json.dumps({**GOOD, "turn": {**GOOD["turn"], "until": 1e300}})},
        {"turns": json.dumps({**GOOD, "rests": [1]})},
        {"turns": json.dumps({**GOOD, "preferred": {}})},
    ],
)
def test_what_cannot_be_read_says_why_and_is_lost(data: Any) -> None:
    document = read_turns({**turns_body("sched", TURNS), "data": data})
    assert document.value is None
    assert re.match(r"ConfigMap fairlead-turns-sched, turns of groups, cannot be read: .*", document.fault)


@pytest.mark.parametrize(("written", "is_read"), [("2", False), ("1", True), (None, True), ("x", False)])
def test_a_newer_format_is_not_read(written: str | None, is_read: bool) -> None:
    body = turns_body("sched", TURNS)
    annotations = {} if written is None else {"fairlead.dev/format": written}
    document = read_turns({**body, "metadata": {**body["metadata"], "annotations": annotations}})
    assert (document.value == TURNS) is is_read
    assert ("upgrade Fairlead" in document.fault) is not is_read


def test_fields_of_later_versions_are_passed_over() -> None:
    body = turns_body("sched", TURNS)
    body["data"] = {"turns": json.dumps({**GOOD, "more": 1, "turn": {**GOOD["turn"], "more": 1}})}
    assert read_turns(body).value == TURNS


@pytest.mark.parametrize("longer", range(12))
def test_a_long_name_is_cut_and_still_the_schedulers_own(longer: int) -> None:
    names = [turns_name("n" * longer + LONG + ending) for ending in ("a", "b")]
    assert len(set(names)) == 2
    for name in names:
        assert len(name) <= 253
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)


def test_the_scheduler_of_a_long_name_is_in_the_annotation() -> None:
    assert scheduler_of(turns_body(LONG, NO_TURNS)) == LONG


def test_the_scheduler_without_an_annotation_is_in_the_name() -> None:
    assert scheduler_of({"metadata": {"name": "fairlead-turns-sched"}}) == "sched"
