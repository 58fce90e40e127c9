"""The server serves on while its authority is rotated: kept connections live, new ones are let in by what is new."""

import asyncio
import ssl
from contextlib import AsyncExitStack

import pytest

from fairlead.certificates import Pair, issued
from fairlead.cluster.secrets import Metadata, Secret
from fairlead.control import authority as authorities
from fairlead.control.authority import LEAF_LIFE, Authority, Phase
from fairlead.control.material import Material
from fairlead.identities import scheduler_identity
from fairlead.pairs import load_pair
from fairlead.webhook.callers import Callers
from fairlead.webhook.server import Answer, WebhookServer
from fairlead.webhook.tls import Contents, InMemory, Tls
from fairlead.webhook.world import Caller
from scripted.loop import in_loop
from tlskit import NOW, connect

SOURCE = InMemory("our authority")
CALLER = Caller(schedulers=frozenset({"gpu"}))


def use(material: Material) -> None:
    """As the operator does it."""
    assert material.authority is not None
    assert material.server is not None
    SOURCE.contents = Contents(material.server.certificate, material.server.key, material.authority.trusted)


def client(pair: Pair, known: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=known.decode())
    load_pair(context, pair.certificate, pair.key)
    return context


def scheduler(by: Pair, name: str = "gpu") -> Pair:
    return issued(by, scheduler_identity(name), "client", NOW, LEAF_LIFE)


@in_loop
async def test_a_rotation_closes_no_connection() -> None:
    material = Material(frozenset({"127.0.0.1"}), lambda: NOW, use)
    callers = Callers(lambda: [CALLER])

    def put(one: Authority) -> None:
        material.put(Secret(Metadata("ca"), data=one.data()))

    held = Authority(authorities.new(NOW))
    old, new = held.signing, authorities.new(NOW)
    put(held)
    tls = Tls(SOURCE)
    server = WebhookServer(
        tls,
        {"/filter": lambda call: Answer(call.caller.encode())},
        lambda name, _: callers(name, "filter") is not None,
        lambda *_: None,
    )
    port = await server.start("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop, 0)

        async def call(context: ssl.SSLContext) -> tuple[int, bytes]:
            connection = await connect(port, context)
            stack.push_async_callback(connection.close)
            reply = await connection.call("/filter")
            return reply.status, reply.body

        kept = await connect(port, client(scheduler(old), held.known))
        stack.push_async_callback(kept.close)
        good = 200, b"fairlead:scheduler:gpu"
        for phase in (Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED, Phase.STABLE):
            before, held = held, held.becomes(phase, lambda: new)
            shows = [scheduler(one) for one in (old, new) if one.certificate in before.trusted]
            put(held)
            assert tls.reload() == (phase is not Phase.NARROWED)  # that is about schedulers alone
            assert (await kept.call("/filter")).status == 200
            for pair in shows if phase is not Phase.STABLE else shows[1:]:
                assert await call(client(pair, held.known)) == good
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await call(client(scheduler(old), held.known))
        assert (await call(client(scheduler(new, "web"), held.known)))[0] == 403
        assert (await kept.call("/filter")).status == 200
