"""What a reflector makes of lists and watches that go wrong, on real connections."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import pytest
from aiohttp import web
from msgspec import ValidationError

from fairlead.kube.access.secret_files import FileSecret
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_status import Relist
from scripted.clock import Wound
from scripted.kept import Kept, Thing, decode
from scripted.loop import in_loop
from scripted.server import Seen, Server, Step
from scripted.steps import (
    EXPIRED,
    bookmark,
    broken,
    line,
    page,
    pages,
    refuse,
    status_object,
    thing,
    watch,
)

THINGS = ObjectRef(Resource("test.dev", "v1", "things"))
HOLD = watch(then="hold")


@dataclass
class Scene:
    server: Server
    reflector: Reflector[Thing]
    time: Wound
    sink: Kept = field(default_factory=Kept)

    @property
    def asked(self) -> list[str]:
        """What was asked: `list`, `list c1` with the place that it goes on from, `watch 3` with the version."""
        return [_asked(one) for one in self.server.seen]

    async def until(self, *asked: str) -> None:
        """Wait until this was what was asked."""
        while len(self.asked) < len(asked):
            await asyncio.sleep(0)
        assert self.asked == [*asked]


def _asked(seen: Seen) -> str:
    if "watch" in seen.query:
        return f"watch {seen.query['resourceVersion']}"
    return f"list {seen.query['continue']}" if "continue" in seen.query else "list"


@asynccontextmanager
async def scene(*script: Step, query: dict[str, str] | None = None) -> AsyncIterator[Scene]:
    """A reflector that runs against a script; what comes after the script is silence."""
    time, sink = Wound(), Kept()
    async with Server(HOLD, script=[*script]) as server, Client(server.login(), clock=time.clock) as client:
        reflector = Reflector(client, THINGS, decode=decode, sink=sink, query=query or {}, clock=time.clock)
        running = asyncio.create_task(reflector.run())
        try:
            yield Scene(server, reflector, time, sink)
        finally:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
    assert server.script == [], "some of the script was not asked for"


A, B, C = thing("a", 1, value=1), thing("b", 2, value=2), thing("c", 3, value=3)


@in_loop
async def test_a_list_in_pages_and_a_watch_from_its_version() -> None:
    later = line("ADDED", C), line("MODIFIED", thing("a", 5, value=5)), line("DELETED", thing("b", 6))
    async with scene(
        *pages([A, B], version=4, size=1), watch(*later, then="hold"), query={"fieldSelector": "x!=y"}
    ) as on:
        await on.sink.until(lambda: on.sink.said[-1:] == ["remove b"])
        assert on.sink.said == ["begin", "put a 1", "put b 2", "end", "put c 3", "put a 5", "remove b"]
        assert on.asked == ["list", "list c1", "watch 4"]
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
async def test_a_watch_that_ends_is_followed_by_one_from_where_it_got_to() -> None:
    script = page(A, version=1), watch(line("ADDED", B)), watch(bookmark(9)), watch(line("DELETED", thing("a", 12)))
    async with scene(*script) as on:
        await on.until("list", "watch 1", "watch 2", "watch 9", "watch 12")
        assert on.reflector.state.relists == {Relist.START: 1}
        assert on.time.waited == []


@in_loop
async def test_a_version_that_expired_while_paging_begins_the_list_anew() -> None:
    script = page(A, version=1, more="c1"), refuse(410, "Expired"), *pages([B], version=3, size=1)
    async with scene(*script) as on:
        await on.until("list", "list c1", "list", "watch 3")
        assert on.sink.said == ["begin", "put a 1", "begin", "put b 2", "remove a", "end"]
        assert on.reflector.state.failures == {"410": 1}


EXPIRIES = {"an answer": [refuse(410, "Expired")], "an event": [watch(line("ADDED", C) + EXPIRED)]}


@pytest.mark.parametrize("expiry", EXPIRIES.values(), ids=EXPIRIES)
@in_loop
async def test_a_delete_that_nobody_heard_of_is_found_when_the_version_has_expired(expiry: list[Step]) -> None:
    async with scene(page(A, B, version=2), *expiry, page(A, version=7)) as on:
        await on.sink.until(lambda: on.sink.said.count("end") == 2)
        assert {*on.sink.things} == {"a"}
        assert on.reflector.state.relists == {Relist.START: 1, Relist.EXPIRED: 1}
        assert on.sink.said.count("put a 1") == 1, "what did not change is not put again"
        await on.until("list", "watch 2", "list", "watch 7")


@in_loop
async def test_half_a_line_before_the_connection_broke_is_nothing() -> None:
    half = line("DELETED", A)[:40]
    async with scene(page(A, version=1), watch(line("ADDED", B), half, then="cut"), watch(line("ADDED", C))) as on:
        await on.until("list", "watch 1", "watch 2", "watch 3")
        assert {*on.sink.things} == {"a", "b", "c"}
        assert on.reflector.state.failures == {"unreachable": 1}


@in_loop
async def test_lines_that_come_in_pieces_are_whole() -> None:
    stream = line("ADDED", B) + line("ADDED", C)
    chunks = [stream[start : start + 7] for start in range(0, len(stream), 7)]
    async with scene(page(A, version=1), watch(*chunks, then="hold")) as on:
        await on.sink.until(lambda: {*on.sink.things} == {"a", "b", "c"})


@in_loop
async def test_a_silent_watch_is_given_up_and_nothing_is_listed() -> None:
    async with scene(page(A, version=1), watch(bookmark(5), then="hold")) as on:
        await on.time.waiting.wait()
        while on.reflector.state.events["BOOKMARK"] < 1:
            await asyncio.sleep(0)
        on.time.advance(82)
        assert on.asked == ["list", "watch 1"], "75 s and a part of 15 must pass"
        on.time.advance(1)
        await on.until("list", "watch 1", "watch 5")
        assert on.reflector.staleness() == 83
        assert on.reflector.state.failures == {"silent": 1}


@in_loop
async def test_contact_puts_off_the_end_of_silence() -> None:
    more = asyncio.Event()

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await more.wait()
        await response.write(bookmark(5))
        await asyncio.Event().wait()
        return response

    async with scene(page(A, version=1), step) as on:
        await on.until("list", "watch 1")
        on.time.advance(60)
        assert on.reflector.staleness() == 0, "a watch of what does not change is not behind"
        heard = on.reflector.state.last_contact
        more.set()
        while on.reflector.state.last_contact == heard:
            await asyncio.sleep(0)
        on.time.advance(30)
        await _turns()
        on.time.advance(52)
        await _turns()
        assert on.asked == ["list", "watch 1"]
        on.time.advance(1)
        await on.until("list", "watch 1", "watch 5")


async def _turns() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


@in_loop
async def test_a_list_that_failed_is_made_again_before_anything_is_watched() -> None:
    async with scene(refuse(403, "Forbidden"), page(A, version=1, more="c1"), refuse(404), page(B, version=2)) as on:
        assert on.reflector.staleness() == inf
        await on.until("list", "list", "list c1", "list", "watch 2")
        assert on.reflector.state.failures == {"403": 1, "404": 1}
        assert on.sink.said == ["begin", "begin", "put a 1", "begin", "put b 2", "remove a", "end"]


@in_loop
async def test_watches_that_stay_silent_one_after_another_are_not_believed() -> None:
    async with scene(page(A, version=9), HOLD, HOLD, page(B, version=2)) as on:
        for asked in (["list", "watch 9"], ["list", "watch 9", "watch 9"]):
            await on.until(*asked)
            await on.time.waiting.wait()
            on.time.waiting.clear()
            on.time.advance(100)
        await on.until("list", "watch 9", "watch 9", "list", "watch 2")
        assert {*on.sink.things} == {"b"}
        assert on.reflector.state.relists[Relist.SILENT] == 1


@in_loop
async def test_an_event_that_comes_twice_is_told_once() -> None:
    async with scene(
        page(A, version=1), watch(line("ADDED", B), line("ADDED", B), line("ADDED", C), then="hold")
    ) as on:
        await on.sink.until(lambda: "c" in on.sink.things)
        assert on.sink.said == ["begin", "put a 1", "end", "put b 2", "put c 3"]


@in_loop
async def test_another_object_of_the_same_name_is_another_object() -> None:
    other = thing("a", 8, uid="other", value=8)
    late = line("ADDED", other), line("DELETED", A), line("ADDED", C)
    async with scene(page(A, version=1), watch(*late, then="hold")) as on:
        await on.sink.until(lambda: "c" in on.sink.things)
        assert on.sink.said == ["begin", "put a 1", "end", "remove a", "put a 8", "put c 3"]


@in_loop
async def test_another_object_of_the_same_name_in_a_list_is_another_object_too() -> None:
    async with scene(page(A, version=1), refuse(410), page(thing("a", 8, uid="other", value=8), version=8)) as on:
        await on.until("list", "watch 1", "list", "watch 8")
        assert on.sink.said == ["begin", "put a 1", "end", "begin", "remove a", "put a 8", "end"]


@in_loop
async def test_one_object_that_cannot_be_read_does_not_keep_us_from_the_others() -> None:
    bad = thing("a", 4, value="no number")
    script = page(A, thing("x", 2, value=[]), B, version=2), watch(line("MODIFIED", bad), line("ADDED", C)), refuse(410)
    async with scene(*script, page(bad, B, C, version=5)) as on:
        await on.until("list", "watch 2", "watch 3", "list", "watch 5")
        assert {name: one.value for name, one in on.sink.things.items()} == {"a": 1, "b": 2, "c": 3}
        assert on.reflector.state.unreadable == 3


@in_loop
@pytest.mark.parametrize("error", [ValidationError, ValueError], ids=["cannot be read", "is a fault of the sink"])
async def test_one_object_that_the_sink_cannot_take_does_not_either(error: type[ValueError]) -> None:
    """Amounts, ports and owners of a pod are read after the rest of it."""
    bad = watch(line("MODIFIED", thing("a", 3, value=13)))
    script = page(A, thing("x", 2, value=13), B, version=2), bad, watch(line("ADDED", C)), refuse(410)
    async with scene(*script, page(thing("a", 4, value=7), B, C, version=5), watch(then="hold")) as on:
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
    async with scene(page(A, version=1), watch(line("BOOKMARK", {}))) as on:
        await on.until("list", "watch 1", "watch 1")


NO_EVENT = [b"<html>\n", b"[]\n", b'{"type":"DELETED","object":null}\n', b'{"type":"ADDED","object":{"metadata":5}}\n']


@pytest.mark.parametrize("bad", NO_EVENT)
@in_loop
async def test_what_is_no_event_breaks_the_watch(bad: bytes) -> None:
    async with scene(page(A, version=1), watch(line("ADDED", B) + bad), watch(line("ADDED", C))) as on:
        await on.until("list", "watch 1", "watch 2", "watch 3")
        assert on.reflector.state.failures == {"unreachable": 1}


@in_loop
async def test_waits_grow_while_the_server_is_away_and_it_says_why() -> None:
    away = [broken] * 8  # aiohttp asks twice, each time, in case it was the connection that was old
    async with scene(page(A, version=1), *away, watch(bookmark(2), then="hold")) as on:
        while on.reflector.state.events["BOOKMARK"] < 1:
            await asyncio.sleep(0)
        assert on.time.waited == [0.25, 0.5, 1, 2]
        assert on.reflector.state.last_error == ""
        assert on.reflector.state.failures == {"unreachable": 4}
        assert on.asked == ["list", *["watch 1"] * 9]


@in_loop
async def test_trouble_is_told_while_it_lasts() -> None:
    async with scene(page(A, version=1), refuse(403, "Forbidden", "not you"), HOLD) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.reflector.state.last_error == "watch things.test.dev: 403 Forbidden: not you"


@in_loop
async def test_after_five_failures_in_a_row_everything_is_listed() -> None:
    away = refuse(503)
    async with scene(page(A, version=1), *[away] * 5, page(B, version=2)) as on:
        await on.until("list", *["watch 1"] * 5, "list", "watch 2")
        assert on.reflector.state.relists[Relist.FAILING] == 1
        assert on.reflector.state.failures == {"503": 5}


@in_loop
async def test_a_server_that_is_away_for_long_is_not_asked_for_everything_when_it_is_back() -> None:
    async with scene(
        page(A, version=1), *[broken] * 20, *[refuse(429)] * 6, watch(line("ADDED", B), then="hold")
    ) as on:
        await on.sink.until(lambda: "b" in on.sink.things)
        assert on.reflector.state.relists == {Relist.START: 1}


@in_loop
async def test_a_watch_that_is_refused_for_good_leads_to_a_list() -> None:
    async with scene(page(A, version=1), refuse(400, "BadRequest"), page(B, version=2)) as on:
        await on.until("list", "watch 1", "list", "watch 2")
        assert on.reflector.state.relists[Relist.REFUSED] == 1


@in_loop
async def test_an_error_event_that_is_no_expiry_is_a_failure_like_others() -> None:
    async with scene(page(A, version=1), watch(line("ERROR", status_object(500, "InternalError")))) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.reflector.state.failures == {"500": 1}
        assert on.reflector.state.events == {"ERROR": 1}


@in_loop
async def test_a_watch_that_ends_at_once_is_no_good_watch() -> None:
    async with scene(page(A, version=1), watch(), watch()) as on:
        await on.until("list", *["watch 1"] * 3)
        assert on.time.waited == [0.25, 0.5]


@in_loop
async def test_it_waits_as_long_as_it_is_told() -> None:
    async with scene(page(A, version=1), refuse(429, Retry_After="17")) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.time.waited == [17]


@in_loop
async def test_it_waits_no_longer_than_it_would_by_itself() -> None:
    async with scene(page(A, version=1), refuse(503, Retry_After="86400"), refuse(429, Retry_After="9" * 400)) as on:
        await on.until("list", "watch 1", "watch 1", "watch 1")
        assert on.time.waited == [30, 30]


@in_loop
async def test_trouble_is_a_line_when_it_begins_and_one_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairlead")
    away = [refuse(403, "Forbidden", "not you")] * 3
    async with scene(page(A, version=1), *away, refuse(503), watch(bookmark(2), bookmark(3), then="hold")) as on:
        while on.reflector.state.events["BOOKMARK"] < 2:
            await asyncio.sleep(0)
    said = [(one.levelname, one.getMessage(), getattr(one, "error", "")) for one in caplog.records]
    assert said == [
        ("WARNING", "reflector.failed", "watch things.test.dev: 403 Forbidden: not you"),
        ("WARNING", "reflector.failed", "watch things.test.dev: 503: no"),
        ("INFO", "reflector.recovered", ""),
    ]


@in_loop
async def test_a_list_that_is_asked_for_puts_everything_again() -> None:
    async with scene(page(A, B, version=2), HOLD, page(A, B, version=2)) as on:
        await on.until("list", "watch 2")
        on.reflector.relist()
        await on.until("list", "watch 2", "list", "watch 2")
        assert on.sink.said == ["begin", "put a 1", "put b 2", "end"] * 2
        assert on.reflector.state.relists == {Relist.START: 1, Relist.ASKED: 1}


@in_loop
async def test_a_list_that_is_asked_for_when_another_is_due_puts_everything_too() -> None:
    async with scene(page(A, version=1), refuse(410), page(A, version=5)) as on:
        await on.until("list", "watch 1")
        on.reflector.relist()
        await on.sink.until(lambda: len(on.sink.said) == 6)
        assert on.sink.said == ["begin", "put a 1", "end"] * 2


@in_loop
async def test_a_list_that_is_asked_for_during_a_list_comes_after_it() -> None:
    async with scene(page(A, version=1), page(A, version=3)) as on:
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

    async with scene(page(*many, version=300)) as on:
        beside = asyncio.create_task(other())
        await on.sink.until(lambda: on.sink.said[-1:] == ["end"])
        beside.cancel()
        assert turns >= 4


@in_loop
async def test_a_token_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    token, time, sink = tmp_path / "token", Wound(), Kept()
    access = FileSecret(token, "tokenFile", "mend it")
    script = [page(A, version=1)]
    async with Server(HOLD, script=script) as server, Client(server.login(access), clock=time.clock) as client:
        reflector = Reflector(client, THINGS, decode=decode, sink=sink, clock=time.clock)
        running = asyncio.create_task(reflector.run())
        while reflector.state.failures["access"] < 3:
            await asyncio.sleep(0)
        assert reflector.state.last_error == f"{token}: tokenFile: no such file or directory; mend it"
        token.write_text("t")
        await sink.until(lambda: "a" in sink.things)
        running.cancel()
        await asyncio.wait({running})


@in_loop
async def test_what_goes_wrong_in_the_sink_is_not_hidden() -> None:
    async with Server(script=[page(A, version=1)]) as server, Client(server.login()) as client:
        sink = Kept()
        empty: dict[str, None] = {}
        sink.end = lambda: empty["no such key"]  # type: ignore[method-assign]
        with pytest.raises(KeyError, match="no such key"):
            await Reflector(client, THINGS, decode=decode, sink=sink).run()


META = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def _check(*looks: Step) -> tuple[int, list[str], list[str]]:
    """Hold a and b, and check; how many differ, what was asked for it, and what was put."""
    async with scene(page(A, B, version=2), HOLD) as on:
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
        return found, on.asked[2:], [*on.sink.things]


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
