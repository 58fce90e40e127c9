"""Why somebody is turned away at the port that the API server asks at, and that nobody keeps others from it."""

import asyncio
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead.cooperative import Steps
from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.webhook.admission.admission_server import MAX_BODY, PATH, READ, READ_EACH, WAITING, AdmissionServer
from fairlead.webhook.admission.review import NoReviewError
from fairlead.webhook.https.connection_limits import ADMISSION, UNREAD
from fairlead.webhook.https.listener import CROWDED
from fairlead.webhook.https.tls import Tls
from support.webhook.tls import HOSTS, NOW, YEAR, Connection, Ground, as_go, connect

OTHER = "127.0.0.2"
FOREVER = 600.0


class Running:
    """A server whose reviews end when they are told to, those who ask, and why they were turned away."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.ground, self.refused = Ground(folder), asyncio.Queue[str]()
        self.server = AdmissionServer(
            Tls(self.ground.files), self.review, lambda why, _: self.refused.put_nowait(why), **given
        )
        self.opened: list[Connection] = []
        self.port = 0
        self.running = 0
        self.gate = asyncio.Event()

    def review(self, body: bytes) -> Steps[bytes]:
        if body == b"{}":
            raise NoReviewError("no review at all")
        self.running += 1
        try:
            while body == b"wait" and not self.gate.is_set():
                yield
        finally:
            self.running -= 1
        return b"answer"

    async def connect(self, come_from: str = "127.0.0.1", name: str | None = None) -> Connection:
        self.opened.append(await connect(self.port, self.ground.client(name), come_from=come_from))
        return self.opened[-1]

    async def send(self, count: int, sent: bytes, come_from: str = OTHER) -> list[Connection]:
        found = [await self.connect(come_from) for _ in range(count)]
        for one in found:
            one.writer.write(sent)
        return found

    async def is_answered(self) -> bool:
        """Whether the API server is, on a connection that it has and on a new one."""
        connection = await self.connect()
        first, second = await connection.call(PATH, b"x"), await connection.call(PATH, b"y")
        return (first.status, second.status) == (200, 200)

    async def why(self) -> str:
        return await asyncio.wait_for(self.refused.get(), 120)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(folder: Path, **given: Any) -> AsyncIterator[Running]:
    one = Running(folder, **given)
    one.port = await one.server.start("127.0.0.1", 0)
    try:
        yield one
    finally:
        for connection in one.opened:
            await connection.close()
        one.gate.set()
        await one.server.stop()


def told(folder: Path, story: Callable[[Running], Awaitable[None]], **given: Any) -> None:
    async def whole() -> None:
        async with running(folder, **given) as one:
            await story(one)

    asyncio.run(whole())


LARGE = b"%x\r\n%b\r\n" % (1 << 20, b"x" * (1 << 20))
CHUNKED = {"Transfer-Encoding": "chunked", "Content-Length": ""}
CASES: dict[str, bytes] = {
    "admission: no such path": as_go(PATH, b"", "GET"),
    "admission: bad request": as_go(PATH, b"{}"),
    "admission: large body": as_go(PATH, b"", **{"Content-Length": str(MAX_BODY + 1)}),
    "admission: slow body": as_go(PATH, b"half", **{"Content-Length": "9"}),
    "admission: plain HTTP": as_go(PATH, b"{}"),
    "admission: no TLS": b"\x01" * 64,
}
WITHOUT_TLS = ("admission: plain HTTP", "admission: no TLS")


@pytest.mark.parametrize("reason", CASES)
def test_the_reason_is_named(tmp_path: Path, reason: str) -> None:
    async def story(one: Running) -> None:
        connection = await connect(one.port, None if reason in WITHOUT_TLS else one.ground.client(None))
        one.opened.append(connection)
        connection.writer.write(CASES[reason])
        assert await one.why() == reason

    told(tmp_path, story)


@pytest.mark.parametrize("parts", [3, 4])
def test_a_body_in_chunks_is_counted_while_it_is_read(tmp_path: Path, parts: int) -> None:
    async def story(one: Running) -> None:
        connection = await one.connect()
        reply = await connection.call(PATH, LARGE * parts + b"0\r\n\r\n", **CHUNKED)
        assert reply.status == (200 if parts == 3 else 413)

    told(tmp_path, story, within_s=FOREVER, body_s=FOREVER, idle_s=FOREVER)


def test_little_of_a_connection_is_looked_at_at_one_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of changes of keys, say, that TLS knows: they are not seen, and all that has come is gone through."""
    pieces, update = list[int](), SSLProtocol.buffer_updated

    def updated(self: Any, count: int) -> None:
        if self._server_side:
            pieces.append(count)
        update(self, count)

    async def story(one: Running) -> None:
        connection = await one.connect()
        monkeypatch.setattr(SSLProtocol, "buffer_updated", updated)
        assert (await connection.call(PATH, b"x" * (1 << 20))).status == 200
        assert sum(pieces) > 1 << 20
        assert max(pieces) <= 2 * UNREAD

    told(tmp_path, story, within_s=FOREVER, body_s=FOREVER, idle_s=FOREVER)


def test_who_has_no_end_is_cut_off(tmp_path: Path) -> None:
    """A chunked body that comes for ever, a piece now and then."""

    async def story(one: Running) -> None:
        connection = await one.connect()
        connection.writer.write(as_go(PATH, b"", **CHUNKED))

        async def drip() -> None:
            while True:
                connection.writer.write(b"1\r\nx\r\n")
                await asyncio.sleep(0.01)

        dripping = asyncio.ensure_future(drip())
        reply = await connection.reply()
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert await connection.is_closed()
        dripping.cancel()
        assert await one.why() == "admission: slow body"

    told(tmp_path, story, within_s=FOREVER, body_s=0.1)


def test_few_bodies_are_held_and_the_others_have_sent_their_heads(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        heads = await one.send(8, as_go(PATH, b"", **{"Content-Length": "1"}))
        await one.until(lambda: len(one.server._turns._queue) == 8 - READ_EACH)
        assert one.server._turns._taken == Counter({OTHER: READ_EACH})
        assert await one.is_answered()
        for each in heads:
            each.writer.write(b"x")
        assert [(await each.reply()).status for each in heads] == [200] * 8

    told(tmp_path, story, within_s=FOREVER, body_s=FOREVER, idle_s=FOREVER)


@pytest.mark.parametrize("sent", [b"wait", b""])
def test_whoever_asks_all_the_time_takes_nobody_elses_place(tmp_path: Path, sent: bytes) -> None:
    """With reviews that last, and with bodies that do not come."""

    async def story(one: Running) -> None:
        places = ADMISSION.served_each
        await one.send(places, as_go(PATH, sent, **{"Content-Length": "4"}))
        await one.until(lambda: len(one.server._turns._queue) == places - READ_EACH)
        assert one.running == bool(sent)
        assert await one.is_answered()

    told(tmp_path, story, within_s=FOREVER, body_s=FOREVER, idle_s=FOREVER)


def test_where_nobody_can_wait_it_is_said_when_to_come_again(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        sent = as_go(PATH, b"", **{"Content-Length": "1"})
        for number in range(READ + WAITING):
            await one.send(1, sent, f"127.0.0.{2 + number}")
        await one.until(lambda: len(one.server._turns._queue) == WAITING)
        reply = await (await one.connect()).call(PATH, b"x")
        assert (reply.status, reply.headers["retry-after"], reply.headers["connection"]) == (503, "1", "close")
        assert await one.why() == "admission: too many"

    told(tmp_path, story, within_s=FOREVER, body_s=FOREVER, idle_s=FOREVER)


def test_a_review_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        (asking,) = await one.send(1, as_go(PATH, b"wait"))
        await one.until(lambda: one.running == 1)
        await asking.close()
        await one.until(lambda: one.running == 0)
        assert not one.server._turns._taken

    told(tmp_path, story, within_s=FOREVER)


@pytest.mark.parametrize("sent", [b"", as_go(PATH, b"x"), b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\n"])
def test_who_says_nothing_more_is_closed(tmp_path: Path, sent: bytes) -> None:
    """Whether he never began, was answered, or stopped in the midst of a head that goes on in drops."""

    async def story(one: Running) -> None:
        (connection,) = await one.send(1, sent)
        if sent.endswith(b"x"):
            assert (await connection.reply()).status == 200
        dripping = asyncio.ensure_future(drip(connection) if sent.endswith(b"x\r\n") else asyncio.sleep(0))
        assert await connection.is_closed()
        dripping.cancel()
        await one.until(lambda: one.server._port is not None and not one.server._port.listener._served)

    async def drip(connection: Connection) -> None:
        while True:
            connection.writer.write(b"X-More: x\r\n")
            await asyncio.sleep(0.01)

    told(tmp_path, story, idle_s=0.2)


def test_a_flood_of_connections_leaves_a_place_for_the_api_server(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        idle = [await connect(one.port, one.ground.client(None), come_from=OTHER) for _ in range(ADMISSION.served_each)]
        one.opened += idle
        assert one.server._port is not None
        for _ in range(100):
            try:
                one.opened.append(await connect(one.port, one.ground.client(None), come_from=OTHER))
            except OSError:
                assert await one.why() == f"admission: {CROWDED}"
        assert len(one.server._port.listener._served) == ADMISSION.served_each
        assert await one.is_answered()

    told(tmp_path, story, idle_s=FOREVER)


def test_where_its_authority_is_told_the_api_server_shows_a_certificate(tmp_path: Path) -> None:
    told_so = {"authority": ""}

    async def story(one: Running) -> None:
        assert await one.is_answered()
        apis = create_authority("apis", NOW, YEAR)
        told_so["authority"] = apis.certificate.decode()
        api_server = one.ground.client("kube-apiserver", by=apis)
        connection = await connect(one.port, api_server)
        one.opened.append(connection)
        assert (await connection.call(PATH, b"x")).status == 200
        for wrong, why in ((None, "no certificate"), ("scheduler", "unknown authority")):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await (await one.connect(name=wrong)).call(PATH, b"x")
            assert await one.why() == f"admission: {why}"
        told_so["authority"] = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"  # nobody is believed
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await (await one.connect()).call(PATH, b"x")
        told_so["authority"] = ""
        assert await one.is_answered()

    told(tmp_path, story, client_ca=lambda: told_so["authority"])


def test_who_was_let_in_before_that_is_answered_no_longer(tmp_path: Path) -> None:
    """On a connection from before an authority, or this one, was asked for, or whose certificate has ended."""
    apis, others = create_authority("apis", NOW, YEAR), create_authority("others", NOW, YEAR)
    told_so = {"authority": ""}

    async def story(one: Running) -> None:
        before = await one.connect()
        assert (await before.call(PATH, b"x")).status == 200
        told_so["authority"] = apis.certificate.decode()
        api_server = one.ground.client("kube-apiserver", by=apis)
        stays, goes = [await connect(one.port, api_server) for _ in range(2)]
        one.opened += stays, goes
        one.ground.write("server", issue_leaf(one.ground.ca, "fairlead", "server", NOW, YEAR, HOSTS))
        assert one.server.tls.reload()  # a certificate of our own ends nothing
        assert (await stays.call(PATH, b"x")).status == 200

        async def is_refused(connection: Connection) -> bool:
            reply = await connection.call(PATH, b"x")
            return (reply.status, reply.headers["connection"]) == (403, "close")

        assert await is_refused(before)
        told_so["authority"] = others.certificate.decode()
        assert await is_refused(goes)
        told_so["authority"] = apis.certificate.decode()
        assert (await stays.call(PATH, b"x")).status == 200
        one.server.now = lambda: NOW + timedelta(days=1)
        assert await is_refused(stays)
        assert [await one.why() for _ in range(3)] == ["admission: unknown authority"] * 3

    told(tmp_path, story, client_ca=lambda: told_so["authority"])


def test_a_fault_of_ours_is_said_and_logged_seldom(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(one: Running) -> None:
        def review(_: bytes) -> Any:
            raise MemoryError("on purpose")

        one.server.review = review
        connection = await one.connect()
        for _ in range(30):
            assert (await connection.call(PATH, b"x")).status == 500

    told(tmp_path, story)
    assert caplog.text.count("admission.fault") == 10
