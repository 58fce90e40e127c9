"""Metrics over TLS are for callers of whom the API server says that they may read them, and for no others."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead.kube.http.client import Client
from fairlead.pki.issuing import issue_leaf
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.readers.delegated_access import ALLOWED_S, DENIED_S, KEPT_MAX, DelegatedAccess
from fairlead.webhook.readers.metrics_server import PATH, MetricsServer
from scripted.server import Server
from support.webhook.tls import HOSTS, NOW, YEAR, Connection, Ground, Received, connect

OTHER = "127.0.0.2"
SCRAPER = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "1",
    "groups": ["system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["prometheus-0"]},
}
USERS: dict[str, Any] = {
    "good": {"authenticated": True, "user": SCRAPER, "audiences": ["https://kubernetes.default.svc"]},
    "powerless": {"authenticated": True, "user": {"username": "someone"}},
    "of-another-audience": {"error": 'token audiences ["vault"] is invalid for the target audiences'},
    "expired": {"authenticated": False, "user": SCRAPER},
    "nameless": {"authenticated": True, "user": {}},
}
"""What a TokenReview says of each token; of others it says nothing."""


class World:
    """An API server, the metrics that ask it, and their callers."""

    def __init__(self, folder: Path) -> None:
        self.ground, self.refused = Ground(folder), Counter[str]()
        self.now = 100.0
        self.reviews = Counter[str]()
        self.spec: Any = None
        self.may = {SCRAPER["username"]}
        self.denied = False
        self.answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = self.review
        self.gate = asyncio.Event()
        self.gate.set()
        self.tls = Tls(self.ground.files)
        self.opened: list[Connection] = []
        self.port = 0
        self.access: DelegatedAccess

    async def review(self, request: web.BaseRequest) -> web.StreamResponse:
        await self.gate.wait()
        kind = request.path.rpartition("/")[2]
        self.reviews[kind] += 1
        asked = await request.json()
        assert asked["kind"].lower() + "s" == kind
        if kind == "tokenreviews":
            assert asked["spec"].keys() == {"token"}, "without audiences the API server means its own"
            return web.json_response({"status": USERS.get(asked["spec"]["token"], {})}, status=201)
        self.spec = asked["spec"]
        allowed = self.spec["user"] in self.may
        return web.json_response({"status": {"allowed": allowed, "denied": self.denied}}, status=201)

    async def get(self, *tokens: str, come_from: str = "127.0.0.1", **more: Any) -> Received:
        connection = await self.connect(come_from)
        return await self.ask(connection, *tokens, **more)

    async def connect(self, come_from: str = "127.0.0.1") -> Connection:
        self.opened.append(await connect(self.port, self.ground.client(None), come_from=come_from))
        return self.opened[-1]

    async def ask(
        self, connection: Connection, *tokens: str, path: str = PATH, method: str = "GET", scheme: str = "Bearer"
    ) -> Received:
        shown = "\r\nAuthorization: ".join(f"{scheme} {token}" for token in tokens)
        return await connection.call(path, b"", method, Authorization=shown, **{"Content-Length": ""})


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    made = World(folder)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await made.answer(request)

    async with Server(handle) as api, Client(api.login()) as client:
        made.access = DelegatedAccess(client, PATH, lambda: made.now)
        server = MetricsServer(
            made.tls,
            lambda: web.Response(text="counted 1\n"),
            made.access.decide,
            lambda why, _: made.refused.update([why]),
        )
        made.port = await server.start("127.0.0.1", 0)
        try:
            yield made
        finally:
            made.gate.set()
            for connection in made.opened:
                await connection.close()
            await server.stop()


def told(folder: Path, story: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with world(folder) as made, asyncio.timeout(120):
            await story(made)

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("tokens", "scheme", "status", "reason"),
    [
        pytest.param(["good"], "Bearer", 200, "", id="may"),
        pytest.param(["good"], "bearer", 200, "", id="scheme-in-lower-case"),
        pytest.param([], "", 401, "no token", id="no-token"),
        pytest.param([""], "Bearer", 401, "no token", id="empty"),
        pytest.param(["good"], "Basic", 401, "no token", id="another-scheme"),
        pytest.param(["good", "good"], "Bearer", 401, "no token", id="two"),
        pytest.param(["good more"], "Bearer", 401, "no token", id="with-a-blank"),
        pytest.param(["wrong"], "Bearer", 401, "unknown token", id="wrong"),
        pytest.param(["of-another-audience"], "Bearer", 401, "unknown token", id="of-another-audience"),
        pytest.param(["expired"], "Bearer", 401, "unknown token", id="not-authenticated-but-named"),
        pytest.param(["nameless"], "Bearer", 401, "unknown token", id="nameless"),
        pytest.param(["powerless"], "Bearer", 403, "not allowed", id="without-permission"),
    ],
)
def test_who_is_answered(tmp_path: Path, tokens: list[str], scheme: str, status: int, reason: str) -> None:
    async def story(one: World) -> None:
        answer = await one.get(*tokens, scheme=scheme)
        assert answer.status == status
        assert (b"counted" in answer.body) is (status == 200)
        assert answer.headers.get("www-authenticate") == ("bearer" if status == 401 else None)
        assert one.refused == ({f"metrics: {reason}": 1} if reason else {})
        assert not {"tokenreviews", "subjectaccessreviews"} & one.reviews.keys() or reason != "no token"

    told(tmp_path, story)


def test_the_api_server_is_asked_about_the_whole_user_and_one_path(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        assert (await one.get("good")).status == 200
        assert one.spec == {
            "user": SCRAPER["username"],
            **{key: SCRAPER[key] for key in ("uid", "groups", "extra")},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        one.denied = True  # as an authorizer says that forbids what others allow
        one.now += ALLOWED_S
        assert (await one.get("good")).status == 403

    told(tmp_path, story)


def test_nothing_else_is_there(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        assert (await one.get("good", path="/readyz")).status == 404
        assert (await one.get("good", method="POST")).status == 405
        assert one.reviews == {}

    told(tmp_path, story)


async def refuse(_request: web.BaseRequest) -> web.StreamResponse:
    """As RBAC does."""
    message = (
        'tokenreviews.authentication.k8s.io is forbidden: User "x" cannot create resource "tokenreviews" in API group '
        '"authentication.k8s.io" at the cluster scope'
    )
    status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}
    return web.json_response(status, status=403)


async def fail(_request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"kind": "Status", "code": 500, "message": "etcd is away"}, status=500)


async def break_off(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return web.Response()


async def answer_nonsense(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b'{"status": {"authenticated": "yes"}}', status=201)


@pytest.mark.parametrize("answer", [refuse, fail, break_off, answer_nonsense])
def test_without_an_answer_no_one_is_admitted_and_nothing_is_kept(
    tmp_path: Path, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(one: World) -> None:
        one.answer = answer
        refused = await one.get("good")
        assert (refused.status, b"counted" in refused.body) == (500, False)
        assert one.refused == {"metrics: no review": 1}
        assert bool(one.access.missing) is (answer is refuse)
        one.answer = one.review
        assert (await one.get("good")).status == 200
        assert one.access.missing == ""

    with caplog.at_level(logging.WARNING):
        told(tmp_path, story)
    assert "metrics.review_failed" in caplog.messages
    assert "good" not in caplog.text


def test_an_answer_holds_for_a_while_and_no_longer(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        for token, status, lasts in (("good", 200, ALLOWED_S), ("powerless", 403, DENIED_S), ("wrong", 401, DENIED_S)):
            one.reviews.clear()
            for step in (0.0, lasts - 0.001):
                one.now += step
                assert (await one.get(token)).status == status
                assert one.reviews["tokenreviews"] == 1
            one.now += 0.001
            assert (await one.get(token)).status == status
            assert one.reviews["tokenreviews"] == 2

    told(tmp_path, story)


def test_a_permission_that_is_taken_away_ends_with_what_is_kept_and_one_that_is_given_begins_soon(
    tmp_path: Path,
) -> None:
    async def story(one: World) -> None:
        assert (await one.get("good")).status == 200
        one.may = {"someone"}
        assert (await one.get("good")).status == 200
        assert (await one.get("powerless")).status == 200
        one.now += ALLOWED_S
        assert (await one.get("good")).status == 403
        one.may = {SCRAPER["username"]}
        one.now += DENIED_S
        assert (await one.get("good")).status == 200

    told(tmp_path, story)


def test_made_up_tokens_displace_no_one_and_what_is_kept_is_bounded(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        assert (await one.get("good")).status == 200
        connection = await one.connect(OTHER)
        for number in range(KEPT_MAX + 10):
            assert (await one.ask(connection, f"made-up-{number}")).status == 401
        assert one.access.kept == KEPT_MAX + 1
        one.reviews.clear()
        assert (await one.get("good")).status == 200
        assert one.reviews == {}

    told(tmp_path, story)


def test_one_address_that_asks_a_lot_has_one_review_at_once_and_others_have_their_turn(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        one.gate.clear()
        flood = [asyncio.create_task(one.get(f"made-up-{number}", come_from=OTHER)) for number in range(16)]
        while len(one.opened) < 16:
            await asyncio.sleep(0.001)
        mine = asyncio.create_task(one.get("good"))
        while one.access._turns._taken.total() < 2:
            await asyncio.sleep(0.001)
        one.gate.set()
        assert (await mine).status == 200
        assert {answer.status for answer in await asyncio.gather(*flood)} == {401}

    told(tmp_path, story)


def test_many_callers_with_one_token_cost_one_review(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        answers = await asyncio.gather(*(one.get("good") for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        assert one.reviews == {"tokenreviews": 1, "subjectaccessreviews": 1}

    told(tmp_path, story)


def test_a_caller_without_tls_is_turned_away_and_a_new_certificate_is_shown(tmp_path: Path) -> None:
    async def story(one: World) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n")
        assert b"counted" not in await reader.read()
        writer.close()
        while not one.refused:
            await asyncio.sleep(0.001)
        assert one.refused == {"metrics: plain HTTP": 1}

        serials = []
        for _ in range(2):
            connection = await one.connect()
            serials.append(connection.writer.get_extra_info("peercert")["serialNumber"])
            one.ground.write("server", issue_leaf(one.ground.ca, "fairlead", "server", NOW, YEAR, HOSTS))
            one.tls.reload()
        assert serials[0] != serials[1]

    told(tmp_path, story)
