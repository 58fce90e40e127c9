"""Calls are passed on over TLS, with the operator's certificate; a hang-up on one side is one on the other."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.webhook.extender.call import Caller, IncomingCall, Reply, VerbReply
from fairlead.webhook.holding.passed_calls import (
    CONNECTS,
    NOWHERE,
    PATH,
    NoCertificateError,
    PassedCall,
    PassingOn,
)
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from scripted.loop import in_loop
from support.webhook import go
from support.webhook.tls import Ground

ARGS = {"PodName": "a", "PodNamespace": "ml", "PodUID": "u-a", "Node": "n1"}
CALL = PassedCall("fairlead", "fd00::9", msgspec.Raw(json.dumps(ARGS).encode()))
SEVEN = "7 of 8 members of the group found room (attempt 3)"


class Holder:
    """The replica that holds: what it was called with, and how it answers."""

    def __init__(self, answer: Callable[[IncomingCall], Awaitable[Reply]]) -> None:
        self.answer = answer
        self.calls: list[IncomingCall] = []

    async def handle(self, call: IncomingCall) -> Reply:
        self.calls.append(call)
        return await self.answer(call)


def authorize(name: str, path: str) -> Caller | None:
    return Caller(schedulers=frozenset()) if (name, path) == (OPERATOR, PATH) else None


async def bound(_: IncomingCall) -> Reply:
    return Reply(b'{"Error":""}')


async def refused(_: IncomingCall) -> Reply:
    return Reply(json.dumps({"Error": SEVEN}).encode())


async def unready(_: IncomingCall) -> Reply:
    return Reply(b"not ready yet", 503)


async def nonsense(_: IncomingCall) -> Reply:
    return Reply(b"[]")


class Scene:
    def __init__(self, holder: Holder, ground: Ground, port: int) -> None:
        self.holder, self.ground, self.where = holder, ground, f"127.0.0.1:{port}"
        self.results: list[str] = []
        self.hung_up = False
        self.name = OPERATOR
        self.passing = PassingOn(lambda: self.where, self.context, "localhost", self.results.append)

    async def context(self) -> ssl.SSLContext:
        if not self.name:
            raise NoCertificateError("there is no certificate of the operator's own authority yet")
        return self.ground.client(self.name)

    async def bind(self, within_s: float = 60) -> VerbReply:
        return await self.passing.bind("u-a", CALL, within_s, lambda: self.hung_up)


@asynccontextmanager
async def scene(tmp_path: Path, answer: Callable[[IncomingCall], Awaitable[Reply]] = bound) -> AsyncIterator[Scene]:
    holder, ground = Holder(answer), Ground(tmp_path)
    server = WebhookServer(Tls(ground.files), {PATH: holder.handle}, authorize, lambda *_: None, last_s=0.1)
    port = await server.start("127.0.0.1", 0)
    try:
        yield Scene(holder, ground, port)
    finally:
        await server.stop(0)


def error(reply: VerbReply) -> str:
    assert reply.status == 200
    why = str(go.decode("bind", reply.body)["Error"])
    assert (reply.outcome.result == "error", reply.outcome.error) == (bool(why), why)
    return why


@in_loop
async def test_the_call_arrives_with_scheduler_and_address_and_its_answer_comes_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as one:
        assert error(await one.bind()) == ""
        (call,) = one.holder.calls
        passed = msgspec.json.decode(call.body, type=PassedCall)
        assert (call.name, passed.scheduler, passed.address) == (OPERATOR, "fairlead", "fd00::9")
        assert json.loads(bytes(passed.arguments)) == ARGS
        assert one.results == ["answered"]


async def silent(_: IncomingCall) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


# the answer of the holder or what is wrong with the way to it, what the scheduler reads, and what is counted
ANSWERS: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "refused": (refused, {}, SEVEN, "answered"),
    "not ready": (unready, {}, "answered with status 503", "failed"),
    "a strange answer": (nonsense, {}, "its reply cannot be read", "answered"),
    "no holder": (bound, {"where": ""}, NOWHERE, "no holder"),
    "nothing listens there": (bound, {"where": "127.0.0.1:1"}, "did not answer", "failed"),
    "no certificate": (bound, {"name": ""}, "no certificate of the operator's own authority", "failed"),
    "the certificate of a scheduler": (bound, {"name": scheduler_identity("fairlead")}, "status 403", "failed"),
}


@pytest.mark.parametrize("case", ANSWERS)
@in_loop
async def test_what_the_scheduler_reads_is(case: str, tmp_path: Path) -> None:
    answer, fields, want, result = ANSWERS[case]
    async with scene(tmp_path, answer) as one:
        for field, value in fields.items():
            setattr(one, field, value)
        reply = await one.bind()
        if answer is nonsense:
            assert reply.outcome.error == want
        else:
            assert want in error(reply)
        assert one.results == [result]


@in_loop
async def test_a_holder_that_is_silent_is_waited_for_as_long_as_the_scheduler_waits(tmp_path: Path) -> None:
    async with scene(tmp_path, silent) as one:
        assert "did not answer: TimeoutError" in error(await one.bind(within_s=0.3))
        assert len(one.holder.calls) == 1
        assert "no time is left" in error(await one.bind(within_s=0.0))
        assert len(one.holder.calls) == 1, "without time no one is asked"


@in_loop
async def test_a_hang_up_on_one_side_is_one_on_the_other(tmp_path: Path) -> None:
    seen = asyncio.Event()

    async def until_abandoned(call: IncomingCall) -> Reply:
        while not call.is_abandoned():
            await asyncio.sleep(0.01)
        seen.set()
        return Reply(b"")

    async with scene(tmp_path, until_abandoned) as one:
        asking = asyncio.create_task(one.bind())
        while not one.holder.calls:
            await asyncio.sleep(0.01)
        assert not one.holder.calls[0].is_abandoned()
        one.hung_up = True
        assert error(await asking) == "the caller has hung up"
        await seen.wait()
        assert one.results == ["hung up"]


@in_loop
async def test_a_call_that_is_cancelled_hangs_up(tmp_path: Path) -> None:
    async with scene(tmp_path, silent) as one:
        asking = asyncio.create_task(one.bind())
        while not one.holder.calls:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        while not one.holder.calls[0].is_abandoned():
            await asyncio.sleep(0.01)


@in_loop
async def test_many_calls_are_passed_on_at_once(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def when_all_are_there(_: IncomingCall) -> Reply:
        if len(one.holder.calls) == 20:
            arrived.set()
        await arrived.wait()
        return Reply(b'{"Error":""}')

    async with scene(tmp_path, when_all_are_there) as one:
        context = one.ground.client(OPERATOR)

        async def kept() -> ssl.SSLContext:
            return context

        one.passing = PassingOn(lambda: one.where, kept, "localhost", one.results.append)
        replies = await asyncio.gather(*(one.bind() for _ in range(20)))
        assert {error(reply) for reply in replies} == {""}
        assert one.results == ["answered"] * 20


@in_loop
async def test_calls_that_fail_take_no_connection_from_others(tmp_path: Path) -> None:
    async with scene(tmp_path) as one:
        where = one.where
        for one.where, one.name in (("127.0.0.1:1", OPERATOR), (where, ""), (where, "fairlead:scheduler:s")):
            assert {one.passing._connecting.locked()} == {False}
            replies = await asyncio.gather(*(one.bind() for _ in range(CONNECTS + 2)))
            assert all(error(reply) for reply in replies)
        one.where, one.name = where, OPERATOR
        assert {error(reply) for reply in await asyncio.gather(*(one.bind() for _ in range(CONNECTS + 2)))} == {""}
