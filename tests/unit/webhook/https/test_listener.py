"""Floods of connections: how many are kept, and that those who have a certificate are served all the while."""

import asyncio
import errno
import gc
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from fairlead.webhook.extender.call import Reply
from fairlead.webhook.https import listener
from fairlead.webhook.https.connection_limits import WEBHOOK, ConnectionLimits, ConnectionsByAddress
from fairlead.webhook.https.counted_server import CountedServer
from fairlead.webhook.https.listener import CROWDED, TlsListener
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from support.webhook.tls import ANYBODY, Connection, Ground, connect

HELLO = b"\x16\x03\x01\x02\x00\x01\x00"
"""How a handshake begins; this one never goes on."""
OTHER, THIRD = "127.0.0.2", "127.0.0.3"
PATIENT = ConnectionLimits(
    served=20,
    served_each=10,
    pending=20,
    pending_each=10,
    handshakes=4,
    handshakes_each=2,
    pending_s=600,
    handshake_s=600,
)
"""Nothing ends for having taken long, but a handshake that others wait for."""
FOREVER = replace(PATIENT, hurried_s=600, late_s=600)


@dataclass
class Running:
    """A server, those who attack it, and those who use it."""

    ground: Ground
    limits: ConnectionLimits
    refused: Counter[str] = field(default_factory=Counter)
    opened: list[Connection] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self.server = WebhookServer(
            Tls(self.ground.files), {"/filter": lambda call: Reply(call.body)}, lambda *_: ANYBODY, self.refuse
        )
        self.server.limits = self.limits
        self.context = self.ground.client()

    def refuse(self, why: str, _: str) -> None:
        self.refused[why] += 1

    @property
    def door(self) -> TlsListener:
        assert self.server._listener is not None
        return self.server._listener

    async def flood(self, count: int, sent: bytes = b"", come_from: str = OTHER) -> list[Connection]:
        found = [await connect(self.port, None, come_from=come_from) for _ in range(count)]
        for one in found:
            one.writer.write(sent)
        self.opened += found
        return found

    async def call(self, come_from: str = "127.0.0.1") -> Connection:
        """A new connection of a scheduler, which is answered."""
        self.opened.append(await connect(self.port, self.context, come_from=come_from))
        assert (await self.opened[-1].call("/filter", b"1")).status == 200
        return self.opened[-1]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(folder: Path, limits: ConnectionLimits) -> AsyncIterator[Running]:
    one = Running(Ground(folder), limits)
    one.port = await one.server.start("127.0.0.1", 0)
    try:
        yield one
    finally:
        for connection in one.opened:
            await connection.close()
        await one.server.stop(0)


def told(folder: Path, story: Callable[[Running], Awaitable[None]], limits: ConnectionLimits = PATIENT) -> None:
    async def whole() -> None:
        async with running(folder, limits) as one:
            await story(one)

    asyncio.run(whole())


async def closed(connections: list[Connection], count: int) -> None:
    """Wait until the other side has closed so many of them."""
    looking = {asyncio.ensure_future(one.is_closed()) for one in connections}
    rest = looking
    async with asyncio.timeout(120):
        while len(looking) - len(rest) < count:
            _, rest = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
    for one in rest:
        one.cancel()


@pytest.mark.parametrize("flooder", [OTHER, "127.0.0.1"])
def test_of_those_who_say_nothing_few_are_kept(tmp_path: Path, flooder: str) -> None:
    async def story(one: Running) -> None:
        kept = await one.call()
        silent = await one.flood(300, come_from=flooder)
        await one.call()
        await one.until(lambda: one.refused[CROWDED] >= 290)
        assert len(one.door._pending) <= 10
        await closed(silent, 290)
        assert (await kept.call("/filter", b"2")).body == b"2"
        await one.call()

    told(tmp_path, story)


def test_nobody_is_kept_who_says_nothing_for_long(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        (silent,) = await one.flood(1)
        assert await silent.is_closed()
        assert one.refused == Counter(timeout=1)
        assert len(one.door._pending) == 0

    told(tmp_path, story, replace(PATIENT, pending_s=0.05))


def test_without_a_flood_the_product_closes_nobody(tmp_path: Path) -> None:
    """A scheduler begins as many calls of bind at once as it likes: here more than can shake hands."""

    async def story(one: Running) -> None:
        await asyncio.gather(*(one.call() for _ in range(80)))
        assert one.refused == Counter()

    told(tmp_path, story, replace(WEBHOOK, pending_s=600, handshake_s=600, late_s=600))


def test_a_group_of_500_has_room_before_its_handshakes_and_beside_256_other_calls_of_its_address() -> None:
    pending = ConnectionsByAddress[int](WEBHOOK.pending, WEBHOOK.pending_each)
    served = ConnectionsByAddress[int](WEBHOOK.served, WEBHOOK.served_each)
    assert [pending.add(one, "scheduler") for one in range(500)] == [None] * 500
    for address in ("scheduler", "another"):
        known = len(served)
        assert [served.add(known + one, address) for one in range(756)] == [None] * 756
    assert served.is_full_for("scheduler")


@pytest.mark.parametrize(
    ("flooders", "each", "hurried_s", "late_s"),
    [
        ([OTHER], 8, 600, 600),  # elsewhere there is a place all the while
        ([OTHER, THIRD], 8, 0.05, 600),
        (["127.0.0.1"], 3, 600, 0.5),
    ],
)
def test_half_a_handshake_holds_nobody_up(
    tmp_path: Path, flooders: list[str], each: int, hurried_s: float, late_s: float
) -> None:
    async def story(one: Running) -> None:
        kept = await one.call()
        for flooder in flooders:
            await one.flood(each, HELLO, flooder)
        await one.until(lambda: len(one.door._handshakes) >= 2)
        for _ in range(3):
            await one.call()
            assert len(one.door._handshakes) <= 4
        assert (await kept.call("/filter", b"2")).body == b"2"
        assert (one.refused["timeout"] > 0) is (flooders != [OTHER])

    told(tmp_path, story, replace(PATIENT, hurried_s=hurried_s, late_s=late_s))


@pytest.mark.parametrize("known", [True, False])
def test_who_is_known_is_not_hurried(tmp_path: Path, known: bool) -> None:
    """A scheduler that has a connection opens several at once, and is slow; elsewhere somebody waits for a place."""

    async def story(one: Running) -> None:
        kept = await one.call(OTHER)
        if not known:
            await kept.close()
            await one.until(lambda: not len(one.door._served))
        await one.flood(2, HELLO, OTHER)
        await one.until(lambda: len(one.door._handshakes) == 2)
        await one.flood(2, HELLO, THIRD)
        await one.until(lambda: len(one.door._handshakes) == 4)
        await one.call()
        assert one.refused == Counter(timeout=1)
        await one.until(lambda: len(one.door._handshakes) == 3)
        left = Counter(each.connection.address for each in one.door._handshakes.values())
        assert left == ({OTHER: 2, THIRD: 1} if known else {OTHER: 1, THIRD: 2})

    told(tmp_path, story, replace(PATIENT, hurried_s=0.05, late_s=600))


@pytest.mark.parametrize(
    ("kept", "waiting", "comes", "busy"),
    [
        (("127.0.0.1",), ("127.0.0.4", "127.0.0.5", "127.0.0.6"), "127.0.0.1", False),  # before those who waited longer
        (("127.0.0.1",), ("127.0.0.4", "127.0.0.5", "127.0.0.6"), "127.0.0.1", True),  # also with its second one
        ((OTHER, THIRD), (OTHER, THIRD, OTHER, THIRD), "127.0.0.1", False),  # but these leave places to the others
    ],
)
def test_who_is_known_comes_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept: tuple[str, ...],
    waiting: tuple[str, ...],
    comes: str,
    busy: bool,
) -> None:
    entered = list[str]()

    async def story(one: Running) -> None:
        for each in kept:
            await one.call(each)
        enter = TlsListener._shake_hands

        async def noted(self: TlsListener, pending: Any) -> None:
            entered.append(pending.address)
            await enter(self, pending)

        monkeypatch.setattr(TlsListener, "_shake_hands", noted)
        if busy:
            await one.flood(1, HELLO, comes)
        await one.flood(2, HELLO, OTHER)
        await one.flood(1 if busy else 2, HELLO, THIRD)
        await one.until(lambda: len(one.door._handshakes) == 4)
        taken = len(entered)
        for each in waiting:
            await one.flood(1, HELLO, each)
        calling = asyncio.ensure_future(one.call(comes))
        await one.until(lambda: sum(map(len, one.door._waiting.values())) == len(waiting) + 1)
        one.door.limits = replace(PATIENT, hurried_s=0, late_s=0)
        one.door._start_handshakes()  # one of them has had his time
        one.door.limits = FOREVER
        await one.until(lambda: len(entered) > taken)
        assert entered[taken] == comes
        await calling

    told(tmp_path, story, FOREVER)


def test_half_a_handshake_ends(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        halves = await one.flood(2, HELLO)
        await closed(halves, 2)
        await one.until(lambda: not one.door._handshakes)
        assert one.refused == Counter({"timeout": 2})

    told(tmp_path, story, replace(PATIENT, handshake_s=0.05))


@pytest.mark.parametrize(
    ("sent", "limits", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", PATIENT, "plain HTTP"),
        (HELLO, replace(PATIENT, handshake_s=0.01), "timeout"),
        (HELLO, replace(PATIENT, late_s=0.01, handshakes_each=1, handshakes=1), "timeout"),
    ],
    ids=["refused", "timed out", "cut off for others"],
)
def test_a_handshake_that_fails_leaves_no_buffers_behind(
    tmp_path: Path, sent: bytes, limits: ConnectionLimits, reason: str
) -> None:
    """Whoever attacks decides how many they are; the collector comes once in thousands."""

    async def story(one: Running) -> None:
        gc.collect()
        gc.disable()
        try:
            await one.flood(8, sent)
            await one.until(lambda: one.refused[reason] >= 7)  # with others there is one that nobody waits for
            await one.until(lambda: len([*filter(is_buffer, gc.get_objects())]) <= 2)
        finally:
            gc.enable()

    told(tmp_path, story, limits)


def is_buffer(held: object) -> bool:
    """Whether it is one half of what a connection over TLS keeps."""
    return type(held) is ssl.MemoryBIO


def test_of_those_who_are_let_in_no_address_has_more_than_its_share(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        kept = [await one.call(OTHER) for _ in range(10)]
        shaken = one.refused.total()
        more = await one.flood(5, HELLO)
        await closed(more, 5)
        assert one.refused == Counter({CROWDED: 5})
        assert (one.door._handshakes, shaken) == ({}, 0)  # they were closed before anybody shook hands
        await one.call()
        for connection in kept:
            assert (await connection.call("/filter", b"2")).body == b"2"
        await kept[0].close()
        await one.until(lambda: len(one.door._served) < 11)
        await one.call(OTHER)

    told(tmp_path, story)


def test_where_all_places_are_taken_whoever_has_most_makes_room(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        first = [await one.call(OTHER) for _ in range(9)]
        second = [await one.call(THIRD) for _ in range(10)]
        await one.call()
        await one.call()  # the 21st
        assert await second[0].is_closed()
        assert len(one.door._served) == 20
        for connection in (*first, *second[1:]):
            assert (await connection.call("/filter", b"2")).body == b"2"

    told(tmp_path, story)


def test_whoever_ends_is_forgotten(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        for _ in range(30):
            await (await one.call()).close()
        await one.flood(5)
        for connection in one.opened:
            await connection.close()
        await one.until(lambda: len(one.door._served) + len(one.door._pending) == 0)

    told(tmp_path, story)


def test_calls_are_answered_between_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who wait to be accepted are taken in few at a time, however many there are."""
    taken = Counter[int]()

    async def story(one: Running) -> None:
        loop, turn = asyncio.get_running_loop(), 0
        come = TlsListener._add

        def counted(self: TlsListener, pending: Any) -> None:
            taken[turn] += 1
            come(self, pending)

        def ticks() -> None:
            nonlocal turn
            turn += 1
            loop.call_soon(ticks)

        monkeypatch.setattr(TlsListener, "_add", counted)
        ticks()
        # nobody is accepted meanwhile
        sockets = [socket.create_connection(("127.0.0.1", one.port), timeout=60) for _ in range(200)]
        await one.until(lambda: taken.total() == 200)
        for each in sockets:
            each.close()

    told(tmp_path, story)
    assert max(taken.values()) <= listener.AT_ONCE


def test_where_descriptors_run_out_it_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSE_S", 0.01)
    failed = 0

    class Poor:
        """A socket that cannot accept three times."""

        def __init__(self, real: socket.socket) -> None:
            self.real = real

        def accept(self) -> Any:
            nonlocal failed
            if failed < 3:
                failed += 1
                raise OSError(errno.EMFILE, "Too many open files")
            return self.real.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    async def story(one: Running) -> None:
        loop, found = asyncio.get_running_loop(), one.door
        (real,) = found._listening
        loop.remove_reader(real)
        poor: Any = Poor(real)
        found._listening[:] = [poor]
        loop.add_reader(poor, found._accept, poor)
        await one.call()
        assert failed == 3

    told(tmp_path, story)


def test_others_have_their_turn_before_each_request() -> None:
    """Also where aiohttp would answer all that is there at one stretch: from Python 3.12 on it does."""
    asked = list[object]()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request)
        return web.Response()

    async def ask() -> None:
        guests = CountedServer(handle, lambda _: None)
        later: Any = guests.request_handler(Mock())
        assert (later.send(None), asked) == (None, [])
        with pytest.raises(StopIteration):
            later.send(None)
        assert len(asked) == 1

    asyncio.run(ask())
