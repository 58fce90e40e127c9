"""Whatever those who connect do, in whatever order: never more are there than there are places, and none is left over.

Over real TLS, from several addresses, while certificates change. What is random comes from a seed.
"""

import asyncio
import random
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest

from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.process.health import Probes
from fairlead.webhook.admission.admission_server import AdmissionServer
from fairlead.webhook.extender.call import IncomingCall, Reply
from fairlead.webhook.https.connection_limits import ConnectionLimits, ConnectionsByAddress
from fairlead.webhook.https.listener import TlsListener
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from support.webhook.tls import ANYBODY, HOSTS, NOW, YEAR, Connection, Ground, as_go, connect

ADDRESSES = [f"127.0.0.{number}" for number in range(1, 7)]
LIMITS = ConnectionLimits(
    served=8,
    served_each=3,
    pending=10,
    pending_each=4,
    handshakes=4,
    handshakes_each=2,
    pending_s=0.3,
    handshake_s=0.3,
    late_s=0.04,
    hurried_s=0.01,
)
"""So small that each is reached, and so short that some take too long."""
NEW = create_authority("ca-2", NOW, YEAR)
STEPS = 150
LOST = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError)
"""What whoever is turned away meets."""
HALVES = (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 99)


class Server(Protocol):
    async def start(self, host: str | None, port: int) -> int: ...


def listener_of(server: Any) -> Any:
    """Return the listener of a server, or of its port."""
    return server._listener if isinstance(server, WebhookServer) else server._port.listener


def http_server_of(server: Any) -> Any:
    """Return what answers the connections of a server."""
    return server._server if isinstance(server, WebhookServer) else server._port.server


class Crowded:
    """A port, and those who do something there."""

    def __init__(self, folder: Path, kind: str, seed: int) -> None:
        self.ground, self.kind, self.random = Ground(folder), kind, random.Random(seed)  # noqa: S311
        self.tls = Tls(self.ground.files)
        self.refused = Counter[str]()
        self.opened: list[Connection] = []
        self.tasks = set[asyncio.Task[None]]()
        self.port = 0
        # Whom it believes, whom it does not, and who shows nothing.
        wrong = create_authority("nobody", NOW, YEAR)
        self.contexts = [
            self.ground.client("scheduler"),
            self.ground.client("scheduler"),
            self.ground.client("newer", by=NEW),
            self.ground.client("wrong", by=wrong),
            self.ground.client(None),
        ]

    def server(self) -> Server:
        refused: Callable[[str, str], None] = lambda why, _: self.refused.update([why])  # noqa: E731
        if self.kind == "schedulers":
            routes: Any = {"/filter": lambda call: Reply(call.body), "/bind": self.slow}
            self.webhook = WebhookServer(self.tls, routes, lambda *_: ANYBODY, refused, limits=LIMITS, body_s=0.05)
            return self.webhook
        if self.kind == "anyone":
            return AdmissionServer(self.tls, self.review, refused, limits=LIMITS, idle_s=0.2, body_s=0.05)
        return Probes(list, lambda: b"1", refused, limits=LIMITS, idle_s=0.2)

    async def slow(self, call: IncomingCall) -> Reply:
        await asyncio.sleep(0.01)
        return Reply(call.body)

    def review(self, body: bytes) -> Any:
        yield
        return body

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            with suppress(*LOST):
                await work

        task = asyncio.ensure_future(whole())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def step(self) -> None:
        """Somebody does something."""
        chosen = self.random.choices(
            [self.half, self.dial, self.call, self.drop, self.renew, self.believe, self.end],
            [3, 6, 5, 4, 0.5, 0.5, 0.5],
        )[0]
        chosen()

    def half(self) -> None:
        self.begin(self._dial(None, self.random.choice(HALVES), self.random.choice(ADDRESSES)))

    def dial(self) -> None:
        context = None if self.kind == "plain" else self.random.choice(self.contexts)
        self.begin(self._dial(context, self.request(), self.random.choice(ADDRESSES)))

    def call(self) -> None:
        if (writer := self.somebody()) is not None:
            writer.write(self.request())

    def somebody(self) -> asyncio.StreamWriter | None:
        there = [one.writer for one in self.opened if not one.writer.is_closing()]
        return self.random.choice(there) if there else None

    def request(self) -> bytes:
        path = self.random.choice(["/filter", "/bind", "/validate", "/livez", "/nothing"])
        whole = as_go(path, b"{}", self.random.choice(["POST", "POST", "GET"])) * self.random.choice([1, 1, 3])
        return whole[: self.random.randrange(len(whole))] if self.random.random() < 0.3 else whole

    async def _dial(self, context: ssl.SSLContext | None, sent: bytes, address: str) -> None:
        one = await connect(self.port, context, come_from=address)
        self.opened.append(one)
        one.writer.write(sent)
        await one.reader.read(10)

    def drop(self) -> None:
        if (writer := self.somebody()) is None:
            return
        how, plain = self.random.randrange(3), writer.get_extra_info("socket")
        if how == 0:
            writer.close()
            return
        if how == 1 and plain is not None:  # nothing that was sent is to arrive any more
            with suppress(OSError):
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    def renew(self) -> None:
        self.ground.write("server", issue_leaf(self.ground.ca, "fairlead", "server", NOW, YEAR, HOSTS))
        assert self.tls.reload()

    def believe(self) -> None:
        chosen = self.random.choice([[self.ground.ca], [self.ground.ca, NEW], [NEW]])
        self.ground.files.client_ca.write_bytes(b"".join(one.certificate for one in chosen))
        self.tls.reload()

    def end(self) -> None:
        if self.kind == "schedulers":
            self.webhook.end_expired()
            open_now = self.webhook._open()
            if open_now:  # as where its certificate ends
                self.webhook._end(self.random.choice(open_now), "expired")

    async def leave(self) -> None:
        await asyncio.sleep(0)  # all have begun
        for task in [*self.tasks]:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for one in self.opened:
            await one.close()
        self.opened.clear()


def holds(door: TlsListener) -> None:
    """Nobody is there who has no place."""
    limits = door.limits

    def within(crowd: ConnectionsByAddress[Any], most: int, each: int) -> None:
        assert len(crowd) <= most
        assert max(Counter(crowd._at.values()).values(), default=0) <= each
        assert {one: address for address, there in crowd._of.items() for one in there} == crowd._at

    within(door._pending, limits.pending, limits.pending_each)
    within(door._served, limits.served, limits.served_each)
    busy = Counter(one.connection.address for one in door._handshakes.values())
    assert busy.total() <= limits.handshakes
    assert max(busy.values(), default=0) <= limits.handshakes_each
    assert all(door._waiting.values())
    assert {one for there in door._waiting.values() for one in there} <= {*door._pending}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often what changes who is there was done; each time it is looked at whether all have places."""
    found = Counter[str]()

    def looked_at(name: str) -> None:
        before = getattr(TlsListener, name)

        def after(door: TlsListener, *given: Any) -> Any:
            before(door, *given)
            found[name] += 1
            holds(door)

        monkeypatch.setattr(TlsListener, name, after)

    for name in ("_add", "_on_data", "_start_handshakes", "_on_handshake_done", "_refuse", "gone"):
        looked_at(name)
    return found


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not is_so():
            await asyncio.sleep(0.005)


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def told(story: Callable[[], Awaitable[None]]) -> None:
    """Whatever goes wrong in the loop beside the story is wrong."""
    wrong = list[dict[str, Any]]()

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        await story()

    asyncio.run(whole())
    assert not wrong


@pytest.mark.parametrize("kind", ["schedulers", "anyone", "plain"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_they_do_nobody_is_left_over(tmp_path: Path, kind: str, seed: int, counted: Counter[str]) -> None:
    async def story() -> None:
        one = Crowded(tmp_path, kind, seed)
        server = one.server()
        one.port = await server.start("127.0.0.1", 0)
        door, at_first = listener_of(server), descriptors()
        for _ in range(STEPS):
            one.step()
            if one.random.random() < 0.5:
                await asyncio.sleep(one.random.choice([0, 0, 0.001, 0.01]))
            holds(door)
        await one.leave()
        await until(lambda: not len(door._pending) and not door._handshakes and not len(door._served))
        await until(lambda: not http_server_of(server).connections and descriptors() == at_first)
        assert not door._waiting
        assert (door._pending._of, door._served._of) == ({}, {})
        one.ground.files.client_ca.write_bytes(one.ground.ca.certificate)
        one.tls.reload()
        path, context = ("/livez", None) if kind == "plain" else ("/filter", one.contexts[0])
        for address in ADDRESSES:  # and everybody is served again
            connection = await connect(one.port, context, come_from=address)
            one.opened.append(connection)
            method = "GET" if kind == "plain" else "POST"
            reply = await connection.call(path if kind != "anyone" else "/validate", b"", method)
            assert reply.status == 200
        await one.leave()
        await (server.stop(0) if isinstance(server, WebhookServer) else server.stop())  # type: ignore[attr-defined]

    told(story)
    assert counted["_add"] > STEPS // 4


@pytest.mark.parametrize("kind", ["schedulers", "anyone", "plain"])
def test_when_it_closes_nobody_is_left_over_whatever_they_are_at(
    tmp_path: Path, kind: str, counted: Counter[str]
) -> None:
    async def story() -> None:
        one = Crowded(tmp_path, kind, 4)
        server = one.server()
        at_first = descriptors()
        one.port = await server.start("127.0.0.1", 0)
        door = listener_of(server)
        for _ in range(STEPS // 3):
            one.step()
            await asyncio.sleep(0)
        await until(lambda: len(door._pending) + len(door._handshakes) + len(door._served) > 0)
        await (server.stop(0) if isinstance(server, WebhookServer) else server.stop())  # type: ignore[attr-defined]
        await one.leave()
        assert (len(door._pending), door._waiting, door._handshakes) == (0, {}, {})
        await until(lambda: not len(door._served) and not http_server_of(server).connections)
        await until(lambda: descriptors() == at_first)

    told(story)
    assert counted["_add"]
