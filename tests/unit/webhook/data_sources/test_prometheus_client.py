"""Servers that behave and servers that do not, and what users are told of them."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from fairlead.api.parse import parse_params
from fairlead.policy.nodes.polls import Reading
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources import prometheus_client
from fairlead.webhook.data_sources.query_places import UNANSWERED_AT_ONCE
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import cut
from support.webhook.polled import reply, series
from support.webhook.prometheus import GOOD, POLL, SENT, answers, asking, failure, read


@in_loop
async def test_a_query_is_asked_and_its_values_are_those_of_the_moment_it_was_sent(tmp_path: Path) -> None:
    async with Server(answers()) as server, asking(tmp_path, f"{server.url}/ops/") as client:
        assert await read(client) == Reading({"a": 0.5}, SENT)
        (seen,) = server.seen
    assert (seen.method, seen.path) == ("GET", "/ops/api/v1/query")
    assert seen.query == {"query": "up", "timeout": "4500ms", "lookback_delta": "60s"}
    assert "Authorization" not in seen.headers


@in_loop
async def test_a_long_query_is_posted(tmp_path: Path) -> None:
    query = " or ".join(f'up{{job="é{number}"}}' for number in range(150))
    async with Server(answers()) as server, asking(tmp_path, server.url, timeout="30s") as client:
        assert (await read(client, replace(POLL, query=query))).values == {"a": 0.5}
        (seen,) = server.seen
    assert (seen.method, seen.path, seen.query) == ("POST", "/api/v1/query", {})
    assert seen.headers["Content-Type"] == "application/x-www-form-urlencoded"
    want = {"query": [query], "timeout": ["13500ms"], "lookback_delta": ["60s"]}
    assert parse_qs(seen.body.decode(), strict_parsing=True) == want


@in_loop
async def test_a_time_query_is_asked_as_well(tmp_path: Path) -> None:
    async def either(request: web.BaseRequest) -> web.StreamResponse:
        is_time = request.query["query"] == "timestamp(up)"
        return web.Response(body=reply(series("1700000000", node="a")) if is_time else GOOD)

    async def failing(request: web.BaseRequest) -> web.StreamResponse:
        is_time = request.query["query"] == "timestamp(up)"
        return web.Response(body=b"no" if is_time else GOOD, status=503 if is_time else 200)

    async def nonsense(request: web.BaseRequest) -> web.StreamResponse:
        is_time = request.query["query"] == "timestamp(up)"
        return web.Response(body=b"no" if is_time else GOOD)

    poll = replace(POLL, time_query="timestamp(up)")
    async with Server(either) as server, asking(tmp_path, server.url) as client:
        assert await read(client, poll) == Reading({"a": 0.5}, {"a": 1_700_000_000_000_000_000})
        server.handler = failing
        assert await failure(client, poll) == f"timeQuery: {server.url} answers 503 Service Unavailable"
        server.handler = nonsense
        assert (await failure(client, poll)).startswith("timeQuery: the reply is not one of Prometheus: ")


@in_loop
async def test_a_server_that_the_settings_do_not_have(tmp_path: Path) -> None:
    async with asking(tmp_path, "http://a") as client:
        two = [parse_params({"name": name, "url": "http://a"}, PrometheusServer) for name in ("default", "ops")]
        client.set_servers(two)
        said = await failure(client, replace(POLL, server="x"))
        assert said == 'there is no server "x"; there are default, ops'
        client.set_servers([])
        assert await failure(client) == 'there is no server "default"; the settings have none'


@in_loop
async def test_other_settings_hold_from_the_next_poll_on(tmp_path: Path) -> None:
    async with Server(answers()) as one, Server(answers()) as other, asking(tmp_path, one.url) as client:
        await read(client)
        client.set_servers([parse_params({"name": "default", "url": other.url}, PrometheusServer)])
        await read(client)
        assert (len(one.seen), len(other.seen)) == (1, 1)


@in_loop
async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with asking(tmp_path, f"http://127.0.0.1:{port}") as client:
        assert await failure(client) == f"http://127.0.0.1:{port} cannot be reached: Connection refused"


@in_loop
async def test_no_such_host(tmp_path: Path) -> None:
    async with asking(tmp_path, "http://prometheus.invalid:9090") as client:
        assert (await failure(client)).startswith("http://prometheus.invalid:9090 cannot be reached: ")


@contextmanager
def full() -> Iterator[int]:
    """A port that drops connections, as a NetworkPolicy does: its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


@in_loop
async def test_a_connection_that_is_dropped_hints_at_the_network_policy(tmp_path: Path) -> None:
    with full() as port:
        async with asking(tmp_path, f"http://127.0.0.1:{port}", timeout="3s") as client:
            assert await failure(client) == (
                f"http://127.0.0.1:{port} does not accept a connection within 2.4 s: a NetworkPolicy may drop the"
                " connection: that of kube-prometheus must allow the operator's pods"
            )


def silent(*parts: bytes) -> Step:
    """Sends the beginning of a reply, and then nothing; without parts it sends nothing at all."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        if parts:
            await response.prepare(request)
        for part in parts:
            await response.write(part)
        await asyncio.Event().wait()
        raise AssertionError

    return step


@pytest.mark.parametrize("step", [silent(), silent(GOOD[:10])], ids=["all", "the body"])
@pytest.mark.parametrize(("timeout", "interval"), [("1s", 15), ("5s", 1)])
@in_loop
async def test_who_waits_too_long_gives_up(timeout: str, interval: int, step: Step, tmp_path: Path) -> None:
    async with Server(step) as server, asking(tmp_path, server.url, timeout=timeout) as client:
        said = await failure(client, replace(POLL, interval_s=interval))
        want = f"{server.url} does not answer within 1 s: simplify the query, or raise timeout in the settings"
        assert said == want
        assert server.seen[0].query["timeout"] == "900ms"


@in_loop
async def test_a_connection_that_is_cut_off(tmp_path: Path) -> None:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        cut(request)
        return web.Response()

    async with Server(step) as server, asking(tmp_path, server.url) as client:
        assert (await failure(client)).startswith(f"the connection to {server.url} was lost: ")


@in_loop
async def test_what_answers_without_http(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with asking(tmp_path, url) as client:
            assert (await failure(client)).startswith(f"the connection to {url} was lost: ")


@in_loop
async def test_no_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server(answers()) as server, Server(answers()) as proxy, asking(tmp_path, server.url) as client:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        await read(client)
        assert (len(server.seen), len(proxy.seen)) == (1, 0)


@in_loop
async def test_queries_that_hang_keep_no_other_author_waiting_and_are_told_apart(tmp_path: Path) -> None:
    """Twice as many as there are places hang; another author's query is answered meanwhile, again and again."""
    hanging = [replace(POLL, query=f"hang_{number}") for number in range(40)]
    free, waiting = asyncio.Event(), list[int]()

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        if request.query["query"].startswith("hang"):
            waiting.append(1)
            await free.wait()
        return web.Response(body=GOOD)

    async with Server(step) as server, asking(tmp_path, server.url, timeout="30s") as client:
        client.set_owners({**dict.fromkeys(hanging, "hostile"), POLL: "honest"})
        polls = [asyncio.ensure_future(read(client, one)) for one in hanging]
        for _ in range(3):
            assert (await read(client)).values == {"a": 0.5}
        assert len(waiting) == UNANSWERED_AT_ONCE
        free.set()
        assert [one.values for one in await asyncio.gather(*polls)] == [{"a": 0.5}] * 40


@in_loop
async def test_the_time_of_a_query_begins_when_it_has_a_place_and_its_owner_is_told_of_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_client, "_LONG_S", 0.0)
    polls = [replace(POLL, query=f"slow_{number}") for number in range(UNANSWERED_AT_ONCE + 1)]

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        if request.query["query"] != polls[-1].query:
            await asyncio.Event().wait()
        return web.Response(body=GOOD)

    async with Server(step) as server, asking(tmp_path, server.url, timeout="1s") as client:
        *slow, last = await asyncio.gather(*(read(client, one) for one in polls), return_exceptions=True)
    assert all("does not answer within 1 s" in str(one) for one in slow)
    assert isinstance(last, Reading)
    assert last.values == {"a": 0.5}
    assert last.note == "the query waited 1 s for one of 20 places at the server, which other queries held"
