"""Port-forward: a socket to a port of a pod, through the API server."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

import aiohttp
from yarl import URL

from fairlead.kube.access.login import Login
from fairlead.kube.errors import ERROR_BYTES_MAX, UnreachableError, refusal
from fairlead.kube.resources import PODS

_PROTOCOL: Final = "v4.channel.k8s.io"
"""Each message begins with the number of its channel: data of the port, then its errors."""
_DATA: Final = 0
_PORT_BYTES: Final = 2
"""Length of the first message of each channel, which repeats the port."""
_CHUNK: Final = 1 << 16


class _Connections(aiohttp.TCPConnector):
    """Connections that end with their session, and do not wait for the other side to end TLS."""

    def __init__(self) -> None:
        super().__init__()
        self._transports = WeakSet[asyncio.Transport]()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """Return a connection, and remember it: aiohttp forgets one that it closes."""
        made = await super().connect(req, traces, timeout)
        if made.transport is not None:
            self._transports.add(made.transport)
        return made

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, also those that wait for the other side."""
        await super().close(abort_ssl=abort_ssl)
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0)  # the loop closes them in its next turn, and a command's loop may have no other


@asynccontextmanager
async def port_forward(
    login: Login, namespace: str, pod: str, port: int, *, within_s: float
) -> AsyncIterator[socket.socket]:
    """Provide a blocking socket whose other end is a port of a pod. Raises RequestError; the socket ends on errors."""
    at = PODS.named(namespace, pod, "portforward")
    connection = await login.connection()
    authorization = connection.authorization
    configuration = connection.configuration
    tls = connection.api_client().rest_client.ssl_context
    timeout = aiohttp.ClientTimeout(sock_connect=within_s)
    async with aiohttp.ClientSession(trust_env=False, timeout=timeout, connector=_Connections()) as session:
        try:
            async with asyncio.timeout(within_s):
                channel = await session.ws_connect(
                    URL(f"{login.server}{at.path}?ports={port}", encoded=True),
                    protocols=(_PROTOCOL,),
                    headers={"Authorization": authorization} if authorization else None,
                    ssl=tls,
                    server_hostname=configuration.tls_server_name or None,
                    proxy=configuration.proxy or None,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise refusal("get", at, error.status, str(error.message).encode()[:ERROR_BYTES_MAX]) from error
        except (aiohttp.ClientError, OSError) as error:  # also TimeoutError
            message = f"{login.server} forwards no port: {str(error) or type(error).__name__}"
            raise UnreachableError("get", at, message) from error
        async with channel:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)  # noqa: FBT003
            with ours, theirs:
                theirs.settimeout(within_s)
                pumps = [asyncio.create_task(pump(channel, ours)) for pump in (_to_pod, _from_pod)]
                try:
                    yield theirs
                finally:
                    for task in pumps:
                        task.cancel()
                    await asyncio.gather(*pumps, return_exceptions=True)


async def _to_pod(channel: aiohttp.ClientWebSocketResponse, ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while chunk := await loop.sock_recv(ours, _CHUNK):
        await channel.send_bytes(bytes([_DATA]) + chunk)


async def _from_pod(channel: aiohttp.ClientWebSocketResponse, ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    skipped = set[int]()
    async for message in channel:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        number, data = message.data[0], message.data[1:]
        if number not in skipped and len(data) == _PORT_BYTES:
            skipped.add(number)
        elif number == _DATA:
            await loop.sock_sendall(ours, data)
        else:
            break  # an error of the port: it is closed
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
