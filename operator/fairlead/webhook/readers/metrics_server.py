"""Server of /metrics over TLS, for callers with a token that may read it. Without an answer it admits no one."""

import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from fairlead.kube.errors import ClusterError
from fairlead.logs import RateLimiter
from fairlead.webhook.https.connection_limits import IDLE_S, METRICS, ConnectionLimits
from fairlead.webhook.https.http_port import HttpPort
from fairlead.webhook.https.listener import NoteRefused
from fairlead.webhook.https.review_turns import BusyError
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.readers.delegated_access import AccessDecision

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
PATH: Final = "/metrics"
AGAIN_S: Final = 1
_REASONS: Final = {401: "unknown token", 403: "not allowed"}


@dataclass(slots=True, eq=False)
class MetricsServer:
    """HTTPS server of the metrics."""

    tls: Tls
    page: Callable[[], web.Response]
    decide: Callable[[str, str], Awaitable[AccessDecision]]
    """Returns the decision about the bearer of a token at an address. Raises ClusterError and BusyError."""
    refused: NoteRefused
    limits: ConnectionLimits = METRICS
    idle_s: float = IDLE_S
    _port: HttpPort | None = None
    _faults: RateLimiter = field(default_factory=RateLimiter)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        self._port = HttpPort(
            name="metrics",
            handle=self._handle,
            refused=self.refused,
            limits=self.limits,
            logger=_HTTP,
            idle_s=self.idle_s,
            context=self._context,
            ends_with_caller=True,  # it needs no review
        )
        return await self._port.start(host, port)

    async def stop(self) -> None:
        """Close all connections."""
        if self._port is not None:
            await self._port.stop()

    def _context(self) -> ssl.SSLContext:
        return self.tls.server_only_context

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != PATH:
            return web.Response(status=404, text=f"not found: only {PATH} exists\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="method not allowed: use GET\n", headers={"Allow": "GET, HEAD"})
        token = _token_of(request)
        if not token:
            return self._refuse(request, 401, "no token", "send a token that may get /metrics, as a bearer token")
        try:
            decision = await self.decide(token, request.remote or "?")
        except BusyError:
            return self._refuse(request, 503, "too many", "too many callers are asked about at once")
        except ClusterError as error:
            self._log(error)
            return self._refuse(request, 500, "no review", "the API server does not say whether this token may read")
        if not decision.allowed:
            return self._refuse(request, decision.status, _REASONS[decision.status], decision.text)
        return self.page()

    def _log(self, error: ClusterError) -> None:
        if (more := self._faults.allow("review")) is not None:
            LOG.warning("metrics.review_failed", extra={"error": str(error), **more})

    def _refuse(self, request: web.BaseRequest, status: int, reason: str, text: str) -> web.Response:
        """Refuse a request; `reason` is one of a few fixed texts, a metric label."""
        self.refused(f"metrics: {reason}", request.remote or "?")
        response = web.Response(status=status, text=f"{text}\n")
        if status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        elif status == 503:
            response.headers["Retry-After"] = str(AGAIN_S)
        return response


def _token_of(request: web.BaseRequest) -> str:
    """Return the bearer token; "" if there is none, or more than one."""
    given = request.headers.getall("Authorization", [])
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.isascii() and " " not in token else ""
