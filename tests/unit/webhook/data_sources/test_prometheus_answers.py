"""Answers of Prometheus servers: good ones, large ones, and what is none."""

import asyncio
import gc
import gzip
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.policy.nodes.polls import PollError
from fairlead.webhook.data_sources import prometheus_client
from fairlead.webhook.data_sources.prometheus_client import BODY_BYTES_MAX, PrometheusClient
from fairlead.webhook.data_sources.prometheus_reply import WHOLE_BYTES, ReplyReader
from scripted.loop import in_loop
from scripted.server import Server, Step
from support.webhook.polled import reply, series
from support.webhook.prometheus import GOOD, POLL, answers, asking, failure, read

_SERIES = reply(series("0.5", node="a"), *[series(node="", pad="x" * 200_000)] * 82)
LARGEST = _SERIES.replace(b"x", b"x" * (BODY_BYTES_MAX - len(_SERIES) + 1), 1)
"""As large as a reply may be."""
RECEIVED_BYTES = 256 << 10
"""Most that the event loop receives at once."""
ANSWERS: Mapping[str, tuple[Step, str]] = {
    "a redirect": (
        answers(b"", 302, Location="https://me:hunter2@login.example.com/x?y"),
        (
            " answers 302 Found, a redirect to login.example.com, which is not followed: write the URL of the server"
            " itself in the settings"
        ),
    ),
    "a redirect to nowhere": (
        answers(b"", 301),
        " answers 301 Moved Permanently, a redirect, which is not followed: wri",
    ),
    "nobody": (answers(b"no healthy upstream", 503), " answers 503 Service Unavailable"),
    "an error of a proxy": (answers(b"<html>" * 30000, 502), " answers 502 Bad Gateway"),
    "an error of its own": (
        answers(b'{"status":"error","errorType":"timeout","error":"query timed out"}', 503),
        " answers 503 Service Unavailable: timeout: query timed out",
    ),
    "a query that is none": (
        answers(b'{"status":"error","errorType":"bad_data","error":"parse error"}', 400),
        " answers 400 Bad Request: bad_data: parse error",
    ),
    "no login": (
        answers(b"", 401),
        " answers 401 Unauthorized: the credentials are missing or refused; check bearerToken",
    ),
    "no right": (answers(b"", 403), " answers 403 Forbidden: these credentials may not query; check bearerToken"),
    "another program": (
        answers(b"", 404),
        " answers 404 Not Found: there is no API of Prometheus; the url in the settin",
    ),
    "nothing": (answers(b"", 204), " answers 204 No Content"),
    "nonsense": (answers(b"hello"), "the reply is not one of Prometheus: JSON is malformed"),
    "an error that is none": (answers(b'{"status":"error","errorType":"x","error":"y"}'), "x: y"),
    "a scalar": (
        answers(b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}'),
        "the query gives a sc",
    ),
    "an end": (answers(GOOD[:40]), "the reply is not one of Prometheus: Input data was truncated"),
    "no gzip": (
        answers(GOOD, Content_Encoding="gzip"),
        "the reply is not compressed with gzip, as its Content-Encoding",
    ),
    "half of it": (
        answers(gzip.compress(GOOD)[:-30], Content_Encoding="gzip"),
        "the reply is not one of Prometheus: ",
    ),
    "another encoding": (answers(GOOD, Content_Encoding="br"), "the reply is encoded with br, which was not asked for"),
    "more behind what is compressed": (
        answers(gzip.compress(GOOD) + b"x", Content_Encoding="gzip"),
        "the reply has more data after its compressed content",
    ),
    "nothing that is compressed": (
        answers(gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * (BODY_BYTES_MAX // 5), Content_Encoding="gzip"),
        "the reply is larger than 16 MiB: aggregate in the query, so that",
    ),
    "white space that does not end": (
        answers(GOOD[:-1] + b" " * (BODY_BYTES_MAX - len(GOOD)) + b"}"),
        "the reply is larger than 2 MiB and is not written as Prometheus writes it, so that it cannot be read in piec",
    ),
    "too much": (answers(LARGEST + b" "), "the reply is larger than 16 MiB: aggregate in the query, so that"),
    "too much later": (
        answers(gzip.compress(LARGEST + b" "), Content_Encoding="GZIP"),
        "the reply is larger than 16 MiB: aggregate in the query, so that",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
@in_loop
async def test_what_is_no_good_answer_is_a_failed_poll(case: str, tmp_path: Path) -> None:
    step, want = ANSWERS[case]
    async with Server(step) as server, asking(tmp_path, server.url) as client:
        said = await failure(client)
        assert said.removeprefix(server.url).startswith(want)
        assert said.startswith(server.url) == want.startswith(" ")
        assert "hunter2" not in said
        server.handler = answers()
        assert (await read(client)).values == {"a": 0.5}


@in_loop
async def test_what_is_just_small_enough_is_read(tmp_path: Path) -> None:
    body = LARGEST
    assert len(body) == BODY_BYTES_MAX
    async with Server(answers(body)) as server, asking(tmp_path, server.url) as client:
        assert (await read(client)).values == {"a": 0.5}
        server.handler = answers(gzip.compress(body), Content_Encoding="gzip")
        assert (await read(client)).values == {"a": 0.5}


@in_loop
async def test_of_a_bomb_no_more_than_the_limit_is_ever_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    more = [packer.compress(part) for part in (LARGEST, *[b" " * (1 << 20)] * 512)]
    bomb = b"".join(more) + packer.flush()
    unpacked, unzip = list[int](), zlib.decompressobj

    class Watched:
        def __init__(self, bits: int) -> None:
            self.inner = unzip(bits)

        def decompress(self, data: bytes, most: int) -> bytes:
            part = self.inner.decompress(data, most)
            unpacked.append(len(part))
            return part

        @property
        def unconsumed_tail(self) -> bytes:
            return self.inner.unconsumed_tail

        @property
        def unused_data(self) -> bytes:
            return self.inner.unused_data

        @property
        def eof(self) -> bool:
            return self.inner.eof

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    async with Server(answers(bomb, Content_Encoding="gzip")) as server, asking(tmp_path, server.url) as client:
        assert (await failure(client)).startswith("the reply is larger than 16 MiB")
    assert max(unpacked) <= 256 << 10
    assert sum(unpacked) <= BODY_BYTES_MAX + (256 << 10)


@asynccontextmanager
async def talking(unasked: bytes, go_on: asyncio.Event) -> AsyncIterator[str]:
    """A server that answers well, and says more on a connection on which nothing is asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(GOOD), GOOD))
        await go_on.wait()
        writer.write(unasked)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def is_quiet(client: PrometheusClient) -> bool:
    """Return whether nothing has come on the connection that is kept."""
    assert client._session.connector
    ((kept, _),) = [one for found in client._session.connector._conns.values() for one in found]
    return kept.is_connected() and not kept.should_close


WRONG = reply(series("666", node="a"))
UNASKED: Mapping[str, bytes] = {
    "an answer": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(WRONG), WRONG),
    "a part of one": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
    "what is no answer": b"hello\r\n\r\n",
}


@pytest.mark.parametrize("unasked", UNASKED)
@in_loop
async def test_what_comes_unasked_is_no_answer_and_keeps_no_poll(unasked: str, tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with talking(UNASKED[unasked], go_on) as url, asking(tmp_path, url) as client:
        for _ in range(3):
            go_on.clear()
            assert (await read(client)).values == {"a": 0.5}
            go_on.set()
            while is_quiet(client):
                await asyncio.sleep(0)


@in_loop
async def test_a_large_reply_is_read_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = list[int]()

    class Watched(ReplyReader):
        def add(self, chunk: bytes) -> bool:
            found = super().add(chunk)
            held.append(len(self._held))
            return found

    monkeypatch.setattr(prometheus_client, "ReplyReader", Watched)
    body = reply(*[series("1", node="", pad="x" * 300)] * 40_000)
    async with Server(answers(body)) as server, asking(tmp_path, server.url) as client:
        assert (await read(client)).values == {}
    assert len(body) > 8 * WHOLE_BYTES // 2
    assert max(held) < WHOLE_BYTES + RECEIVED_BYTES


@in_loop
async def test_a_reply_that_is_refused_is_freed_at_once(tmp_path: Path) -> None:
    """The garbage collector comes seldom, and does not know how large a reply is."""
    count, told = 60_000, list[str]()
    body = reply(*[series("1", node="x")] * count)
    assert len(body) > WHOLE_BYTES
    async with Server(answers(body)) as server, asking(tmp_path, server.url) as client:
        await client.read(POLL, 60, lambda _: None, count)
        gc.collect()
        gc.disable()
        try:
            for poll in (POLL, replace(POLL, time_query="up")):
                try:
                    await client.read(poll, 60, lambda _: None, 100)
                except PollError as error:
                    told.append(str(error))
                await asyncio.sleep(0)
            left = [one for one in gc.get_objects() if isinstance(one, ReplyReader)]
        finally:
            gc.enable()
        assert ["more than 100 series" in one for one in told] == [True, True], told
        assert left == []


@in_loop
async def test_a_reply_has_a_limit_of_series(tmp_path: Path) -> None:
    body = reply(*[series("1", node="x")] * 101)
    async with Server(answers(body)) as server, asking(tmp_path, server.url) as client:
        await client.read(POLL, 60, lambda _: None, 101)
        with pytest.raises(PollError, match="has more than 100 series: aggregate in the query, so that each node has"):
            await client.read(POLL, 60, lambda _: None, 100)
