"""What a reflector makes of lists and watches that go wrong, on real connections."""

import asyncio
from math import inf

import pytest
from msgspec import Raw, ValidationError

from fairlead.kube.watch.reflector_status import Relist
from scripted.kept import Thing, decode
from scripted.loop import in_loop
from scripted.server import Step
from scripted.steps import (
    EXPIRED,
    bookmark,
    line,
    page,
    pages,
    refuse,
    thing,
    watch,
)
from support.kube.reflecting import HOLD, A, B, C, reflecting


@in_loop
async def test_a_list_in_pages_and_a_watch_from_its_version() -> None:
    later = line("ADDED", C), line("MODIFIED", thing("a", 5, value=5)), line("DELETED", thing("b", 6))
    async with reflecting(
        *pages([A, B], version=4, size=1), watch(*later, then="hold"), query={"fieldSelector": "x!=y"}
    ) as on:
        await on.sink.until(lambda: on.sink.said[-1:] == ["remove b"])
        assert on.sink.said == ["begin", "put a 1", "put b 2", "end", "put c 3", "put a 5", "remove b"]
        assert on.requests == ["list", "list c1", "watch 4"]
        first, _, watched = on.server.seen
        assert first.query == {"fieldSelector": "x!=y", "limit": "250"}, "no resourceVersion: the truth, in pages"
        assert watched.query == {
            "fieldSelector": "x!=y",
            "watch": "true",
            "resourceVersion": "4",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "270",
        }
        state = on.reflector.state
        assert state.synced
        assert state.events == {"ADDED": 1, "MODIFIED": 1, "DELETED": 1}
        assert state.relists == {Relist.START: 1}
        assert not state.failures


@in_loop
async def test_the_last_state_of_a_deleted_object_is_put_if_the_sink_wants_it() -> None:
    later = line("DELETED", thing("a", 5, value=5)), line("DELETED", thing("c", 6))
    async with reflecting(page(A, version=4), watch(*later, then="hold"), puts_deleted=True) as on:
        await on.sink.until(lambda: on.sink.said[-1:] == ["remove c"])
        assert on.sink.said == ["begin", "put a 1", "end", "put a 5", "remove a", "put c 0", "remove c"]


@in_loop
async def test_a_watch_that_ends_is_followed_by_one_from_where_it_got_to() -> None:
    script = page(A, version=1), watch(line("ADDED", B)), watch(bookmark(9)), watch(line("DELETED", thing("a", 12)))
    async with reflecting(*script) as on:
        await on.until("list", "watch 1", "watch 2", "watch 9", "watch 12")
        assert on.reflector.state.relists == {Relist.START: 1}
        assert on.time.waited == []


@in_loop
async def test_a_version_that_expired_while_paging_begins_the_list_anew() -> None:
    script = page(A, version=1, more="c1"), refuse(410, "Expired"), *pages([B], version=3, size=1)
    async with reflecting(*script) as on:
        await on.until("list", "list c1", "list", "watch 3")
        assert on.sink.said == ["begin", "put a 1", "begin", "put b 2", "remove a", "end"]
        assert on.reflector.state.failures == {"410": 1}


EXPIRIES = {"an answer": [refuse(410, "Expired")], "an event": [watch(line("ADDED", C) + EXPIRED)]}


@pytest.mark.parametrize("expiry", EXPIRIES.values(), ids=EXPIRIES)
@in_loop
async def test_a_delete_that_nobody_heard_of_is_found_when_the_version_has_expired(expiry: list[Step]) -> None:
    async with reflecting(page(A, B, version=2), *expiry, page(A, version=7)) as on:
        await on.sink.until(lambda: on.sink.said.count("end") == 2)
        assert {*on.sink.things} == {"a"}
        assert on.reflector.state.relists == {Relist.START: 1, Relist.EXPIRED: 1}
        assert on.sink.said.count("put a 1") == 1, "what did not change is not put again"
        await on.until("list", "watch 2", "list", "watch 7")


@in_loop
async def test_lines_that_come_in_pieces_are_whole() -> None:
    stream = line("ADDED", B) + line("ADDED", C)
    chunks = [stream[start : start + 7] for start in range(0, len(stream), 7)]
    async with reflecting(page(A, version=1), watch(*chunks, then="hold")) as on:
        await on.sink.until(lambda: {*on.sink.things} == {"a", "b", "c"})


@in_loop
async def test_a_list_that_failed_is_made_again_before_anything_is_watched() -> None:
    async with reflecting(
        refuse(403, "Forbidden"), page(A, version=1, more="c1"), refuse(404), page(B, version=2)
    ) as on:
        assert on.reflector.staleness() == inf
        await on.until("list", "list", "list c1", "list", "watch 2")
        assert on.reflector.state.failures == {"403": 1, "404": 1}
        assert on.sink.said == ["begin", "begin", "put a 1", "begin", "put b 2", "remove a", "end"]


@in_loop
async def test_an_event_that_comes_twice_is_told_once() -> None:
    async with reflecting(
        page(A, version=1), watch(line("ADDED", B), line("ADDED", B), line("ADDED", C), then="hold")
    ) as on:
        await on.sink.until(lambda: "c" in on.sink.things)
        assert on.sink.said == ["begin", "put a 1", "end", "put b 2", "put c 3"]


@in_loop
async def test_another_object_of_the_same_name_is_another_object() -> None:
    other = thing("a", 8, uid="other", value=8)
    late = line("ADDED", other), line("DELETED", A), line("ADDED", C)
    async with reflecting(page(A, version=1), watch(*late, then="hold")) as on:
        await on.sink.until(lambda: "c" in on.sink.things)
        assert on.sink.said == ["begin", "put a 1", "end", "remove a", "put a 8", "put c 3"]


@in_loop
async def test_another_object_of_the_same_name_in_a_list_is_another_object_too() -> None:
    async with reflecting(page(A, version=1), refuse(410), page(thing("a", 8, uid="other", value=8), version=8)) as on:
        await on.until("list", "watch 1", "list", "watch 8")
        assert on.sink.said == ["begin", "put a 1", "end", "begin", "remove a", "put a 8", "end"]


@in_loop
async def test_one_object_that_cannot_be_read_does_not_keep_us_from_the_others() -> None:
    bad = thing("a", 4, value="no number")
    script = page(A, thing("x", 2, value=[]), B, version=2), watch(line("MODIFIED", bad), line("ADDED", C)), refuse(410)
    async with reflecting(*script, page(bad, B, C, version=5)) as on:
        await on.until("list", "watch 2", "watch 3", "list", "watch 5")
        assert {name: one.value for name, one in on.sink.things.items()} == {"a": 1, "b": 2, "c": 3}
        assert on.reflector.state.unreadable == 3


@in_loop
@pytest.mark.parametrize("error", [ValidationError, ValueError], ids=["cannot be read", "is a fault of the sink"])
async def test_one_object_that_the_sink_cannot_take_does_not_either(error: type[ValueError]) -> None:
    """Amounts, ports and owners of a pod are read after the rest of it."""
    bad = watch(line("MODIFIED", thing("a", 3, value=13)))
    script = page(A, thing("x", 2, value=13), B, version=2), bad, watch(line("ADDED", C)), refuse(410)
    async with reflecting(*script, page(thing("a", 4, value=7), B, C, version=5), watch(then="hold")) as on:
        take = on.sink.put

        def put(item: Thing) -> None:
            if item.value == 13:
                raise error("no amount")
            take(item)

        on.sink.put = put  # type: ignore[method-assign]
        await on.sink.until(lambda: "c" in on.sink.things)
        state, is_fault = on.reflector.state, error is ValueError
        assert {name: one.value for name, one in on.sink.things.items()} == {"a": 1, "b": 2, "c": 3}
        assert {key[1]: one.version for key, one in on.reflector.objects.items()} == {"a": "1", "b": "2", "c": "3"}
        assert (state.unreadable, state.failures["fault"]) == ((0, 2) if is_fault else (2, 0))
        assert state.faults == ({("default", name): "ValueError" for name in "xa"} if is_fault else {})
        await on.until("list", "watch 2", "watch 3", "watch 3", "list", "watch 5")
        assert state.faults == {}


@in_loop
async def test_a_bookmark_that_marks_nothing_is_no_reason_to_forget_where_we_are() -> None:
    async with reflecting(page(A, version=1), watch(line("BOOKMARK", {}))) as on:
        await on.until("list", "watch 1", "watch 1")


@in_loop
async def test_a_list_that_is_asked_for_puts_everything_again() -> None:
    async with reflecting(page(A, B, version=2), HOLD, page(A, B, version=2)) as on:
        await on.until("list", "watch 2")
        on.reflector.relist()
        await on.until("list", "watch 2", "list", "watch 2")
        assert on.sink.said == ["begin", "put a 1", "put b 2", "end"] * 2
        assert on.reflector.state.relists == {Relist.START: 1, Relist.ASKED: 1}


@in_loop
async def test_a_list_that_is_asked_for_when_another_is_due_puts_everything_too() -> None:
    async with reflecting(page(A, version=1), refuse(410), page(A, version=5)) as on:
        await on.until("list", "watch 1")
        on.reflector.relist()
        await on.sink.until(lambda: len(on.sink.said) == 6)
        assert on.sink.said == ["begin", "put a 1", "end"] * 2


@in_loop
async def test_a_list_that_is_asked_for_during_a_list_comes_after_it() -> None:
    async with reflecting(page(A, version=1), page(A, version=3)) as on:
        on.sink.end = lambda: on.reflector.relist() if not on.reflector.state.synced else None  # type: ignore[method-assign]
        await on.until("list", "list", "watch 3")


@in_loop
async def test_other_tasks_have_their_turn_within_a_page() -> None:
    many = [thing(f"t{number}", number) for number in range(250)]
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += not on.reflector.state.synced and bool(on.sink.things)
            await asyncio.sleep(0)

    async with reflecting(page(*many, version=300)) as on:
        beside = asyncio.create_task(other())
        await on.sink.until(lambda: on.sink.said[-1:] == ["end"])
        beside.cancel()
        assert turns >= 4


@in_loop
async def test_other_tasks_have_their_turn_before_a_large_object_is_put() -> None:
    turn, read_at, put_at = 0, list[int](), list[int]()

    async def other() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    def read(raw: Raw) -> Thing:
        read_at.append(turn)
        return decode(raw)

    async with reflecting(page(A, version=4), watch(line("ADDED", C), then="hold"), read=read, piece=1) as on:
        take = on.sink.put

        def put(item: Thing) -> None:
            put_at.append(turn)
            take(item)

        on.sink.put = put  # type: ignore[method-assign]
        beside = asyncio.create_task(other())
        await on.sink.until(lambda: on.sink.said[-1:] == ["put c 3"])
        beside.cancel()
        assert len(read_at) == len(put_at) == 2
        assert all(put > read for read, put in zip(read_at, put_at, strict=True))


META = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def _check(*looks: Step) -> tuple[int, list[str], list[str]]:
    """Hold a and b, and check; how many differ, what was asked for it, and what was put."""
    async with reflecting(page(A, B, version=2), HOLD) as on:
        await on.until("list", "watch 2")
        on.server.script += looks
        checking = asyncio.create_task(on.reflector.check())
        found = await checking
        before = len(on.sink.said)
        if found:
            on.server.script.append(page(A, version=9))
            await on.sink.until(lambda: on.sink.said[before:][-1:] == ["end"])
            assert on.reflector.state.relists[Relist.DIFFERS] == 1
            assert on.reflector.state.differences == found
        assert [one.headers["Accept"] for one in on.server.seen if one.headers["Accept"] != "application/json"] == [
            META
        ] * len(looks)
        return found, on.requests[2:], [*on.sink.things]


@in_loop
async def test_what_is_held_as_it_is_passes_the_check() -> None:
    assert await _check(page(A, B, version=2)) == (0, ["list"], ["a", "b"])


@in_loop
async def test_what_differs_once_is_under_way() -> None:
    changed = page(A, thing("b", 7), version=7)
    assert await _check(changed, page(A, B, version=2)) == (0, ["list", "list"], ["a", "b"])
    assert await _check(changed, page(A, thing("b", 8), version=8)) == (0, ["list", "list"], ["a", "b"])


DIFFERENT = {
    "changed": page(A, thing("b", 7), version=7),
    "another": page(A, thing("b", 2, uid="x"), version=7),
    "gone": page(A, version=7),
    "new": page(A, B, C, version=7),
}


@pytest.mark.parametrize("look", DIFFERENT.values(), ids=DIFFERENT)
@in_loop
async def test_what_differs_twice_is_wrong(look: Step) -> None:
    found, asked, _ = await _check(look, look)
    assert found == 1
    assert asked[:3] == ["list", "list", "list"]
