"""A connection ends with what was shown when it began: the certificate, the trust in its authority, its time.

All over real TLS; only the clock is the test's.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead.pki.issuing import Pair, create_authority, issue_leaf
from fairlead.webhook.extender.call import IncomingCall, Reply
from fairlead.webhook.https.server import AGE_S, WebhookServer
from fairlead.webhook.https.tls import Tls
from support.policy import SECOND
from support.webhook.tls import (
    ANYBODY,
    HOSTS,
    NOW,
    YEAR,
    Connection,
    Ground,
    Received,
    as_go,
    between,
    connect,
    of_no_version,
)

DAY_S = 86400
NEW = create_authority("ca-2", NOW, YEAR)
OTHER = {"X-Other": "1"}
"""A header that sends a call through aiohttp."""


class Running:
    """A server, and a clock that goes when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.ground, self.passed = Ground(folder), 0.0
        self.tls = Tls(self.ground.files)
        self.refused = Counter[str]()
        self.gate, self.waits = asyncio.Event(), asyncio.Event()
        self.server = WebhookServer(
            self.tls,
            {"/filter": lambda call: Reply(call.body), "/bind": self.slow},
            lambda *_: ANYBODY,
            lambda reason, _: self.refused.update([reason]),
            pages={"/state": lambda *_: b"{}"},
            clock=lambda: 7 * SECOND + int(self.passed * SECOND),
            time=lambda: int((NOW.timestamp() + self.passed) * SECOND),
        )
        self.port = 0
        self.opened: list[Connection] = []

    async def slow(self, call: IncomingCall) -> Reply:
        self.waits.set()
        await self.gate.wait()
        return Reply(call.body)

    async def dial(self, context: ssl.SSLContext | None = None) -> Connection:
        """A connection on which a call was answered."""
        connection = await connect(self.port, context or self.ground.client())
        self.opened.append(connection)
        assert (await connection.call("/filter")).status == 200
        return connection

    def believe(self, *authorities: Pair) -> None:
        """Trust these and no others."""
        self.ground.files.client_ca.write_bytes(b"".join(one.certificate for one in authorities))
        assert self.tls.reload()


def told(folder: Path, story: Callable[[Running], Awaitable[None]]) -> None:
    async def whole() -> None:
        one = Running(folder)
        one.port = await one.server.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(120):
                await story(one)
        finally:
            for connection in one.opened:
                await connection.close()
            await one.server.stop(0)

    asyncio.run(whole())


async def last(connection: Connection, reply: Awaitable[Received]) -> int:
    """The status of a reply that says that it is the last, and is."""
    found = await reply
    assert found.headers["connection"] == "close"
    assert await connection.is_closed()
    return found.status


WAYS: dict[str, Callable[[Connection], Awaitable[Received]]] = {
    "at once": lambda one: one.call("/filter", b"1"),
    "through aiohttp": lambda one: one.call("/filter", b"1", **OTHER),
    "what waits": lambda one: one.call("/bind", b"1"),
    "what is read": lambda one: one.call("/state", b"", "GET"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_certificate_that_ends_is_refused_on_an_open_connection(tmp_path: Path, way: str) -> None:
    async def story(one: Running) -> None:
        one.server.age_s = 10 * DAY_S
        one.gate.set()
        connection, ended = await one.dial(), await one.dial()
        one.passed = DAY_S - 1
        assert (await WAYS[way](connection)).headers.get("connection") != "close"
        one.passed = DAY_S + 1
        assert await last(ended, WAYS[way](ended)) == 403
        assert one.refused == Counter(expired=1)

    told(tmp_path, story)


def test_an_idle_connection_is_closed_when_its_certificate_ends_and_no_other(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        one.server.age_s = 10 * DAY_S
        ground = one.ground
        pair = issue_leaf(ground.ca, "scheduler", "client", NOW, timedelta(days=5))
        longer = ground.client(None)
        longer.load_cert_chain(*ground.write("longer", pair))
        stays, ends = await one.dial(longer), await one.dial()
        one.passed = DAY_S - 1
        one.server.end_expired()
        assert (await ends.call("/filter")).status == 200
        one.passed = DAY_S + 1
        one.server.end_expired()
        assert await ends.is_closed()
        one.server.end_expired()
        assert one.refused == Counter(expired=1)
        assert (await stays.call("/filter")).status == 200

    told(tmp_path, story)


@pytest.mark.parametrize("way", WAYS)
def test_an_old_connection_is_answered_once_more_and_closed(tmp_path: Path, way: str) -> None:
    async def story(one: Running) -> None:
        one.gate.set()
        connection = await one.dial()
        one.passed = AGE_S - 1
        assert (await WAYS[way](connection)).headers.get("connection") != "close"
        one.passed = AGE_S
        one.server.end_expired()  # it is old, and nothing else: who is about to call must not lose his call
        assert await last(connection, WAYS[way](connection)) == 200
        assert one.refused == Counter()
        assert (await (await one.dial()).call("/filter")).headers.get("connection") != "close"

    told(tmp_path, story)


def test_a_call_that_has_begun_is_answered_when_the_connection_grows_old_and_when_its_certificate_ends(
    tmp_path: Path,
) -> None:
    async def story(one: Running) -> None:
        for passed, status in ((AGE_S, 200), (DAY_S + 1, 403)):
            one.passed = 0
            connection = await one.dial()
            call = as_go("/filter", b"1" * 9)
            connection.writer.write(call[:-2])
            while not any(each._missing for each in one.server._open()):
                await asyncio.sleep(0)
            one.passed = passed
            one.server.end_expired()
            connection.writer.write(call[-2:])
            assert await last(connection, connection.reply()) == status

    told(tmp_path, story)


@pytest.mark.parametrize("ends", ["its time", "its certificate", "its authority"])
def test_a_call_that_waits_is_answered_and_is_the_last(tmp_path: Path, ends: str) -> None:
    async def story(one: Running) -> None:
        connection = await one.dial()
        answered = asyncio.ensure_future(last(connection, connection.call("/bind", b"1")))
        await one.waits.wait()
        if ends == "its authority":
            one.believe(NEW)
        else:
            one.passed = AGE_S if ends == "its time" else DAY_S + 1
            one.server.end_expired()
        one.gate.set()
        assert await answered == 200

    told(tmp_path, story)


def test_connections_end_when_nobody_believes_their_authority_any_more(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        ground, old = one.ground, one.ground.ca
        one.server.body_s = 1e6  # he is told at once
        one.believe(old, NEW)
        idle, half, stays = await one.dial(), await one.dial(), await one.dial(ground.client(by=NEW))
        half.writer.write(as_go("/filter", b"1" * 9)[:-2])
        while not any(each._missing for each in one.server._open()):
            await asyncio.sleep(0)
        ground.write("server", issue_leaf(old, "fairlead", "server", NOW, YEAR, HOSTS))
        assert one.tls.reload()  # a certificate of our own ends nothing
        assert (await idle.call("/filter")).status == 200
        one.believe(NEW)
        assert await idle.is_closed()
        assert await last(half, half.reply()) == 403
        assert one.refused == Counter({"unknown authority": 2})
        assert (await stays.call("/filter")).headers.get("connection") != "close"
        one.believe(NEW, old)
        assert (await stays.call("/filter")).status == (await (await one.dial()).call("/filter")).status == 200

    told(tmp_path, story)


def test_who_shows_what_is_between_him_and_the_authority_goes_on_while_that_is_believed(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        old = between()
        middle = between(old)
        pair = issue_leaf(middle, "scheduler", "client", NOW, timedelta(days=1))
        context = one.ground.client(None)
        whole = Pair(pair.certificate + middle.certificate, pair.key)
        context.load_cert_chain(*one.ground.write("below", whole))
        one.believe(old)
        connection = await one.dial(context)
        one.believe(old, NEW)
        assert (await connection.call("/filter")).status == 200
        one.believe(middle)  # as with Go, and at the handshake
        assert (await connection.call("/filter")).status == 200
        one.believe(NEW)
        assert await connection.is_closed()

    told(tmp_path, story)


def test_a_connection_that_is_being_closed_keeps_nobody_from_distrusting_the_others(tmp_path: Path) -> None:
    """By aiohttp after its last answer, and by whoever gave up on its handshake: asyncio forgets what it was."""

    async def story(one: Running) -> None:
        idle = await one.dial()
        await one.dial()
        closing = one.server._open()[-1]
        assert closing.transport is not None
        for _ in range(2):
            closing.transport.close()
        one.believe(NEW)
        assert await idle.is_closed()

    told(tmp_path, story)


def test_what_a_caller_sends_beside_his_certificate_stops_nothing(tmp_path: Path) -> None:
    """A version of certificates that does not exist: no library reads it, and the handshake does not look at it."""

    async def story(one: Running) -> None:
        old = one.ground.ca
        pair = issue_leaf(old, "scheduler", "client", NOW, timedelta(days=1))
        context = one.ground.client(None)
        whole = Pair(pair.certificate + of_no_version(NEW.certificate), pair.key)
        context.load_cert_chain(*one.ground.write("odd", whole))
        odd, plain = await one.dial(context), await one.dial()
        one.believe(old, NEW)
        assert (await plain.call("/filter")).status == 200
        assert await odd.is_closed()

    told(tmp_path, story)


def test_who_may_sign_for_others(tmp_path: Path) -> None:
    root, narrow = between(), create_authority("narrow", NOW, YEAR)
    ground = Ground(tmp_path)
    ground.files.client_ca.write_bytes(root.certificate + narrow.certificate)
    tls = Tls(ground.files)

    def trusted(signer: Pair, *shown: Pair, days: int = 0) -> bool:
        leaf = issue_leaf(signer, "scheduler", "client", NOW, timedelta(days=1))
        chain = [ssl.PEM_cert_to_DER_cert(one.certificate.decode()) for one in (leaf, *shown)]
        return tls.trusts(chain, NOW + timedelta(days=days))

    middle, leaf, short = between(root), between(root, is_authority=False), between(root, days=5)
    assert trusted(root)
    assert trusted(middle, middle)
    lower = between(middle, name="lower")
    assert trusted(lower, lower, middle)
    assert not trusted(lower, lower)
    assert not trusted(middle)
    assert not trusted(middle, between(root))  # another key of the same name
    assert not trusted(leaf, leaf)
    assert trusted(short, short, days=4)
    assert not trusted(short, short, days=6)
    assert not trusted(root, days=400)
    assert trusted(narrow)
    below = between(narrow)
    assert not trusted(below, below)  # it may sign leaves only
    assert not trusted(NEW, NEW)
    assert not tls.trusts((), NOW)
    assert not tls.trusts((b"x",), NOW)


def test_who_shakes_hands_while_his_authority_goes_is_refused(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = one.ground.client().wrap_bio(came, goes, server_hostname="localhost")
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        writer.write(goes.read())
        while True:  # until all is there that the server says before it knows who it is
            came.write(await reader.read(1 << 16))
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                continue
            break
        one.believe(NEW)
        client.write(as_go("/filter", b"1"))
        writer.write(goes.read())
        said = b""
        while b"\r\n\r\n" not in said:
            came.write(await reader.read(1 << 16))
            try:
                said += client.read()
            except ssl.SSLWantReadError:
                continue
        assert said.startswith(b"HTTP/1.1 403 ")
        assert one.refused == Counter({"unknown authority": 1})
        writer.transport.abort()

    told(tmp_path, story)


def resumed(port: int, context: ssl.SSLContext) -> bool:
    """Call, and beside that call once more with the same session; whether the server took it for that."""
    session, found = None, False
    with ExitStack() as stack:  # a session of a connection that was broken off is not kept
        for _ in range(2):
            plain = socket.create_connection(("127.0.0.1", port), 30)
            secured = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost", session=session))
            secured.sendall(as_go("/filter", b"1"))
            assert secured.recv(1000).startswith(b"HTTP/1.1 200")
            session, found = secured.session, bool(secured.session_reused)
    return found


def test_nobody_resumes_a_session(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        assert not await asyncio.to_thread(resumed, one.port, one.ground.client())
        assert one.refused == Counter()

    told(tmp_path, story)


def test_nobody_calls_by_an_older_version_in_which_sessions_are_resumed_by_their_number(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        context = one.ground.client()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError, match=r"alert|EOF|reset"):
            assert not await asyncio.to_thread(resumed, one.port, context)
        assert one.refused == Counter({"old TLS": 1})

    told(tmp_path, story)
