"""A port of their own for probes and metrics: plain HTTP, nothing secret."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fairlead.logs import Rarely
from fairlead.webhook.door import Door, Guests, Refused
from fairlead.webhook.limits import IDLE_S, PROBES, Limits

_HTTP: Final = logging.getLogger(f"{__name__}.http")
FRESH_S: Final = 1.0
"""How old metrics may be: writing them takes time from the schedulers."""
READY_S: Final = 0.2
"""The same of whether it is ready: with many policies there is much to say."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to be so, and what there is to say about it."""

    name: str
    ok: bool
    text: str = ""

    def __str__(self) -> str:
        return f"[{'+' if self.ok else '-'}] {self.name}{': ' if self.text else ''}{self.text}"


@dataclass(slots=True, eq=False)
class Probes:
    """Answers to whoever watches this process."""

    checks: Callable[[], Iterable[Check]]
    metrics: Callable[[], bytes]
    refused: Refused = lambda _reason, _peer: None
    limits: Limits = PROBES
    idle_s: float = IDLE_S
    clock: Callable[[], float] = monotonic
    _page: tuple[float, bytes] | None = None
    _ready: tuple[float, bool, bytes] | None = None
    _server: Guests = field(init=False)
    _door: Door = field(init=False)
    _rarely: Rarely = field(default_factory=Rarely)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        _HTTP.addFilter(self._rarely)
        refused = self.refused
        self._door = Door(None, lambda: self._server(), lambda why, peer: refused(f"probes: {why}", peer), self.limits)
        self._server = Guests(
            self._handle,
            self._door.gone,
            keepalive_timeout=self.idle_s,
            access_log=None,
            logger=_HTTP,
            auto_decompress=False,
            lingering_time=1.0,
        )
        return await self._door.open(host, port)

    async def stop(self) -> None:
        """Close everything."""
        await self._door.close()
        await self._server.shutdown(timeout=0.5)
        _HTTP.removeFilter(self._rarely)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        page = {"/livez": self._livez, "/readyz": self._readyz, "/metrics": self._metrics}.get(request.path)
        if page is None:
            return web.Response(status=404, text="only /livez, /readyz and /metrics are here\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="this is read with GET\n", headers={"Allow": "GET, HEAD"})
        return page()

    def _livez(self) -> web.Response:
        return web.Response(text="ok\n")

    def _readyz(self) -> web.Response:
        now = self.clock()
        if self._ready is None or now - self._ready[0] >= READY_S:
            checks = list(self.checks())
            ready = all(check.ok for check in checks)
            text = "".join(f"{check}\n" for check in checks) + ("ready\n" if ready else "not ready\n")
            self._ready = now, ready, text.encode()
        _, ready, said = self._ready
        return web.Response(body=said, content_type="text/plain", charset="utf-8", status=200 if ready else 503)

    def _metrics(self) -> web.Response:
        now = self.clock()
        if self._page is None or now - self._page[0] >= FRESH_S:
            self._page = now, self.metrics()
        return web.Response(body=self._page[1], headers={"Content-Type": CONTENT_TYPE_LATEST})
