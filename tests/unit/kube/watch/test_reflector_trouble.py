"""What a reflector makes of answers that are none, of silence, and of servers that are away."""

import asyncio
import logging
from pathlib import Path

import pytest
from aiohttp import web

from fairlead.kube.access.secret_files import FileSecret
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_status import Relist
from scripted.clock import Wound
from scripted.kept import Kept, decode
from scripted.loop import in_loop
from scripted.server import Server
from scripted.steps import (
    bookmark,
    broken,
    line,
    page,
    refuse,
    status_object,
    watch,
)
from support.kube.reflecting import HOLD, THINGS, A, B, C, reflecting


@in_loop
async def test_half_a_line_before_the_connection_broke_is_nothing() -> None:
    half = line("DELETED", A)[:40]
    async with reflecting(page(A, version=1), watch(line("ADDED", B), half, then="cut"), watch(line("ADDED", C))) as on:
        await on.until("list", "watch 1", "watch 2", "watch 3")
        assert {*on.sink.things} == {"a", "b", "c"}
        assert on.reflector.state.failures == {"unreachable": 1}


@in_loop
async def test_a_silent_watch_is_given_up_and_nothing_is_listed() -> None:
    async with reflecting(page(A, version=1), watch(bookmark(5), then="hold")) as on:
        await on.time.waiting.wait()
        while on.reflector.state.events["BOOKMARK"] < 1:
            await asyncio.sleep(0)
        on.time.advance(82)
        assert on.requests == ["list", "watch 1"], "75 s and a part of 15 must pass"
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

    async with reflecting(page(A, version=1), step) as on:
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
        assert on.requests == ["list", "watch 1"]
        on.time.advance(1)
        await on.until("list", "watch 1", "watch 5")


async def _turns() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


@in_loop
async def test_watches_that_stay_silent_one_after_another_are_not_believed() -> None:
    async with reflecting(page(A, version=9), HOLD, HOLD, page(B, version=2)) as on:
        for asked in (["list", "watch 9"], ["list", "watch 9", "watch 9"]):
            await on.until(*asked)
            await on.time.waiting.wait()
            on.time.waiting.clear()
            on.time.advance(100)
        await on.until("list", "watch 9", "watch 9", "list", "watch 2")
        assert {*on.sink.things} == {"b"}
        assert on.reflector.state.relists[Relist.SILENT] == 1


NO_EVENT = [b"<html>\n", b"[]\n", b'{"type":"DELETED","object":null}\n', b'{"type":"ADDED","object":{"metadata":5}}\n']


@pytest.mark.parametrize("bad", NO_EVENT)
@in_loop
async def test_what_is_no_event_breaks_the_watch(bad: bytes) -> None:
    async with reflecting(page(A, version=1), watch(line("ADDED", B) + bad), watch(line("ADDED", C))) as on:
        await on.until("list", "watch 1", "watch 2", "watch 3")
        assert on.reflector.state.failures == {"unreachable": 1}


@in_loop
async def test_waits_grow_while_the_server_is_away_and_it_says_why() -> None:
    away = [broken] * 8  # aiohttp asks twice, each time, in case it was the connection that was old
    async with reflecting(page(A, version=1), *away, watch(bookmark(2), then="hold")) as on:
        while on.reflector.state.events["BOOKMARK"] < 1:
            await asyncio.sleep(0)
        assert on.time.waited == [0.25, 0.5, 1, 2]
        assert on.reflector.state.last_error == ""
        assert on.reflector.state.failures == {"unreachable": 4}
        assert on.requests == ["list", *["watch 1"] * 9]


@in_loop
async def test_trouble_is_told_while_it_lasts() -> None:
    async with reflecting(page(A, version=1), refuse(403, "Forbidden", "not you"), HOLD) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.reflector.state.last_error == "watch things.test.dev: 403 Forbidden: not you"


@in_loop
async def test_after_five_failures_in_a_row_everything_is_listed() -> None:
    away = refuse(503)
    async with reflecting(page(A, version=1), *[away] * 5, page(B, version=2)) as on:
        await on.until("list", *["watch 1"] * 5, "list", "watch 2")
        assert on.reflector.state.relists[Relist.FAILING] == 1
        assert on.reflector.state.failures == {"503": 5}


@in_loop
async def test_a_server_that_is_away_for_long_is_not_asked_for_everything_when_it_is_back() -> None:
    async with reflecting(
        page(A, version=1), *[broken] * 20, *[refuse(429)] * 6, watch(line("ADDED", B), then="hold")
    ) as on:
        await on.sink.until(lambda: "b" in on.sink.things)
        assert on.reflector.state.relists == {Relist.START: 1}


@in_loop
async def test_a_watch_that_is_refused_for_good_leads_to_a_list() -> None:
    async with reflecting(page(A, version=1), refuse(400, "BadRequest"), page(B, version=2)) as on:
        await on.until("list", "watch 1", "list", "watch 2")
        assert on.reflector.state.relists[Relist.REFUSED] == 1


@in_loop
async def test_an_error_event_that_is_no_expiry_is_a_failure_like_others() -> None:
    async with reflecting(page(A, version=1), watch(line("ERROR", status_object(500, "InternalError")))) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.reflector.state.failures == {"500": 1}
        assert on.reflector.state.events == {"ERROR": 1}


@in_loop
async def test_a_watch_that_ends_at_once_is_no_good_watch() -> None:
    async with reflecting(page(A, version=1), watch(), watch()) as on:
        await on.until("list", *["watch 1"] * 3)
        assert on.time.waited == [0.25, 0.5]


@in_loop
async def test_it_waits_as_long_as_it_is_told() -> None:
    async with reflecting(page(A, version=1), refuse(429, Retry_After="17")) as on:
        await on.until("list", "watch 1", "watch 1")
        assert on.time.waited == [17]


@in_loop
async def test_it_waits_no_longer_than_it_would_by_itself() -> None:
    async with reflecting(
        page(A, version=1), refuse(503, Retry_After="86400"), refuse(429, Retry_After="9" * 400)
    ) as on:
        await on.until("list", "watch 1", "watch 1", "watch 1")
        assert on.time.waited == [30, 30]


@in_loop
async def test_trouble_is_a_line_when_it_begins_and_one_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairlead")
    away = [refuse(403, "Forbidden", "not you")] * 3
    async with reflecting(page(A, version=1), *away, refuse(503), watch(bookmark(2), bookmark(3), then="hold")) as on:
        while on.reflector.state.events["BOOKMARK"] < 2:
            await asyncio.sleep(0)
    said = [(one.levelname, one.getMessage(), getattr(one, "error", "")) for one in caplog.records]
    assert said == [
        ("WARNING", "reflector.failed", "watch things.test.dev: 403 Forbidden: not you"),
        ("WARNING", "reflector.failed", "watch things.test.dev: 503: no"),
        ("INFO", "reflector.recovered", ""),
    ]


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
