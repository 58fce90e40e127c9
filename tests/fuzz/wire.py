"""Attacks on the real server over mutual TLS: it answers with statuses that are told, and serves the next one."""

import asyncio
import resource
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from fairlead.metrics import Metrics
from fairlead.pki.issuing import create_authority
from fairlead.webhook.binding.api_calls import Posted
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.call import Caller, Verb
from fairlead.webhook.https.dispatch import PATHS, Dispatcher
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from fuzz.against import Broken, Fuzz
from fuzz.mutate import mutated
from support.webhook import body, go
from support.webhook.tls import NOW, YEAR, Connection, Ground, as_go, connect

STATUSES: Final = frozenset((200, 400, 403, 404, 405, 408, 413, 503))
"""Those that docs/reference/serve.md names."""
MAX_BODY: Final = 1 << 20
_LOST: Final = (OSError, asyncio.IncompleteReadError, ssl.SSLError)
_RIGHT: Final = body(["n1"])
_METHODS: Final = ("GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW", "post", "CONNECT")
_PATHS: Final = ("/", "/filter/", "//filter", "/bind?x=1", "/%2e%2e/bind", "/metrics", "*", "/" + "x" * 9000, "/\u00e9")
_HEADERS: Final = (
    {"Content-Length": "-1"},
    {"Content-Length": "99999999999999999999"},
    {"Content-Length": "x"},
    {"Content-Encoding": "gzip"},
    {"Transfer-Encoding": "chunked"},
    {"Transfer-Encoding": "gzip, chunked", "Content-Length": ""},
    {"Expect": "100-continue"},
    {"Connection": "close"},
    {"Upgrade": "h2c", "Connection": "Upgrade"},
    {"X": "y" * 20_000},
)


class Api:
    """An API server that binds whatever it is asked to."""

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted:
        await asyncio.sleep(0)
        return Posted()

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes:
        return b'{"metadata":{"uid":"u-x"},"spec":{"schedulerName":"fairlead"}}'


@dataclass
class Wire:
    """A server, and those who attack it."""

    random: Random
    server: WebhookServer
    ground: Ground
    fuzz: Fuzz
    port: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    attacks: Counter[str] = field(default_factory=Counter)
    halves: list[Connection] = field(default_factory=list)
    silent: list[Connection] = field(default_factory=list)
    right: Connection | None = None

    def __post_init__(self) -> None:
        ground, stranger = self.ground, create_authority("ca", NOW, YEAR)
        self.context = ground.client("scheduler")
        self.wrong = {
            "no certificate": ground.client(None),
            "another authority": ground.client("stranger", stranger),
            "expired": ground.client("expired", when=NOW - timedelta(days=9)),
            "not yet valid": ground.client("early", when=NOW + timedelta(days=9)),
            "nobody": ground.client("nobody"),
        }

    async def one(self) -> None:
        """One attack, and the next right call."""
        attack = self.random.choice((self._bodies, self._bodies, self._heads, self._half, self._noise, self._strangers))
        try:
            await attack()
        except _LOST:
            self.attacks[f"{attack.__name__}: closed"] += 1
        self.attacks[attack.__name__] += 1
        while len(self.halves) > 50:
            await self.halves.pop(self.random.randrange(len(self.halves))).close()
        await self.is_served()

    async def is_served(self) -> None:
        """A right call on a connection that was there before."""
        self.right = self.right or await self._connect()
        reply = await self.right.call("/filter", _RIGHT)
        if reply.status != 200 or go.decode("filter", reply.body)["Error"]:
            raise Broken(f"the next right call was answered with {reply}")

    async def silent_are_served(self) -> None:
        """Right calls from some that have said nothing so far; after two minutes the server may close them."""
        for connection in self.silent[:10]:
            if (await connection.call("/filter", _RIGHT)).status != 200:
                raise Broken("who was silent is not served")

    async def close(self) -> None:
        for one in (*self.halves, *([self.right] if self.right else [])):
            await one.close()

    async def _connect(self) -> Connection:
        return await connect(self.port, self.context)

    async def _said(self, connection: Connection) -> None:
        async with asyncio.timeout(20):
            status = (await connection.reply()).status
        self.statuses[status] += 1
        if status not in STATUSES:
            raise Broken(f"status {status}")

    async def _bodies(self) -> None:
        """What the verbs get, in one piece or in chunks."""
        seed, random = self.random.choice(self.fuzz.seeds), self.random
        sent = mutated(random, seed.body) if random.random() < 0.95 else b"x" * (MAX_BODY + random.choice((0, 1)))
        path = random.choice([path for path, verb in PATHS.items() if verb == seed.verb])
        connection = await self._connect()
        try:
            if random.random() < 0.5:
                call = as_go(path, sent)
                cut = random.choice((0, random.randrange(1 + len(call)), len(call) - 1))
                connection.writer.write(call[:cut])
                await connection.writer.drain()
                await asyncio.sleep(0)
                connection.writer.write(call[cut:])
            else:
                connection.writer.write(_head("POST", path, {"Transfer-Encoding": "chunked"}))
                for at in range(0, len(sent), step := random.choice((7, 1000, 100_000)) * 10):
                    part = sent[at : at + step]
                    connection.writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                connection.writer.write(b"0\r\n\r\n")
            await self._said(connection)
        finally:
            await connection.close()

    async def _heads(self) -> None:
        """Wrong methods, paths and headers."""
        random, connection = self.random, await self._connect()
        method = random.choice(_METHODS) if random.random() < 0.4 else "POST"
        path = random.choice(_PATHS) if random.random() < 0.4 else "/filter"
        headers = {"Content-Length": str(len(_RIGHT)), **random.choice(_HEADERS)}
        try:
            connection.writer.write(_head(method, path, headers) + _RIGHT)
            if method not in ("HEAD", "CONNECT") and "Expect" not in headers:
                connection.writer.write_eof() if connection.writer.can_write_eof() else None
                async with asyncio.timeout(0.5):
                    await self._said(connection)
        except TimeoutError:
            pass  # it waits for the rest of what was announced
        finally:
            await connection.close()

    async def _half(self) -> None:
        """A call that stops somewhere, and stays."""
        connection = await self._connect()
        call = self.random.choice(
            (as_go("/filter", _RIGHT), _head("POST", "/filter", {"Content-Length": str(len(_RIGHT))}) + _RIGHT)
        )
        connection.writer.write(call[: self.random.randrange(len(call))])
        self.halves.append(connection)

    async def _noise(self) -> None:
        """Random bytes, inside of TLS or instead of it, and plain HTTP."""
        plain = self.random.random() < 0.5
        connection = await connect(self.port, None if plain else self.context)
        noise = self.random.randbytes(self.random.choice((1, 100, 20_000)))
        connection.writer.write(self.random.choice((noise, noise + b"\r\n\r\n", _head("POST", "/filter", {}))))
        try:
            if self.random.random() < 0.5 and not plain:
                async with asyncio.timeout(0.2):
                    await self._said(connection)
        except (TimeoutError, UnicodeDecodeError, KeyError):
            pass
        finally:
            await connection.close()

    async def _strangers(self) -> None:
        """Certificates of others; whoever is let in by TLS is refused by name."""
        name = self.random.choice([*self.wrong])
        connection = await connect(self.port, self.wrong[name])
        try:
            reply = await connection.call("/filter", _RIGHT)
            self.statuses[reply.status] += 1
            if (name, reply.status) != ("nobody", 403):
                raise Broken(f"{name} was answered with {reply}")
        finally:
            await connection.close()


def _head(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *(f"{key}: {value}" for key, value in headers.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def wire(folder: Path, seed: str, *, idle: int = 0) -> AsyncIterator[Wire]:
    """A server that runs, with so many connections that say nothing."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192) if most > 0 else 8192, most))
    ground, fuzz = Ground(folder), Fuzz(Random(seed))

    def caller(name: str, _: Verb) -> Caller | None:
        return fuzz.asking.caller if name == "scheduler" else None

    calls = Dispatcher(Binder(Api()), caller, lambda: fuzz.asking.serving, 10.0, Metrics())
    server = WebhookServer(Tls(ground.files), calls.routes(), calls.authorize, lambda *_: None, MAX_BODY, body_s=1.0)
    one = Wire(Random(seed), server, ground, fuzz)
    one.port = await server.start("127.0.0.1", 0)
    silent = one.silent
    try:
        for _ in range(idle):
            silent.append(await one._connect())
        yield one
    finally:
        for connection in silent:
            await connection.close()
        await one.close()
        with suppress(asyncio.CancelledError):
            await server.stop(0)
