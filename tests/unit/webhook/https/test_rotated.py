"""The server serves on while its authority is rotated: no call fails, and what the old one has signed ends with it."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from fairlead.kube.watch.secrets import Secret, SecretMetadata
from fairlead.pki import authority as authorities
from fairlead.pki.authority import LEAF_LIFE, Authority, Phase
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, issue_leaf
from fairlead.pki.tls_context import load_pair
from fairlead.process.replica_certificates import ReplicaCertificates
from fairlead.webhook.extender.call import Caller, Reply
from fairlead.webhook.extender.callers import Callers
from fairlead.webhook.https.server import AGE_S, WebhookServer
from fairlead.webhook.https.tls import Contents, InMemory, Tls
from scripted.loop import in_loop
from support.policy import SECOND
from support.webhook.tls import NOW, Connection, connect

SOURCE = InMemory("our authority")
CALLER = Caller(schedulers=frozenset({"gpu"}))


def use(material: ReplicaCertificates) -> None:
    """As the operator does it."""
    assert material.authority is not None
    assert material.server is not None
    SOURCE.contents = Contents(material.server.certificate, material.server.key, material.authority.client_ca_bundle)


def client(pair: Pair, known: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=known.decode())
    load_pair(context, pair.certificate, pair.key)
    return context


def scheduler(by: Pair, name: str = "gpu") -> Pair:
    return issue_leaf(by, scheduler_identity(name), "client", NOW, LEAF_LIFE)


@dataclass
class Scheduler:
    """As Go's client: it keeps its connection until it is told that it is to end, and then connects anew."""

    port: int
    shows: ssl.SSLContext
    connections: int = 0
    kept: Connection | None = None

    async def call(self) -> tuple[int, bytes]:
        if self.kept is None:
            self.kept = await connect(self.port, self.shows)
            self.connections += 1
        reply = await self.kept.call("/filter")
        if reply.headers.get("connection") == "close":
            await self.close()
        return reply.status, reply.body

    async def close(self) -> None:
        if self.kept is not None:
            await self.kept.close()
        self.kept = None


@in_loop
async def test_a_rotation_fails_no_call_and_leaves_nobody_of_the_old_authority() -> None:
    material = ReplicaCertificates(frozenset({"127.0.0.1"}), lambda: NOW, use)
    callers = Callers(lambda: [CALLER])
    passed = 0.0

    def put(one: Authority) -> None:
        material.put(Secret(SecretMetadata("ca"), data=one.data()))

    held = Authority(authorities.new(NOW))
    old, new = held.signing, authorities.new(NOW)
    put(held)
    tls = Tls(SOURCE)
    server = WebhookServer(
        tls,
        {"/filter": lambda call: Reply(call.name.encode())},
        lambda name, _: callers(name, "filter"),
        lambda *_: None,
        clock=lambda: int(passed * SECOND),
    )
    port = await server.start("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop, 0)

        def begun(context: ssl.SSLContext) -> Scheduler:
            made = Scheduler(port, context)
            stack.push_async_callback(made.close)
            return made

        kept, late = (begun(client(scheduler(old), held.server_ca_bundle)) for _ in range(2))
        good = 200, b"fairlead:scheduler:gpu"
        for phase in (Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED, Phase.STABLE):
            before, held = held, held.becomes(phase, lambda: new)
            shows = [scheduler(one) for one in (old, new) if one.certificate in before.client_ca_bundle]
            assert await kept.call() == good
            put(held)
            assert tls.reload() == (phase is not Phase.NARROWED)  # that is about schedulers alone
            for pair in shows if phase is not Phase.STABLE else shows[1:]:
                assert await begun(client(pair, held.server_ca_bundle)).call() == good
            if (
                phase is Phase.SWITCHED
            ):  # its Secret has another certificate by now: it shows that when it connects anew
                kept.shows = client(scheduler(new), held.server_ca_bundle)
                late.shows = client(scheduler(old), held.server_ca_bundle)
                assert await late.call() == good
            passed += AGE_S / 2
        assert await kept.call() == good
        assert kept.connections > 1
        assert late.kept is not None
        assert await late.kept.is_closed()
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await begun(client(scheduler(old), held.server_ca_bundle)).call()
        assert (await begun(client(scheduler(new, "web"), held.server_ca_bundle)).call())[0] == 403
