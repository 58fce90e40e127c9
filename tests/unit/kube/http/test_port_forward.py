"""A port-forward to a server that speaks the protocol of the API server and the kubelet."""

import asyncio
import base64
import gc
import hashlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from kubernetes.aio.client import Configuration

from fairlead.kube.access.login import Connection, Login
from fairlead.kube.errors import ForbiddenError, NotFoundError, UnreachableError
from fairlead.kube.http.port_forward import port_forward
from scripted.server import login_to
from support.webhook.tls import Ground

_PORT = bytes([8443 & 255, 8443 >> 8])
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def _server(handle: Handle) -> AsyncIterator[Login]:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/ns/pods/p/portforward", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield login_to(f"http://{host}:{port}")
    finally:
        await runner.cleanup()


async def _echo(request: web.Request) -> web.StreamResponse:
    """Sends back in capitals what it gets; ends with an error of the port when it is told so."""
    assert request.query["ports"] == "8443"
    channel = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await channel.prepare(request)
    assert channel.ws_protocol == "v4.channel.k8s.io"
    for number in (0, 1):
        await channel.send_bytes(bytes([number]) + _PORT)
    async for message in channel:
        assert message.type is WSMsgType.BINARY
        assert message.data[0] == 0
        data = message.data[1:]
        if data == b"fail":
            await channel.send_bytes(b"\x01connection refused")
        else:
            await channel.send_bytes(b"\x00" + data.upper())
    return channel


def _said(forwarded: socket.socket, data: bytes) -> bytes:
    forwarded.sendall(data)
    return forwarded.recv(1 << 16)


def test_bytes_go_to_the_port_and_back() -> None:
    async def run() -> None:
        async with _server(_echo) as login, port_forward(login, "ns", "p", 8443, within_s=5) as forwarded:
            assert await asyncio.to_thread(_said, forwarded, b"hello") == b"HELLO"
            assert await asyncio.to_thread(_said, forwarded, b"\x00\x01") == b"\x00\x01"
            assert await asyncio.to_thread(_said, forwarded, b"fail") == b"", "the port is closed"

    asyncio.run(run())


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_that_of_the_api_server(status: int) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status)

    async def run() -> None:
        async with _server(refuse) as login, port_forward(login, "ns", "p", 8443, within_s=5):
            pass

    with pytest.raises(ForbiddenError if status == 403 else NotFoundError, match="get pods/portforward ns/p: "):
        asyncio.run(run())


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def run() -> None:
        async def hang(_: web.Request) -> web.StreamResponse:
            await asyncio.sleep(60)
            return web.Response()

        async with _server(hang) as login:
            with pytest.raises(UnreachableError, match="forwards no port"):
                async with port_forward(login, "ns", "p", 8443, within_s=0.2):
                    pass

    asyncio.run(run())


def test_a_connection_is_closed_when_the_command_ends(tmp_path: Path) -> None:
    """The event loop of a command ends at once, whether or not the server has ended its side of TLS."""
    ground, ended = Ground(tmp_path), threading.Event()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(ground.files.certificate, ground.files.key)

    def serve() -> None:
        with listener, listener.accept()[0] as connected, tls.wrap_socket(connected, server_side=True) as channel:
            lines = channel.recv(1 << 16).decode().split("\r\n")
            key = next(line.split(": ")[1] for line in lines if line.lower().startswith("sec-websocket-key"))
            digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()  # noqa: S324
            answer = {
                "Upgrade": "websocket",
                "Connection": "Upgrade",
                "Sec-WebSocket-Accept": base64.b64encode(digest).decode(),
                "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in answer.items())
            channel.sendall(f"HTTP/1.1 101 Switching Protocols\r\n{head}\r\n".encode())
            channel.recv(1 << 16)
            channel.sendall(b"\x88\x02\x03\xe8")  # its close frame
            ended.wait()

    async def run(login: Login) -> None:
        async with port_forward(login, "ns", "p", 8443, within_s=5):
            pass

    listener = socket.create_server(("127.0.0.1", 0))
    server = threading.Thread(target=serve)
    server.start()
    try:
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        (tmp_path / "ca.crt").write_bytes(ground.ca.certificate)
        configuration = Configuration(host=address, ssl_ca_cert=str(tmp_path / "ca.crt"))
        asyncio.run(run(Login(address, lambda: Connection(configuration))))
        gc.collect()  # a transport that was left open warns here
    finally:
        ended.set()
        server.join()
