"""Decisions are read at the loopback address, by two at a time, in parts."""

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest

from fairlead.webhook.readers.decisions_server import PATH, DecisionsServer
from scripted.loop import in_loop


def two_parts() -> Iterator[bytes]:
    yield b"1\n"
    yield b"2\n"


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [
        ("GET", PATH, "127.0.0.1", 200),
        ("GET", PATH, "localhost:8081", 200),
        ("GET", PATH, "decisions.example", 421),
        ("GET", PATH, "127.0.0.1.example", 421),
        ("GET", PATH, "127.0.0.1:x", 421),
        ("GET", PATH, "a b[", 421),
        ("GET", "/metrics", "127.0.0.1", 404),
        ("POST", PATH, "127.0.0.1", 405),
    ],
)
@in_loop
async def test_answer(method: str, path: str, host: str, status: int) -> None:
    server = DecisionsServer(two_parts)
    port = await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            asked = session.request(method, f"http://127.0.0.1:{port}{path}", headers={"Host": host})
            async with asked as reply:
                assert reply.status == status
                assert status != 200 or await reply.read() == b"1\n2\n"
    finally:
        await server.stop()


@in_loop
async def test_a_third_reader_is_told_to_come_again() -> None:
    gate, entered = asyncio.Event(), asyncio.Semaphore(0)

    class Slow(DecisionsServer):
        async def _write(self, request: aiohttp.web.BaseRequest) -> aiohttp.web.StreamResponse:
            entered.release()
            await gate.wait()
            return await super()._write(request)

    server = Slow(two_parts)
    port = await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}{PATH}"
            waiting = [asyncio.ensure_future(session.get(url)) for _ in range(2)]
            for _ in waiting:
                await entered.acquire()
            async with session.get(url) as third:
                assert (third.status, third.headers["Retry-After"]) == (503, "1")
            gate.set()
            assert [one.status for one in await asyncio.gather(*waiting)] == [200, 200]
            async with session.get(url) as later:
                assert later.status == 200
    finally:
        await server.stop()
