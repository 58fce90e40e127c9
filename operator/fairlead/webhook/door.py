"""Where connections come in: each is shaken hands with before anybody else sees it, and those that fail are counted.

The certificate in use is looked at for each connection, so that a new one needs no restart and closes nothing.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

HANDSHAKE_S: Final = 10.0
Protocols = Callable[[], asyncio.Protocol]
Refused = Callable[[str, str], None]
"""Told why a connection was refused, and from where it came."""

_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "HTTP_REQUEST": "plain HTTP",
    "HTTPS_PROXY_REQUEST": "plain HTTP",
    "WRONG_VERSION_NUMBER": "no TLS",
    "UNSUPPORTED_PROTOCOL": "old TLS",
}
_FAULTS: Final = {9: "not yet valid", 10: "expired", 26: "not for clients"}


@dataclass(slots=True, eq=False)
class Door:
    """A listening socket."""

    context: Callable[[], ssl.SSLContext]
    serve: Protocols
    refused: Refused
    _pending: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self, host: str | None, port: int) -> asyncio.Server:
        """Begin to accept."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Waiting(self), host, port, backlog=1024)

    def enter(self, waiting: "_Waiting", transport: asyncio.Transport) -> None:
        """Shake hands in a task of its own."""
        task = asyncio.get_running_loop().create_task(self._enter(waiting, transport))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def close(self) -> None:
        """Give up on those who are still shaking hands."""
        pending = [*self._pending]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _enter(self, waiting: "_Waiting", transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        peer = str((transport.get_extra_info("peername") or ("?",))[0])
        try:
            secured = await loop.start_tls(
                transport, waiting, self.context(), server_side=True, ssl_handshake_timeout=HANDSHAKE_S
            )
        except (OSError, asyncio.CancelledError) as error:
            transport.abort()
            if isinstance(error, asyncio.CancelledError):
                raise
            self.refused(reason_of(error), peer)
            return
        if secured is None or secured.is_closing():
            return
        waiting.hand_over(secured, self.serve())


class _Waiting(asyncio.Protocol):
    """Holds what comes right after the handshake until somebody serves it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._entered = False
        self._received: list[bytes] = []
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._entered:
            self._entered = True
            self._door.enter(self, cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self._received.append(data)

    def eof_received(self) -> None:
        self._ended = True

    def hand_over(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        """Let another protocol go on."""
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for data in self._received:
            protocol.data_received(data)
        self._received.clear()
        if self._ended:
            protocol.eof_received()


def reason_of(error: Exception) -> str:
    """One of a few words for why a handshake failed: a label of a metric."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _FAULTS.get(error.verify_code, "unknown authority")
    if isinstance(error, ssl.SSLError):
        return _REASONS.get(error.reason or "", "other")
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection lost"
