"""Replies that come in parts: lists in pages, and watches in lines."""

import asyncio
from collections import Counter
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from aiohttp import web

from fairlead.kube.errors import UnreachableError
from fairlead.kube.http.client import Client, Lines
from fairlead.kube.resources import PODS, Page
from scripted.clock import Wound
from scripted.loop import in_loop
from scripted.server import Server
from scripted.steps import answer, line, page, refuse, thing, watch

things = msgspec.json.Decoder(Page[Any]).decode


@in_loop
async def test_a_list_comes_in_pages_of_one_version() -> None:
    script = page(thing("a", 1), version=7, more="x/+="), refuse(500), page(thing("b", 2), version=7)
    async with Server(script=[*script]) as server, Client(server.login(), clock=Wound().clock) as client:
        query = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
        got = [one async for one in client.pages(PODS, things, query=query, limit=1)]
        assert [item["metadata"]["name"] for one in got for item in one.items or ()] == ["a", "b"]
        assert [one.metadata.resource_version for one in got] == ["7", "7"]
        assert [seen.query for seen in server.seen] == [
            {**query, "limit": "1"},
            *[{**query, "limit": "1", "continue": "x/+="}] * 2,
        ]


@in_loop
async def test_the_next_page_is_requested_before_one_is_read() -> None:
    script = page(thing("a", 1), version=7, more="x"), page(thing("b", 2), version=7, more="y")
    async with Server(script=[*script]) as server, Client(server.login()) as client:
        async with aclosing(client.pages(PODS, things, limit=1)) as found, asyncio.timeout(30):
            await anext(found)
            while len(server.seen) < 2:
                await asyncio.sleep(0)
        assert [seen.query.get("continue") for seen in server.seen] == [None, "x"]


@in_loop
async def test_a_list_that_is_read_no_further_gives_up_its_next_page() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        asked.set()
        try:
            return await watch(then="hold")(request)
        finally:
            gone.set()

    script = page(thing("a", 1), version=7, more="x"), step
    async with Server(script=[*script]) as server, Client(server.login()) as client, asyncio.timeout(30):
        async with aclosing(client.pages(PODS, things, limit=1)) as found:
            await anext(found)
            await asked.wait()
        await gone.wait()


@in_loop
async def test_an_empty_list_of_go_is_a_list() -> None:
    async with Server(answer({"metadata": {}, "items": None})) as server, Client(server.login()) as client:
        assert [one.items async for one in client.pages(PODS, things)] == [None]


@in_loop
async def test_lines_of_a_watch_may_be_long_but_not_endless() -> None:
    long = line("ADDED", {"x": "y" * 2_000_000})
    async with Server(watch(long, b"{}\n", b"half")) as server, Client(server.login()) as client:
        async with aclosing(client.watch(PODS, {"resourceVersion": "1"})) as lines:
            assert [one async for one in lines] == [long[:-1], b"{}"]
        with pytest.raises(UnreachableError, match="a line is longer than 1000 bytes"):
            async with aclosing(client.watch(PODS, {}, line_bytes_max=1000)) as lines:
                [one async for one in lines]


@in_loop
async def test_a_watch_that_is_closed_gives_its_connection_up() -> None:
    gone = asyncio.Event()

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await watch(b"{}\n", then="hold")(request)
        finally:
            gone.set()

    async with Server(step) as server, Client(server.login()) as client:
        async with aclosing(client.watch(PODS, {})) as lines:
            assert await anext(lines) == b"{}"
        await gone.wait()


@in_loop
async def test_what_comes_in_a_pause_of_a_busy_watch_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    is_read, chunks = asyncio.Event(), list[bytes]()

    class Seen(Lines):
        def feed(self, chunk: bytes) -> list[bytes]:
            chunks.append(chunk)
            return super().feed(chunk)

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await is_read.wait()
        for _ in range(10):
            await response.write(b"later\n")
            await asyncio.sleep(0)
        return response

    monkeypatch.setattr("fairlead.kube.http.client.Lines", Seen)
    async with (
        Server(step) as server,
        Client(server.login()) as client,
        aclosing(client.watch(PODS, {}, pause_s=0.5)) as lines,
    ):
        assert await anext(lines) == b"first"
        is_read.set()
        assert [one async for one in lines] == [b"later"] * 10
    assert chunks == [b"first\n", b"later\n" * 10]


@in_loop
async def test_what_has_piled_up_is_handed_on_in_parts_between_which_calls_are_served() -> None:
    is_read, is_sent, turns = asyncio.Event(), asyncio.Event(), 0
    long = line("ADDED", {"x": "y" * 10_000})

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await is_read.wait()
        await response.write(long * 100)
        is_sent.set()
        return response

    async def be_served() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        Server(step) as server,
        Client(server.login()) as client,
        aclosing(client.watch(PODS, {}, pause_s=0.001)) as lines,
    ):
        assert await anext(lines) == b"first"
        is_read.set()
        await is_sent.wait()
        serving, at_once = asyncio.create_task(be_served()), Counter[int]()
        async for _ in lines:
            at_once[turns] += 1
        serving.cancel()
    assert sum(at_once.values()) == 100
    assert max(at_once.values()) < 10


@in_loop
async def test_a_connection_whose_watch_ended_in_a_pause_carries_the_next_reply() -> None:
    is_read, sources = asyncio.Event(), set[object]()
    long = line("ADDED", {"x": "y" * 100_000})

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        sources.add(request.transport.get_extra_info("peername"))
        if "watch" not in request.query:
            return await answer({})(request)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await is_read.wait()
        await response.write(long)  # more than the pause waits for
        return response

    async with Server(step) as server, Client(server.login()) as client, asyncio.timeout(10):
        async with aclosing(client.watch(PODS, {}, pause_s=0.2)) as lines:
            assert await anext(lines) == b"first"
            is_read.set()
            assert [one async for one in lines] == [long[:-1]]
        await client.get(PODS.named("default", "web-1"), msgspec.json.decode)
    assert len(sources) == 1
