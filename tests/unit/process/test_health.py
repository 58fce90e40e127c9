"""Probes and metrics are always there, whoever else knocks at their port."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fairlead.process.health import FRESH_S, READY_S, Probes
from fairlead.webhook.capability import ReadinessCheck
from fairlead.webhook.https.connection_limits import PROBES
from support.webhook.tls import Connection, as_go, connect

OTHER = "127.0.0.2"


class Running:
    def __init__(self, **given: Any) -> None:
        self.now, self.written, self.looked, self.refused = 100.0, 0, 0, Counter[str]()
        self.ready = True
        self.probes = Probes(
            self.checks,
            self.metrics,
            lambda why, _: self.refused.update([why]),
            clock=lambda: self.now,
            **given,
        )
        self.port = 0
        self.opened: list[Connection] = []

    def checks(self) -> list[ReadinessCheck]:
        self.looked += 1
        return [ReadinessCheck("serving", self.ready)]

    def metrics(self) -> bytes:
        self.written += 1
        return b"written %d\n" % self.written

    async def connect(self, come_from: str = "127.0.0.1") -> Connection:
        self.opened.append(await connect(self.port, None, come_from=come_from))
        return self.opened[-1]

    async def get(self, path: str) -> tuple[int, bytes]:
        """As the kubelet: each time over another connection."""
        connection = await self.connect()
        reply = await connection.call(path, b"", "GET", **{"Content-Length": "", "Connection": "close"})
        return reply.status, reply.body


@asynccontextmanager
async def running(**given: Any) -> AsyncIterator[Running]:
    one = Running(**given)
    one.port = await one.probes.start("127.0.0.1", 0)
    try:
        yield one
    finally:
        for connection in one.opened:
            await connection.close()
        await one.probes.stop()


def told(story: Callable[[Running], Awaitable[None]], **given: Any) -> None:
    async def whole() -> None:
        async with running(**given) as one:
            await story(one)

    asyncio.run(whole())


HOSTILE = "hang\n[-] serving: stopping\r\n\x1b[31m\u202e\u2028[+] policy: all is well"


def test_each_check_is_one_line_that_a_terminal_shows_as_it_is() -> None:
    for check in (ReadinessCheck("policy", ok=True, text=HOSTILE), ReadinessCheck(HOSTILE, ok=False)):
        (line,) = str(check).splitlines()
        assert line.isprintable()
        assert "serving: stopping" in line
    assert len(str(ReadinessCheck("policy", ok=True, text="x" * 10_000))) < 2_100


def test_what_is_read_there() -> None:
    async def story(one: Running) -> None:
        assert await one.get("/livez") == (200, b"ok\n")
        assert await one.get("/readyz") == (200, b"[+] serving\nready\n")
        one.ready = False
        one.now += READY_S
        assert await one.get("/readyz") == (503, b"[-] serving\nnot ready\n")
        assert await one.get("/metrics") == (200, b"written 1\n")
        assert (await one.get("/"))[0] == 404
        connection = await one.connect()
        assert (await connection.call("/metrics", b"x")).status == 405

    told(story)


def test_metrics_are_written_once_a_second_however_many_ask() -> None:
    async def story(one: Running) -> None:
        assert {body for _, body in await asyncio.gather(*(one.get("/metrics") for _ in range(10)))} == {b"written 1\n"}
        one.now += FRESH_S / 2
        assert await one.get("/metrics") == (200, b"written 1\n")
        one.now += FRESH_S / 2
        assert await one.get("/metrics") == (200, b"written 2\n")

    told(story)


def test_whether_it_is_ready_is_looked_at_five_times_a_second_however_many_ask() -> None:
    async def story(one: Running) -> None:
        for _ in range(3):
            await asyncio.gather(*(one.get("/readyz") for _ in range(10)))
            one.now += READY_S
        assert one.looked == 3

    told(story)


def test_of_requests_that_come_at_once_one_is_answered_before_others_have_their_turn() -> None:
    """A pod that asks a thousand times without waiting for answers."""
    turn, answers = 0, Counter[int]()

    async def story(one: Running) -> None:
        loop, written = asyncio.get_running_loop(), one.probes.metrics

        def counted() -> bytes:
            answers[turn] += 1
            one.now += FRESH_S
            return written()

        def ticks() -> None:
            nonlocal turn
            turn += 1
            loop.call_soon(ticks)

        one.probes.metrics = counted
        connection = await one.connect()
        ticks()
        connection.writer.write(as_go("/metrics", b"", "GET", **{"Content-Length": ""}) * 1000)
        for _ in range(1000):
            await connection.reply()
        assert (answers.total(), max(answers.values())) == (1000, 1)

    told(story)


@pytest.mark.parametrize("flooder", [OTHER, "127.0.0.1"])
@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost:", as_go("/livez", b"", "GET")])
def test_a_flood_leaves_a_place_for_the_kubelet(flooder: str, sent: bytes) -> None:
    async def story(one: Running) -> None:
        for _ in range(200):
            connection = await one.connect(flooder)
            connection.writer.write(sent)
        assert (await one.get("/readyz"))[0] == 200
        assert (await one.get("/livez"))[0] == 200
        assert one.probes._port is not None
        door = one.probes._port.listener
        assert len(door._pending) + len(door._served) <= PROBES.pending_each + PROBES.served_each
        assert {*one.refused} == {"probes: too many connections"}

    told(story, idle_s=600.0)


@pytest.mark.parametrize("sent", [b"GET /metrics HTTP/1.1\r\nHost: x\r\n", as_go("/livez", b"", "GET")])
def test_who_says_nothing_more_is_closed(sent: bytes) -> None:
    """After an answer, and in the midst of a head that goes on in drops."""

    async def story(one: Running) -> None:
        connection = await one.connect()
        connection.writer.write(sent)
        if sent.endswith(b"\r\n\r\n"):
            assert (await connection.reply()).status == 200
            assert await connection.is_closed()
            return

        async def drip() -> None:
            while True:
                connection.writer.write(b"X-More: x\r\n")
                await asyncio.sleep(0.01)

        dripping = asyncio.ensure_future(drip())
        assert await connection.is_closed()
        dripping.cancel()

    told(story, idle_s=0.2)
