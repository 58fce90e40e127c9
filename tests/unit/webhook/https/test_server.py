"""Who may call, what is answered, and that nothing closes a connection that a scheduler keeps, but its end."""

import asyncio
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.webhook.extender.call import IncomingCall, Reply
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from support.webhook.tls import ANYBODY, HOSTS, NOW, YEAR, Connection, Ground, connect, signed_by_another

Story = Callable[["Running"], Awaitable[None]]


class Running:
    """A server that echoes, and what it refused."""

    def __init__(self, folder: Path) -> None:
        self.ground = Ground(folder)
        self.tls = Tls(self.ground.files)
        self.refused: Counter[str] = Counter()
        self.noticed = asyncio.Event()
        self.gate = asyncio.Event()
        self.calls: list[IncomingCall] = []
        self.server = WebhookServer(
            self.tls,
            {"/filter": self.echo, "/bind": self.slow, "/fault": self.fault},
            lambda name, path: (
                ANYBODY if (name, path) != ("scheduler", "/forbidden") and name in ("scheduler", "other") else None
            ),
            self.refuse,
            max_body=300_000,
        )
        self.port = 0
        self.opened: list[Connection] = []

    def refuse(self, reason: str, _peer: str) -> None:
        self.refused[reason] += 1
        self.noticed.set()

    def echo(self, call: IncomingCall) -> Reply:
        self.calls.append(call)
        return Reply(call.body)

    async def slow(self, call: IncomingCall) -> Reply:
        await self.gate.wait()
        return Reply(call.body)

    def fault(self, _: IncomingCall) -> Reply:
        raise RuntimeError("on purpose")

    async def refusal(self) -> str:
        """Why the next one is refused."""
        await asyncio.wait_for(self.noticed.wait(), 60)
        self.noticed.clear()
        return "".join(self.refused)

    async def connect(self, name: str | None = "scheduler") -> Connection:
        return await self.dial(self.ground.client(name))

    async def dial(self, context: ssl.SSLContext | None) -> Connection:
        self.opened.append(await connect(self.port, context))
        return self.opened[-1]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    one = Running(folder)
    one.port = await one.server.start("127.0.0.1", 0)
    try:
        yield one
    finally:
        for connection in one.opened:
            await connection.close()
        await one.server.stop(0)


def told(folder: Path, story: Story) -> None:
    async def whole() -> None:
        async with running(folder) as one:
            await story(one)

    asyncio.run(whole())


def test_a_call_is_answered_with_its_length_over_a_connection_that_is_kept(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        connection = await one.connect()
        for body in (b"{}", b"x" * 200_000, b""):
            reply = await connection.call("/filter", body)
            assert (reply.status, reply.body, reply.headers["content-length"]) == (200, body, str(len(body)))
            assert reply.headers["content-type"].startswith("application/json")
            assert reply.headers.get("connection") != "close"
        assert [call.name for call in one.calls] == ["scheduler"] * 3
        chunked = await connection.call(
            "/filter", b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", **{"Transfer-Encoding": "chunked", "Content-Length": ""}
        )
        assert (chunked.status, chunked.body) == (200, b"abcde")

    told(tmp_path, story)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/nothing", b"{}", 404, "no such path: /nothing"),
        ("GET", "/filter", b"", 405, "use POST"),
        ("POST", "/filter", b"x" * 300_001, 413, "300000 are allowed; set nodeCacheCapable"),
        ("POST", "/fault", b"{}", 500, "the server's log has the details"),
    ],
)
def test_what_cannot_be_answered_is_said_and_the_next_call_is_served(
    tmp_path: Path, method: str, path: str, body: bytes, status: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(one: Running) -> None:
        connection = await one.connect()
        reply = await connection.call(path, body, method)
        assert (reply.status, text in reply.body.decode()) == (status, True)
        connection = await one.connect()
        assert (await connection.call("/filter", b"1")).body == b"1"

    told(tmp_path, story)
    assert ("on purpose" in caplog.text) == (status == 500)


def test_a_chunked_body_that_is_too_large_is_refused_before_it_ends(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        connection = await one.connect()
        part = b"%x\r\n" % 200_000 + b"x" * 200_000 + b"\r\n"
        reply = await connection.call("/filter", part * 2, **{"Transfer-Encoding": "chunked", "Content-Length": ""})
        assert reply.status == 413

    told(tmp_path, story)


def test_a_right_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        reply = await (await one.connect("stranger")).call("/filter")
        assert (reply.status, "'stranger' may not call" in reply.body.decode()) == (403, True)
        assert one.refused == Counter(identity=1)
        assert (await (await one.connect("other")).call("/filter")).status == 200

    told(tmp_path, story)


@pytest.mark.parametrize(
    "reason", ["no certificate", "unknown authority", "expired", "not yet valid", "plain HTTP", "old TLS"]
)
def test_who_cannot_shake_hands_is_counted_and_the_next_right_call_is_served(tmp_path: Path, reason: str) -> None:
    async def story(one: Running) -> None:
        ground, stranger = one.ground, create_authority("ca", NOW, YEAR)
        if reason == "plain HTTP":
            connection = await one.dial(None)
            connection.writer.write(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            assert await connection.is_closed()
        else:
            context = {
                "no certificate": lambda: ground.client(None),
                "unknown authority": lambda: ground.client(by=stranger),
                "expired": lambda: ground.client(when=NOW - timedelta(days=3)),
                "not yet valid": lambda: ground.client(when=NOW + timedelta(days=3)),
                "old TLS": _old(ground),
            }[reason]()
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await (await one.dial(context)).call("/filter")
        assert await one.refusal() == reason
        assert (await (await one.connect()).call("/filter")).status == 200

    told(tmp_path, story)


def _old(ground: Ground) -> Callable[[], ssl.SSLContext]:
    def context() -> ssl.SSLContext:
        made = ground.client()
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            made.minimum_version, made.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
        made.set_ciphers("ALL:@SECLEVEL=0")
        return made

    return context


_CIPHER = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
context.load_cert_chain(sys.argv[3], sys.argv[4])
with context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost") as one:
    print(one.cipher()[0])
"""


@pytest.mark.parametrize("order", [(128, 256), (256, 128)])
def test_the_caller_chooses_the_cipher(tmp_path: Path, order: tuple[int, int]) -> None:
    names = [{128: "TLS_AES_128_GCM_SHA256", 256: "TLS_AES_256_GCM_SHA384"}[bits] for bits in order]
    config = tmp_path / "openssl.cnf"  # those of 1.3 cannot be put in order from Python
    config.write_text(f"openssl_conf=a\n[a]\nssl_conf=b\n[b]\nsystem_default=c\n[c]\nCiphersuites={':'.join(names)}\n")

    async def story(one: Running) -> None:
        one.ground.client()
        files = (tmp_path / name for name in ("ca.crt", "client-scheduler.crt", "client-scheduler.key"))
        arguments = ("-c", _CIPHER, str(one.port), *map(str, files))
        calling = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, env={"OPENSSL_CONF": str(config)}
        )
        assert (await calling.communicate())[0].decode().strip() == names[0]

    told(tmp_path, story)


def test_certificates_change_without_closing_a_connection_of_whom_they_know(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        kept = await one.connect()
        assert (await kept.call("/filter", b"1")).status == 200
        assert not one.tls.reload()
        before, expires = one.ground.ca, one.tls.expires
        after = create_authority("ca-2", NOW, YEAR / 2)
        one.ground.write("ca", after)
        one.ground.files.client_ca.write_bytes(before.certificate + after.certificate)
        one.ground.write("server", issue_leaf(after, "fairlead", "server", NOW, YEAR, HOSTS))
        assert one.tls.reload()
        assert one.tls.expires["server"] < expires["server"]
        assert (await kept.call("/filter", b"2")).status == 200
        new = Ground(tmp_path, after)
        assert (await (await one.dial(new.client())).call("/filter", b"3")).status == 200
        one.ground.files.client_ca.write_bytes(after.certificate)
        assert one.tls.reload()
        assert (await (await one.dial(new.client())).call("/filter", b"4")).status == 200
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await (await one.dial(new.client(by=before))).call("/filter")

    told(tmp_path, story)


def test_an_authority_is_enough_without_the_one_that_has_signed_it(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        one.ground.files.client_ca.write_bytes(signed_by_another(one.ground.ca.certificate))
        assert one.tls.reload()
        assert (await (await one.connect()).call("/filter", b"1")).status == 200
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await (await one.dial(one.ground.client(by=create_authority("ca", NOW, YEAR)))).call("/filter")

    told(tmp_path, story)


def test_half_a_call_is_no_fault_and_holds_nobody_up(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        halves = [await one.connect() for _ in range(20)]
        for at, half in enumerate(halves):
            half.writer.write(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}"[: 5 + at * 2])
            await half.writer.drain()
        assert (await (await one.connect()).call("/filter")).status == 200
        for half in halves:
            await half.close()
        assert (await (await one.connect()).call("/filter")).status == 200
        garbled = await one.connect()
        garbled.writer.write(b"\x00\x01\x02 not http at all\r\n\r\n")
        assert (await garbled.reply()).status == 400

    told(tmp_path, story)


def test_the_last_calls_are_answered_and_ask_to_connect_elsewhere(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        kept, idle, busy = await one.connect(), await one.connect(), await one.connect()
        await kept.call("/filter")
        await idle.call("/filter")
        answered = asyncio.ensure_future(busy.call("/bind", b"b"))
        stopping = asyncio.ensure_future(one.server.stop(0.5))
        while not one.server.draining:
            await asyncio.sleep(0)
        reply = await kept.call("/filter", b"late")
        assert (reply.body, reply.headers["connection"]) == (b"late", "close")
        late = await one.connect()
        assert (await late.call("/filter", b"new")).headers["connection"] == "close"
        one.gate.set()
        assert (await answered).body == b"b"
        await stopping
        assert await idle.is_closed()

    told(tmp_path, story)


def test_while_others_are_to_be_called_each_reply_ends_its_connection(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        kept, idle = await one.connect(), await one.connect()
        await kept.call("/filter")
        await idle.call("/filter")
        one.server.aside = "another replica has the values"
        for connection in (kept, await one.connect()):
            reply = await connection.call("/filter", b"{}")
            assert (reply.status, reply.body, reply.headers["connection"]) == (200, b"{}", "close")
            assert await connection.is_closed()
        one.server.aside = ""
        for _ in range(2):
            assert "connection" not in (await idle.call("/filter")).headers, "one that was idle meanwhile is kept"

    told(tmp_path, story)


def test_many_idle_connections_are_kept(tmp_path: Path) -> None:
    async def story(one: Running) -> None:
        context = one.ground.client()
        idle = [await one.dial(context) for _ in range(100)]
        assert (await (await one.connect()).call("/filter")).status == 200
        assert (await idle[0].call("/filter")).status == 200

    told(tmp_path, story)
