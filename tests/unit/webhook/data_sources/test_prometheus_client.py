"""Servers that behave and servers that do not, and what users are told of them."""

import asyncio
import gc
import gzip
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from fairlead.api.parse import parse_params
from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.policy.nodes.polls import PollError, PrometheusPoll, Reading
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources import prometheus_client
from fairlead.webhook.data_sources.prometheus_client import BODY_BYTES_MAX, PrometheusClient
from fairlead.webhook.data_sources.prometheus_reply import WHOLE_BYTES, ReplyReader
from fairlead.webhook.data_sources.query_places import UNANSWERED_AT_ONCE
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import cut
from support.webhook.polled import reply, series
from support.webhook.tls import HOSTS, NOW, YEAR, Ground
from testbed import cache

SENT = 1_800_000_000_000_000_000
POLL = PrometheusPoll("default", "up", "node", None, 15)
GOOD = reply(series("0.5", node="a"))
_SERIES = reply(series("0.5", node="a"), *[series(node="", pad="x" * 200_000)] * 82)
LARGEST = _SERIES.replace(b"x", b"x" * (BODY_BYTES_MAX - len(_SERIES) + 1), 1)
"""As large as a reply may be."""
RECEIVED_BYTES = 256 << 10
"""Most that the event loop receives at once."""
SECRET = {"secret": "s", "key": "k"}


def says(body: bytes = GOOD, status: int = 200, **headers: str) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return step


@asynccontextmanager
async def asking(folder: Path, url: str, **fields: Any) -> AsyncIterator[PrometheusClient]:
    """A client of one server, with its files in `folder`."""
    async with PrometheusClient(folder, lambda: SENT) as client:
        client.set_servers([parse_params({"name": "default", "url": url} | fields, PrometheusServer)])
        yield client


async def read(client: PrometheusClient, poll: PrometheusPoll = POLL) -> Reading:
    return await client.read(poll, 60, lambda label: label if label in ("a", "b") else None)


async def failure(client: PrometheusClient, poll: PrometheusPoll = POLL) -> str:
    with pytest.raises(PollError) as failed:
        await read(client, poll)
    said = str(failed.value)
    assert said.isprintable()
    return said


def file(folder: Path, name: str, content: bytes | str) -> None:
    """Replace a file, as the kubelet does."""
    path = folder / "prometheus" / "default" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    cache.write(path, content)


@in_loop
async def test_a_query_is_asked_and_its_values_are_those_of_the_moment_it_was_sent(tmp_path: Path) -> None:
    async with Server(says()) as server, asking(tmp_path, f"{server.url}/ops/") as client:
        assert await read(client) == Reading({"a": 0.5}, SENT)
        (seen,) = server.seen
    assert (seen.method, seen.path) == ("GET", "/ops/api/v1/query")
    assert seen.query == {"query": "up", "timeout": "4500ms", "lookback_delta": "60s"}
    assert "Authorization" not in seen.headers


@in_loop
async def test_a_long_query_is_posted(tmp_path: Path) -> None:
    query = " or ".join(f'up{{job="é{number}"}}' for number in range(150))
    async with Server(says()) as server, asking(tmp_path, server.url, timeout="30s") as client:
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
    async with Server(says()) as one, Server(says()) as other, asking(tmp_path, one.url) as client:
        await read(client)
        client.set_servers([parse_params({"name": "default", "url": other.url}, PrometheusServer)])
        await read(client)
        assert (len(one.seen), len(other.seen)) == (1, 1)


ANSWERS: Mapping[str, tuple[Step, str]] = {
    "a redirect": (
        says(b"", 302, Location="https://me:hunter2@login.example.com/x?y"),
        (
            " answers 302 Found, a redirect to login.example.com, which is not followed: write the URL of the server"
            " itself in the settings"
        ),
    ),
    "a redirect to nowhere": (says(b"", 301), " answers 301 Moved Permanently, a redirect, which is not followed: wri"),
    "nobody": (says(b"no healthy upstream", 503), " answers 503 Service Unavailable"),
    "an error of a proxy": (says(b"<html>" * 30000, 502), " answers 502 Bad Gateway"),
    "an error of its own": (
        says(b'{"status":"error","errorType":"timeout","error":"query timed out"}', 503),
        " answers 503 Service Unavailable: timeout: query timed out",
    ),
    "a query that is none": (
        says(b'{"status":"error","errorType":"bad_data","error":"parse error"}', 400),
        " answers 400 Bad Request: bad_data: parse error",
    ),
    "no login": (
        says(b"", 401),
        " answers 401 Unauthorized: the credentials are missing or refused; check bearerToken",
    ),
    "no right": (says(b"", 403), " answers 403 Forbidden: these credentials may not query; check bearerToken"),
    "another program": (says(b"", 404), " answers 404 Not Found: there is no API of Prometheus; the url in the settin"),
    "nothing": (says(b"", 204), " answers 204 No Content"),
    "nonsense": (says(b"hello"), "the reply is not one of Prometheus: JSON is malformed"),
    "an error that is none": (says(b'{"status":"error","errorType":"x","error":"y"}'), "x: y"),
    "a scalar": (says(b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}'), "the query gives a sc"),
    "an end": (says(GOOD[:40]), "the reply is not one of Prometheus: Input data was truncated"),
    "no gzip": (says(GOOD, Content_Encoding="gzip"), "the reply is not compressed with gzip, as its Content-Encoding"),
    "half of it": (
        says(gzip.compress(GOOD)[:-30], Content_Encoding="gzip"),
        "the reply is not one of Prometheus: ",
    ),
    "another encoding": (says(GOOD, Content_Encoding="br"), "the reply is encoded with br, which was not asked for"),
    "more behind what is compressed": (
        says(gzip.compress(GOOD) + b"x", Content_Encoding="gzip"),
        "the reply goes on after the end of what is compressed in it",
    ),
    "nothing that is compressed": (
        says(gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * (BODY_BYTES_MAX // 5), Content_Encoding="gzip"),
        "the reply is larger than 16 MiB: aggregate in the query, so that",
    ),
    "white space that does not end": (
        says(GOOD[:-1] + b" " * (BODY_BYTES_MAX - len(GOOD)) + b"}"),
        "the reply is larger than 2 MiB and is not written as Prometheus writes it, so that it cannot be read in piec",
    ),
    "too much": (says(LARGEST + b" "), "the reply is larger than 16 MiB: aggregate in the query, so that"),
    "too much later": (
        says(gzip.compress(LARGEST + b" "), Content_Encoding="GZIP"),
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
        server.handler = says()
        assert (await read(client)).values == {"a": 0.5}


@in_loop
async def test_what_is_just_small_enough_is_read(tmp_path: Path) -> None:
    body = LARGEST
    assert len(body) == BODY_BYTES_MAX
    async with Server(says(body)) as server, asking(tmp_path, server.url) as client:
        assert (await read(client)).values == {"a": 0.5}
        server.handler = says(gzip.compress(body), Content_Encoding="gzip")
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
    async with Server(says(bomb, Content_Encoding="gzip")) as server, asking(tmp_path, server.url) as client:
        assert (await failure(client)).startswith("the reply is larger than 16 MiB")
    assert max(unpacked) <= 256 << 10
    assert sum(unpacked) <= BODY_BYTES_MAX + (256 << 10)


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
    async with Server(says()) as server, Server(says()) as proxy, asking(tmp_path, server.url) as client:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        await read(client)
        assert (len(server.seen), len(proxy.seen)) == (1, 0)


# logins


@in_loop
async def test_a_token_is_read_again_at_each_poll(tmp_path: Path) -> None:
    async with Server(says()) as server, asking(tmp_path, server.url, bearerToken=SECRET) as client:
        for token in ("first", "second\n"):
            file(tmp_path, "token", token)
            await read(client)
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer first", "Bearer second"]


@in_loop
async def test_a_token_of_the_service_account(tmp_path: Path) -> None:
    file(tmp_path, "token", "mine")
    async with Server(says()) as server, asking(tmp_path, server.url, serviceAccount={}) as client:
        await read(client)
        assert server.seen[0].headers["Authorization"] == "Bearer mine"


@in_loop
async def test_a_user_and_a_password(tmp_path: Path) -> None:
    file(tmp_path, "username", "me\n")
    file(tmp_path, "password", "pässword: 1")
    async with Server(says()) as server, asking(tmp_path, server.url, basicAuth={"secret": "s"}) as client:
        await read(client)
        want = b64encode("me:pässword: 1".encode()).decode()
        assert server.seen[0].headers["Authorization"] == f"Basic {want}"


@in_loop
async def test_headers_of_the_settings(tmp_path: Path) -> None:
    headers = [{"name": "X-Scope-OrgID", "value": "ops"}, {"name": "x-other", "value": "a, b"}]
    async with Server(says()) as server, asking(tmp_path, server.url, headers=headers) as client:
        await read(client)
        seen = {name.lower(): value for name, value in server.seen[0].headers.items()}
        assert (seen["x-scope-orgid"], seen["x-other"]) == ("ops", "a, b")


@in_loop
async def test_a_redirect_takes_nothing_along(tmp_path: Path) -> None:
    file(tmp_path, "token", "mine")
    async with Server(says()) as other, Server() as server:
        for status in (301, 302, 303, 307, 308):
            server.script.append(says(b"", status, Location=f"{other.url}/api/v1/query?query=up"))
        async with asking(tmp_path, server.url, bearerToken=SECRET) as client:
            for _ in [*server.script]:
                assert f"a redirect to 127.0.0.1:{other.port}, which is not followed" in await failure(client)
        assert (len(server.seen), other.seen) == (5, [])


FILES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str], str]] = {
    "no token": (
        {"bearerToken": {"secret": "prometheus-token", "key": "my-token"}},
        {},
        (
            "/token: bearerToken: no such file or directory; it is the key my-token of the Secret prometheus-token:"
            " create it, or correct the settings"
        ),
    ),
    "an empty token": ({"bearerToken": SECRET}, {"token": "\n"}, "/token: bearerToken: is empty; it is the key k of"),
    "two tokens": (
        {"bearerToken": SECRET},
        {"token": "a\nX-Injected: b"},
        "/token: bearerToken: has more than one line; it must be one line of text",
    ),
    "no token of ours": (
        {"serviceAccount": {}},
        {},
        "/token: serviceAccount: no such file or directory; the chart mounts a token of its ServiceAccount here",
    ),
    "no password": (
        {"basicAuth": {"secret": "login"}},
        {"username": "me"},
        "/password: basicAuth: no such file or directory; it is the key password of the Secret login: create it, or",
    ),
    "a user with a colon": (
        {"basicAuth": {"secret": "login"}},
        {"username": "me:you", "password": "x"},
        "/username: basicAuth: has a ':'; no user name may have one",
    ),
    "no authority": (
        {"url": "https://127.0.0.1:1", "ca": {"configMap": "service-ca", "key": "service-ca.crt"}},
        {},
        "/ca.crt: ca: no such file or directory; it is the key service-ca.crt of the ConfigMap service-ca: create it,",
    ),
    "no PEM": (
        {"url": "https://127.0.0.1:1", "ca": SECRET},
        {"ca.crt": "MIIB"},
        "/ca.crt: ca: holds no certificate; it must be PEM: -----BEGIN CERTIFICATE-----",
    ),
    "no key": (
        {"url": "https://127.0.0.1:1", "clientCertificate": {"secret": "client"}},
        {"tls.crt": "x"},
        "/tls.key: clientCertificate: no such file or directory; it is the key tls.key of the Secret client: create it",
    ),
    "no certificate": (
        {"url": "https://127.0.0.1:1", "clientCertificate": {"secret": "client"}},
        {"tls.crt": "x", "tls.key": "y"},
        "/tls.crt: clientCertificate: the certificate and the key do not match: ",
    ),
}


@pytest.mark.parametrize("case", FILES)
@in_loop
async def test_files_that_cannot_be_used_are_named_with_where_they_come_from(case: str, tmp_path: Path) -> None:
    fields, files, want = FILES[case]
    for name, content in files.items():
        file(tmp_path, name, content)
    async with Server(says()) as server, asking(tmp_path, **{"url": server.url, **fields}) as client:
        said = await failure(client)
        assert said.startswith(f"{tmp_path}/prometheus/default{want}")
        assert server.seen == []


# TLS


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Certificates, with the authority where the server's settings have it."""
    made = Ground(tmp_path)
    file(tmp_path, "ca.crt", made.ca.certificate)
    return made


def serving(ground: Ground, hosts: list[str], *, demands: bool = False, life: timedelta = YEAR) -> ssl.SSLContext:
    """Context of a server with a certificate for these hosts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = NOW - timedelta(days=30) if life < YEAR else NOW
    context.load_cert_chain(*ground.write("s", issue_leaf(ground.ca, "s", "server", issued, life, hosts)))
    if demands:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=ground.ca.certificate.decode())
    return context


@in_loop
async def test_a_server_with_the_right_certificate(ground: Ground, tmp_path: Path) -> None:
    async with Server(says(), serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        assert (await read(client)).values == {"a": 0.5}


@in_loop
async def test_a_name_in_the_certificate_that_is_not_the_host(ground: Ground, tmp_path: Path) -> None:
    async with Server(says(), serving(ground, ["other.example.com"])) as server:
        async with asking(tmp_path, server.url, ca=SECRET) as client:
            said = await failure(client)
        assert said.startswith(f"{server.url} is not trusted: IP address mismatch, certificate is not valid for")
        assert said.endswith("; see ca and serverName of the server in the settings")
        async with asking(tmp_path, server.url, ca=SECRET, serverName="other.example.com") as client:
            assert (await read(client)).values == {"a": 0.5}
        async with asking(tmp_path, server.url, ca=SECRET, serverName="another.example.com") as client:
            assert "Hostname mismatch, certificate is not valid for 'another.example.com'" in await failure(client)


@in_loop
async def test_a_certificate_of_nobody_we_know(ground: Ground, tmp_path: Path) -> None:
    file(tmp_path, "token", "mine")
    async with Server(says(), serving(ground, HOSTS)) as server:
        async with asking(tmp_path, server.url, bearerToken=SECRET) as client:  # the authorities of the system
            assert "is not trusted: unable to get local issuer certificate" in await failure(client)
        file(tmp_path, "ca.crt", create_authority("ca", NOW, YEAR).certificate)
        async with asking(tmp_path, server.url, ca=SECRET, bearerToken=SECRET) as client:
            assert f"{server.url} is not trusted: " in await failure(client)
        assert server.seen == []


@in_loop
async def test_a_certificate_that_has_expired(ground: Ground, tmp_path: Path) -> None:
    tls = serving(ground, HOSTS, life=timedelta(days=2))
    async with Server(says(), tls) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        assert f"{server.url} is not trusted: certificate has expired" in await failure(client)


@in_loop
async def test_an_authority_is_read_again_at_each_poll(ground: Ground, tmp_path: Path) -> None:
    other = create_authority("other", NOW, YEAR)
    async with Server(says(), serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        file(tmp_path, "ca.crt", other.certificate)
        assert "is not trusted" in await failure(client)
        file(tmp_path, "ca.crt", other.certificate + ground.ca.certificate)
        assert (await read(client)).values == {"a": 0.5}
        file(tmp_path, "ca.crt", other.certificate)
        assert "is not trusted" in await failure(client)  # no connection of before is used


@in_loop
async def test_a_client_certificate_is_shown_and_read_again(ground: Ground, tmp_path: Path) -> None:
    names = list[object]()

    async def who(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        names.append(dict(one[0] for one in request.transport.get_extra_info("peercert")["subject"])["commonName"])
        return web.Response(body=GOOD)

    fields = {"ca": SECRET, "clientCertificate": {"secret": "client"}}
    async with Server(who, serving(ground, HOSTS, demands=True)) as server:
        async with asking(tmp_path, server.url, **fields) as client:
            for name in ("first", "second"):
                pair = issue_leaf(ground.ca, name, "client", NOW, YEAR)
                file(tmp_path, "tls.crt", pair.certificate)
                file(tmp_path, "tls.key", pair.key)
                await read(client)
        async with asking(tmp_path, server.url, ca=SECRET) as client:
            said = await failure(client)
    assert names == ["first", "second"]
    assert said.startswith(f"the connection to {server.url} was lost: ")


@in_loop
async def test_no_tls_where_there_should_be(ground: Ground, tmp_path: Path) -> None:
    async with Server(says()) as server:
        url = f"https://127.0.0.1:{server.port}"
        async with asking(tmp_path, url, ca=SECRET) as client:
            assert (await failure(client)).startswith(f"{url} does not speak TLS with us: ")


@in_loop
async def test_a_connection_is_used_again(ground: Ground, tmp_path: Path) -> None:
    peers = set[object]()

    async def who(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=GOOD)

    async with Server(who, serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        for _ in range(3):
            await read(client)
    assert len(peers) == 1


# places, and what is not asked for


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
    async with Server(says(body)) as server, asking(tmp_path, server.url) as client:
        assert (await read(client)).values == {}
    assert len(body) > 8 * WHOLE_BYTES // 2
    assert max(held) < WHOLE_BYTES + RECEIVED_BYTES


@in_loop
async def test_a_reply_that_is_refused_is_freed_at_once(tmp_path: Path) -> None:
    """The garbage collector comes seldom, and does not know how large a reply is."""
    count, told = 60_000, list[str]()
    body = reply(*[series("1", node="x")] * count)
    assert len(body) > WHOLE_BYTES
    async with Server(says(body)) as server, asking(tmp_path, server.url) as client:
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
    async with Server(says(body)) as server, asking(tmp_path, server.url) as client:
        await client.read(POLL, 60, lambda _: None, 101)
        with pytest.raises(PollError, match="has more than 100 series: aggregate in the query, so that each node has"):
            await client.read(POLL, 60, lambda _: None, 100)
