"""Server of /decisions on the loopback address: who may forward a port of the pod may read them (decision 48).

It has no TLS and asks for no token: RBAC on `pods/portforward` is the authorization.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from fairlead.webhook.https.connection_limits import IDLE_S, PROBES, ConnectionLimits
from fairlead.webhook.https.http_port import HttpPort
from fairlead.webhook.https.listener import NoteRefused

_HTTP: Final = logging.getLogger(f"{__name__}.http")
PATH: Final = "/decisions"
LOOPBACK: Final = "127.0.0.1"
_HOSTS: Final = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")
READERS: Final = 2
"""Requests that are answered at the same time."""
WRITE_S: Final = 10.0
"""Time that a reader may take for a part."""


@dataclass(slots=True, eq=False)
class DecisionsServer:
    """HTTP server of the decisions that this replica keeps."""

    parts: Callable[[], Iterator[bytes]]
    """Returns what is kept, in parts."""
    refused: NoteRefused = lambda _reason, _peer: None
    limits: ConnectionLimits = PROBES
    _readers: int = 0
    _port: HttpPort | None = None

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        self._port = HttpPort(
            name="decisions",
            handle=self._handle,
            refused=self.refused,
            limits=self.limits,
            logger=_HTTP,
            idle_s=IDLE_S,
            ends_with_caller=True,  # it needs no more parts
        )
        return await self._port.start(host, port)

    async def stop(self) -> None:
        """Close all connections."""
        if self._port is not None:
            await self._port.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if _HOSTS.fullmatch(request.headers.get("Host", "")) is None:
            return web.Response(status=421, text="misdirected: decisions are read at 127.0.0.1 only\n")
        if request.path != PATH:
            return web.Response(status=404, text=f"not found: only {PATH} exists\n")
        if request.method != "GET":
            return web.Response(status=405, text="method not allowed: use GET\n", headers={"Allow": "GET"})
        if self._readers >= READERS:
            text = f"{READERS} others read at the moment: try again\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "1"})
        with self._reading():
            return await self._write(request)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    async def _write(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/jsonl", "Cache-Control": "no-store"})
        await response.prepare(request)
        try:
            for part in self.parts():
                async with asyncio.timeout(WRITE_S):
                    await response.write(part)
                await asyncio.sleep(0)  # calls of schedulers come first
            await response.write_eof()
        except TimeoutError:
            response.force_close()
            if request.transport is not None:
                request.transport.abort()
        return response
