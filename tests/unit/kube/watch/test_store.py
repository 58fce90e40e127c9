"""Changes that a sink gets, and events read from the lines of a watch."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.kube.watch.store import Key, ObjectVersion, Store, read_event

Item = tuple[str, str, int]  # name, uid, version


class Told:
    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self) -> None:
        self.said.append("begin")

    def put(self, item: Item) -> None:
        self.said.append(f"put {item[0]} {item[1]} {item[2]}")

    def remove(self, key: Key) -> None:
        self.said.append(f"remove {key[1]}")

    def end(self) -> None:
        self.said.append("end")


def identify(item: Item) -> tuple[Key, ObjectVersion]:
    name, uid, version = item
    return ("", name), ObjectVersion(uid, str(version))


def listed(held: Store[Item], *items: Item, anew: bool = False, end: bool = True) -> None:
    held.begin(replay=anew)
    for item in items:
        held.list(item)
    if end:
        while held.sweep(1):
            pass
        held.end()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def held(told: Told) -> Store[Item]:
    held = Store(told, identify)
    listed(held, ("a", "1", 1), ("b", "2", 2))
    assert told.said == ["begin", "put a 1 1", "put b 2 2", "end"]
    told.said.clear()
    return held


def test_what_a_list_does_not_name_is_removed_before_its_end(held: Store[Item], told: Told) -> None:
    listed(held, ("b", "2", 2), ("c", "3", 3))
    assert told.said == ["begin", "put c 3 3", "remove a", "end"]


def test_all_that_a_list_does_not_name_is_removed_a_part_at_a_time(held: Store[Item], told: Told) -> None:
    held.begin(replay=False)
    assert [held.sweep(1), held.sweep(1)] == [True, False]
    assert sorted(told.said) == ["begin", "remove a", "remove b"]


def test_what_is_held_as_it_is_is_put_once_more_when_it_is_asked_for(held: Store[Item], told: Told) -> None:
    listed(held, ("a", "1", 1), ("b", "2", 2), anew=True)
    assert told.said == ["begin", "put a 1 1", "put b 2 2", "end"]
    told.said.clear()
    listed(held, ("a", "1", 1), ("b", "2", 2))
    assert told.said == ["begin", "end"]


def test_a_list_that_is_broken_off_removes_nothing_and_is_not_forgotten(held: Store[Item], told: Told) -> None:
    listed(held, ("a", "1", 1), anew=True, end=False)
    listed(held, ("a", "1", 1), ("b", "2", 2))
    assert told.said == ["begin", "put a 1 1", "begin", "put a 1 1", "put b 2 2", "end"]


def test_another_object_of_the_same_name_takes_the_place_of_the_first(held: Store[Item], told: Told) -> None:
    held.put(("a", "9", 9))
    listed(held, ("a", "9", 9), ("b", "8", 10))
    assert told.said == ["remove a", "put a 9 9", "begin", "remove b", "put b 8 10", "end"]


def test_a_late_delete_does_not_take_its_successor(held: Store[Item], told: Told) -> None:
    held.put(("a", "9", 9))
    held.gone(("", "a"), "1")
    assert held.versions[("", "a")] == ObjectVersion("9", "9")
    held.gone(("", "a"), "9")
    held.gone(("", "a"), "9")
    assert told.said == ["remove a", "put a 9 9", "remove a"]


def test_what_is_told_twice_is_put_once(held: Store[Item], told: Told) -> None:
    held.put(("a", "1", 1))
    held.put(("a", "1", 4))
    held.put(("a", "1", 4))
    assert told.said == ["put a 1 4"]


def test_what_cannot_be_read_in_a_list_stays(held: Store[Item], told: Told) -> None:
    held.begin(replay=False)
    held.skip(("", "a"))
    assert not held.sweep(5)
    held.end()
    assert told.said == ["begin", "remove b", "end"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=8), one, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]), st.dictionaries(st.text(), JSON))
def test_a_line_is_read_as_its_json_says_however_it_is_written(kind: str, obj: dict[str, Any]) -> None:
    event = {"type": kind, "object": obj}
    as_go = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    for line in (as_go, json.dumps(event), json.dumps(dict(reversed(event.items()))), f"{as_go} "):
        found = read_event(line.encode())
        assert (found.type, json.loads(bytes(found.object))) == (kind, obj)


@pytest.mark.parametrize("line", ["", "{", '{"type":"ADDED"}', '{"type":"ADDED","object":{}', '{"type":1,"object":{}}'])
def test_what_is_no_event_is_an_error(line: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_event(line.encode())


@pytest.mark.parametrize("line", ['{"type":"ADDED","object":{}}}', '{"type":"ADDED","object":{"a":}}'])
def test_an_object_that_was_cut_out_is_read_whole_by_whoever_decodes_it(line: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(read_event(line.encode()).object)
