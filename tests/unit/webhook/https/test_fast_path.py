"""Calls as the scheduler writes them do not go through aiohttp, and nobody can tell."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp.web_protocol import RequestHandler
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from fairlead.metrics import Metrics
from fairlead.webhook.binding.api_calls import Posted
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.call import Caller, IncomingCall, Reply, Verb
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.https.fast_path import FastPathConnection
from fairlead.webhook.https.server import Handle, WebhookServer
from fairlead.webhook.https.tls import Tls
from support.policy import SECOND, node, policy
from support.webhook import Asking, body
from support.webhook.tls import Ground, as_go

MAX_BODY = 100_000


class Loop(asyncio.SelectorEventLoop):
    """Time passes when it is told to."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    async def skip(self, seconds: float) -> None:
        self.now += seconds
        await self.settle()


@dataclass(eq=False)
class Line(asyncio.Transport):
    """A connection whose other end is the test."""

    loop: Loop
    protocol: FastPathConnection
    name: str = "scheduler"
    sent: bytearray = field(default_factory=bytearray)
    is_open: bool = True

    def __post_init__(self) -> None:
        super().__init__()
        self.protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known = {"peercert": {"subject": ((("commonName", self.name),),)}, "peername": ("192.0.2.1", 5)}
        return known.get(name, default)

    def write(self, data: Any) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.loop.call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None:
        """Nothing comes but what the test sends."""

    resume_reading = pause_reading

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            if self.is_open and part:
                self.protocol.data_received(part)
            await self.loop.settle()

    def replies(self) -> list["Received"]:
        found, rest = list[Received](), bytes(self.sent)
        while rest:
            head, rest = rest.split(b"\r\n\r\n", 1)
            status, *lines = head.decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            length = int(headers["Content-Length"])
            said = {key: headers.get(key) for key in ("Content-Length", "Content-Type", "Connection")}
            found.append(Received(status, said, rest[:length]))
            rest = rest[length:]
        return found


@dataclass(frozen=True)
class Received:
    status: str
    headers: dict[str, str | None]
    body: bytes


class Nobody:
    """An API server that is not asked."""

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted:
        raise AssertionError

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes:
        raise AssertionError


@dataclass
class Site:
    """A server without a network."""

    folder: Path
    loop: Loop
    step: int = 0
    ready: bool = True
    refused: Counter[str] = field(default_factory=Counter)
    routes: dict[str, Handle] = field(default_factory=dict)

    def __post_init__(self) -> None:
        filters = {"f": "node.metadata.name != 'b'", "g": "pod.metadata.name != node.metadata.name"}
        spec = policy(filters=filters, scores={"s": "node.metadata.name == 'a' ? 100.0 : 0.0"})
        self.asking, self.metrics = Asking([spec], [node("a"), node("b")]), Metrics()
        self.calls = Dispatcher(Binder(Nobody()), self.caller, self.world, 1.0, self.metrics, clock=self.clock)
        self.server = WebhookServer(
            Tls(Ground(self.folder).files),
            self.routes or {**self.calls.routes(), "/fault": self.fault},
            lambda name, _: self.asking.caller if name == "scheduler" else None,
            lambda reason, peer: self.refused.update([f"{reason} from {peer}"]),
            max_body=MAX_BODY,
            clock=self.clock,
        )

    def caller(self, name: str, verb: Verb) -> Caller | None:
        return self.asking.caller

    def world(self) -> ServingState | None:
        return self.asking.serving if self.ready else None

    def fault(self, _: IncomingCall) -> Reply:
        raise RuntimeError("on purpose")

    def clock(self) -> int:
        self.loop.now += self.step / SECOND
        return int(self.loop.now * SECOND)

    async def line(self, name: str = "scheduler") -> Line:
        line = Line(self.loop, self.server.connection(), name)
        await self.loop.settle()
        return line

    @property
    def through_aiohttp(self) -> int:
        return self.server._server.requests_count

    def counted(self) -> dict[tuple[str, ...], float]:
        families = text_string_to_metric_families(self.metrics.exposition().decode())
        return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def told(site: Callable[[Loop], Site], story: Callable[[Site], Awaitable[None]]) -> None:
    async def whole(loop: Loop) -> None:
        one = site(loop)
        await one.server.start("127.0.0.1", 0)
        try:
            await story(one)
        finally:
            stopping = loop.create_task(one.server.stop(0))
            while not stopping.done():
                await loop.skip(1)

    loop = Loop()
    try:
        loop.run_until_complete(whole(loop))
    finally:
        loop.close()


OTHER = b"Accept-Encoding: gzip\r\nX-Other: 1\r\n"
NAMES, ALL = body(["a", "b", "c"]), {"ready": True, "name": "scheduler", "draining": False, "step": 0}
_CASES: dict[str, tuple[str, bytes, dict[str, Any], bool]] = {
    "refused by a rule": ("/filter", NAMES, {}, True),
    "nobody refused": ("/filter", body(["a"]), {}, True),
    "the other gate": ("/ignore/filter", NAMES, {}, True),
    "scores": ("/prioritize", NAMES, {}, True),
    "victims": ("/preempt", body(victims={"a": ["u"], "b": []}), {}, True),
    "the other gate's victims": ("/ignore/preempt", body(victims={"a": []}), {}, True),
    "no JSON to filter": ("/filter", b"{", {}, True),
    "no JSON to prioritize": ("/prioritize", b"nothing", {}, True),
    "not ready": ("/filter", NAMES, {"ready": False}, True),
    "too slow": ("/filter", body([f"n{at}" for at in range(99)]), {"step": SECOND // 2}, True),
    "a fault": ("/fault", NAMES, {}, True),
    "who may not": ("/filter", NAMES, {"name": "stranger"}, False),
    "no such path": ("/nothing", NAMES, {}, False),
    "too large": ("/filter", b"x" * (MAX_BODY + 1), {}, False),
    "as large as may be": ("/prioritize", b"x" * MAX_BODY, {}, True),
    "what waits": ("/bind", b"{}", {}, False),
    "the last calls": ("/filter", NAMES, {"draining": True}, False),
}


@pytest.mark.parametrize("case", _CASES)
def test_both_ways_come_to_the_same(tmp_path: Path, case: str) -> None:
    path, sent, how, is_direct = _CASES[case]
    how, seen = {**ALL, **how}, list[Any]()

    def asked(call: bytes, is_direct: bool) -> None:
        async def story(one: Site) -> None:
            one.server.draining = how["draining"]
            line = await one.line(how["name"])
            one.step = how["step"]
            await line.send(call)
            one.step = 0
            seen.append((line.replies(), line.is_open, one.refused, one.counted()))
            assert len(line.replies()) == 1
            assert one.through_aiohttp == (not is_direct)
            await line.send(call)  # whatever it was, the next one is served
            assert len(line.replies()) == 1 + line.is_open

        told(lambda loop: Site(tmp_path, loop, ready=how["ready"]), story)

    asked(as_go(path, sent), is_direct)
    asked(as_go(path, sent).replace(b"Accept-Encoding: gzip\r\n", OTHER), False)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("is_direct", [True, False])
def test_listeners_are_told_after_the_reply_was_sent(tmp_path: Path, *, is_direct: bool) -> None:
    async def story(one: Site) -> None:
        line, seen = await one.line(), list[tuple[str, int]]()
        one.calls.listeners = Listeners((lambda decision: seen.append((decision.verb, len(line.replies()))),))
        for path, sent in (("/filter", NAMES), ("/prioritize", NAMES), ("/bind", b"{}")):
            call = as_go(path, sent)
            await line.send(call if is_direct else call.replace(b"Accept-Encoding: gzip\r\n", OTHER))
        assert seen == [("filter", 1), ("prioritize", 2), ("bind", 3)]

    told(lambda loop: Site(tmp_path, loop), story)


def test_listeners_are_told_of_a_call_whose_caller_has_gone(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line, seen, answer = await one.line(), list[str](), one.server.routes["/filter"]

        def close_and_answer(call: IncomingCall) -> Any:
            line.close()
            return answer(call)

        one.server.routes = {"/filter": close_and_answer}
        one.calls.listeners = Listeners((lambda decision: seen.append(decision.verb),))
        await line.send(as_go("/filter", NAMES).replace(b"Accept-Encoding: gzip\r\n", OTHER))
        assert (seen, line.is_open) == (["filter"], False)

    told(lambda loop: Site(tmp_path, loop), story)


@pytest.mark.parametrize("cut", [1, 2000])
def test_a_caller_that_goes_before_its_body_has_arrived_is_no_fault(
    cut: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(one: Site) -> None:
        line, call = await one.line(), as_go("/filter", b" " * 3000).replace(b"Accept-Encoding: gzip\r\n", OTHER)
        await line.send(call[:-cut])
        line.close()
        await one.loop.settle()

    told(lambda loop: Site(tmp_path, loop), story)
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []


def echoing(folder: Path) -> Callable[[Loop], Site]:
    def echo(call: IncomingCall) -> Reply:
        return Reply(call.body)

    async def slow(call: IncomingCall) -> Reply:
        await asyncio.sleep(0)
        return Reply(call.body)

    return lambda loop: Site(folder, loop, routes={"/filter": echo, "/bind": slow})


FILTER, BIND = as_go("/filter", b'{"filter":1}'), as_go("/bind", b'{"bind":22}')
_STREAM = {"filter": FILTER, "bind": BIND, "other": FILTER.replace(b"Accept-Encoding: gzip\r\n", OTHER)}


def test_a_call_may_be_cut_at_any_byte(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        for call, content in ((FILTER, b'{"filter":1}'), (BIND, b'{"bind":22}')):
            for at in range(len(call)):
                line = await one.line()
                await line.send(call[:at], call[at:], FILTER)
                assert [reply.body for reply in line.replies()] == [content, b'{"filter":1}'], at
            line = await one.line()
            await line.send(*(call[at : at + 1] for at in range(len(call))))
            assert [reply.body for reply in line.replies()] == [content]

    told(echoing(tmp_path), story)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(sorted(_STREAM)), min_size=1, max_size=5), st.lists(st.integers(0, 1500), max_size=8))
def test_calls_may_follow_each_other_in_any_pieces(tmp_path: Path, kinds: Sequence[str], cuts: Sequence[int]) -> None:
    stream = b"".join(_STREAM[kind] for kind in kinds)
    bounds = [0, *sorted(cuts), len(stream)]

    async def story(one: Site) -> None:
        line = await one.line()
        for begin, end in pairwise(bounds):
            line.protocol.data_received(stream[begin:end]) if end > begin else await one.loop.settle()
        await one.loop.settle()
        assert [reply.body for reply in line.replies()] == [_STREAM[kind].split(b"\r\n\r\n")[1] for kind in kinds]

    told(echoing(tmp_path), story)


def test_after_a_call_that_waits_the_next_one_is_direct_again(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        for cut in (len(BIND) - 3, len(BIND)):
            await line.send(BIND[: cut - 2], BIND[cut - 2 : cut], BIND[cut:], FILTER)
        assert (one.through_aiohttp, len(line.replies())) == (2, 4)

    told(echoing(tmp_path), story)


def test_no_reply_overtakes_another(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        for call in (BIND, FILTER, FILTER, BIND, FILTER):
            line.protocol.data_received(call)
        await one.loop.settle()
        assert [b"bind" in reply.body for reply in line.replies()] == [True, False, False, True, False]
        await line.send(FILTER)
        assert one.through_aiohttp == 5

    told(echoing(tmp_path), story)


def test_who_does_not_read_the_replies_waits(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        line.protocol.pause_writing()
        await line.send(FILTER)
        await line.send(FILTER)
        assert one.through_aiohttp == 1  # the second call waits for the first reply to be read
        line.protocol.resume_writing()
        await one.loop.settle()
        assert len(line.replies()) == 2

    told(echoing(tmp_path), story)


@pytest.mark.parametrize("call", [FILTER, _STREAM["other"]], ids=["direct", "through aiohttp"])
def test_a_connection_lives_while_it_is_used_and_its_time_after(tmp_path: Path, call: bytes) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        for _ in range(5):
            await line.send(call)
            await one.loop.skip(100)
        assert (len(line.replies()), line.is_open) == (5, True)
        await line.send(call)
        await one.loop.skip(119)
        assert line.is_open
        await one.loop.skip(2)
        assert not line.is_open

    told(echoing(tmp_path), story)


@pytest.mark.parametrize("call", [FILTER, _STREAM["other"]], ids=["direct", "through aiohttp"])
def test_a_body_that_is_slow_is_refused_in_the_end(tmp_path: Path, call: bytes) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        await one.loop.skip(115)  # its time is nearly over when it begins to speak
        await line.send(call[:-2])
        await one.loop.skip(9)
        await line.send(call[-2:])
        assert ([reply.status for reply in line.replies()], line.is_open) == (["HTTP/1.1 200 OK"], True)
        await line.send(call[:-2])
        await one.loop.skip(9)
        await line.send(call[-2:-1])
        await one.loop.skip(2)
        assert [reply.status for reply in line.replies()][1:] == ["HTTP/1.1 408 Request Timeout"]
        assert one.refused == Counter({"slow body from 192.0.2.1": 1})
        await one.loop.skip(2)
        assert not line.is_open

    told(echoing(tmp_path), story)


def test_a_call_that_ends_while_the_server_does_is_told_so(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        await line.send(FILTER[:-2])
        one.server.draining = True
        await line.send(FILTER[-2:])
        (reply,) = line.replies()
        assert (reply.body, reply.headers["Connection"], line.is_open) == (b'{"filter":1}', "close", False)

    told(echoing(tmp_path), story)


def test_half_a_call_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story(one: Site) -> None:
        line = await one.line()
        await line.send(FILTER[:-2])
        line.close()
        await one.loop.settle()
        assert (line.protocol._parts, line.protocol._timer) == ([], None)
        await one.loop.skip(60)
        assert (line.replies(), one.refused, one.through_aiohttp) == ([], Counter(), 0)

    told(echoing(tmp_path), story)


def test_aiohttp_has_what_is_used_of_its_own(tmp_path: Path) -> None:
    """Where this fails, aiohttp has changed: look at its RequestHandler anew before you change what is expected."""
    assert {"_waiter", "_next_keepalive_close_time", "_keepalive_handle"} <= {*RequestHandler.__slots__}

    async def story(one: Site) -> None:
        protocol: Any = (await one.line()).protocol
        assert not hasattr(protocol, "__dict__")  # whatever is set and has another name now is an error
        assert not protocol._waiter.done()
        handle = protocol._keepalive_handle
        assert handle.when() == protocol._next_keepalive_close_time == one.loop.time() + protocol.keepalive_timeout

    told(echoing(tmp_path), story)
