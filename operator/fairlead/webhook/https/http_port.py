"""Port beside that of the schedulers: HTTP, with limits of connections and of what clients can have logged."""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.logs import RateLimitFilter
from fairlead.webhook.https.connection_limits import IDLE_S, ConnectionLimits
from fairlead.webhook.https.counted_server import CountedServer, Handle
from fairlead.webhook.https.listener import NoteRefused, TlsListener


@dataclass(slots=True, eq=False, kw_only=True)
class HttpPort:
    """Listener of a port, and its HTTP server."""

    name: str
    """Name of the port, with which the reasons of refused connections begin."""
    handle: Handle
    refused: NoteRefused
    limits: ConnectionLimits
    logger: logging.Logger
    """Logger of the HTTP server, whose errors clients can provoke."""
    idle_s: float = IDLE_S
    context: Callable[[], ssl.SSLContext] | None = None
    """Returns the TLS context of a new connection; None: without TLS."""
    ends_with_caller: bool = False
    """True: a request whose caller has gone is not answered to the end."""
    server: CountedServer = field(init=False)
    listener: TlsListener = field(init=False)
    _rate_limit: RateLimitFilter = field(default_factory=RateLimitFilter)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        self.logger.addFilter(self._rate_limit)
        self.listener = TlsListener(
            self.context,
            lambda: self.server(),
            lambda why, peer: self.refused(f"{self.name}: {why}", peer),
            self.limits,
        )
        self.server = CountedServer(
            self.handle,
            self.listener.gone,
            handler_cancellation=self.ends_with_caller,
            keepalive_timeout=self.idle_s,
            access_log=None,
            logger=self.logger,
            auto_decompress=False,
            lingering_time=1.0,
        )
        return await self.listener.open(host, port)

    async def stop(self) -> None:
        """Close all connections."""
        await self.listener.close()
        await self.server.shutdown(timeout=0.5)
        self.logger.removeFilter(self._rate_limit)
