"""HTTP over mutual TLS: authorization of calls, limits of bodies, and shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from time import perf_counter_ns, time_ns
from typing import Final, cast

from aiohttp import web

from fairlead.logs import FaultError, RateLimiter, RateLimitFilter
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender.call import Caller, IncomingCall, Reply
from fairlead.webhook.https.connection_limits import WEBHOOK, ConnectionLimits
from fairlead.webhook.https.counted_server import CountedServer
from fairlead.webhook.https.fast_path import FastPathConnection, Work
from fairlead.webhook.https.listener import NoteRefused, TlsListener
from fairlead.webhook.https.peer import Peer, chain, peer_of
from fairlead.webhook.https.tls import Tls

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
KEEP_ALIVE_S: Final = 120.0
"""kube-scheduler keeps idle connections for 90 s; a call on one that the server has just closed is lost."""
AGE_S: Final = 600.0
"""Age at which a connection's next reply is its last, so that the client's certificate is checked again."""
BODY_S: Final = 10.0
MAX_BODY: Final = 10 * 1024 * 1024
_DISTRUSTED: Final = "unknown authority"
_OTHER_CERTIFICATE: Final = "another certificate"
_REASONS: Final = {
    400: "bad request",
    403: "identity",
    404: "no such path",
    405: "method",
    408: "slow body",
    413: "large body",
    500: "fault",
}


Prompt = Callable[[IncomingCall], Reply]
Handle = Prompt | Callable[[IncomingCall], Awaitable[Reply]]
RenderPage = Callable[[str, str], bytes | None]
"""Returns the page of a path for the client of this common name; None if it may not read it. Raises LookupError."""
IdentityCheck = Callable[[str, str], str]
"""Returns why a client is not who its certificate says, from its common name and fingerprint; "" if it is."""


@dataclass(slots=True, eq=False)
class WebhookServer:
    """Server of the port that schedulers call."""

    tls: Tls
    routes: Mapping[str, Handle]
    authorize: Callable[[str, str], Caller | None]
    """Returns the caller of a common name; None if it may not call this path."""
    refused: NoteRefused
    """Called for each refused connection and call."""
    max_body: int = MAX_BODY
    last_s: float = 1.0
    """How long running calls may take at shutdown."""
    body_s: float = BODY_S
    keep_alive_s: float = KEEP_ALIVE_S
    age_s: float = AGE_S
    limits: ConnectionLimits = WEBHOOK
    draining: bool = False
    aside: str = ""
    """Why others are to be called instead, so that each reply is the last of its connection; "" if none are."""
    pages: Mapping[str, RenderPage] = field(default_factory=dict)
    """Pages for GET, by path; a path that ends with / stands for all below it."""
    identity_error: IdentityCheck | None = None
    """Needed if the authority of clients also signs for others: then a common name alone proves nothing."""
    clock: Callable[[], int] = perf_counter_ns
    time: Callable[[], int] = time_ns
    _prompt: Mapping[str, Prompt] = field(init=False)
    _server: CountedServer = field(init=False)
    _listener: TlsListener | None = None
    _faults: RateLimiter = field(default_factory=RateLimiter)
    _rate_limit: RateLimitFilter = field(default_factory=RateLimitFilter)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        _HTTP.addFilter(self._rate_limit)  # aiohttp logs a traceback for each request that is not HTTP
        self._prompt = {path: cast("Prompt", one) for path, one in self.routes.items() if not iscoroutinefunction(one)}
        listener = TlsListener(lambda: self.tls.context, self.connection, self.refused, self.limits, identified=True)
        self._server = CountedServer(self._handle, listener.gone)
        self._listener = listener
        self.tls.distrusted = self._close_untrusted
        return await listener.open(host, port)

    def connection(self) -> FastPathConnection:
        """Return the protocol of a new connection."""
        return FastPathConnection(
            self._server,
            self._identify,
            self._fast_handler,
            self.clock,
            body_s=self.body_s,
            age_ns=int(self.age_s * SECOND_NS),
            keepalive_timeout=self.keep_alive_s,
            access_log=None,
            logger=_HTTP,
            auto_decompress=False,  # no scheduler compresses, and a small body could be a bomb
            lingering_time=1.0,
            read_bufsize=2**19,
        )

    async def stop(self, drain: float) -> None:
        """Answer for `drain` more seconds, with `Connection: close`; then close all connections."""
        self.draining = True
        await asyncio.sleep(drain)
        if self._listener is not None:
            await self._listener.close()
            await self._server.shutdown(timeout=self.last_s)
            _HTTP.removeFilter(self._rate_limit)

    def end_expired(self) -> None:
        """Close idle connections whose certificate has expired; call it from time to time.

        A connection with a running call gets a 403 reply instead.
        """
        now = self.clock()
        for connection in self._open():
            if now >= connection.peer.valid_until:
                self._end(connection, connection.peer.invalid_reason)

    def _close_untrusted(self) -> None:
        """Close the connections whose certificates the new authorities do not trust."""
        now, trusted = self._now(), dict[tuple[bytes, ...], bool]()
        for connection in self._open():
            if connection.transport is None or connection.transport.is_closing():
                continue  # it answers nothing more, and asyncio no longer knows its certificate
            shown = chain(connection.transport)
            if shown not in trusted:
                trusted[shown] = self.tls.trusts(shown, now)
            if not trusted[shown]:
                self._end(connection, _DISTRUSTED)

    def _open(self) -> list[FastPathConnection]:
        return cast("list[FastPathConnection]", self._server.connections)

    def _end(self, connection: FastPathConnection, why: str) -> None:
        if connection.end(why):
            self.refused(why, connection.peer.address)

    def _identify(self, transport: asyncio.BaseTransport) -> Peer:
        peer = peer_of(transport, self.clock(), self.time())
        # The trusted authorities may have changed during the handshake.
        handshake_context = transport.get_extra_info("sslcontext")
        if handshake_context not in (None, self.tls.context) and not self.tls.trusts(chain(transport), self._now()):
            peer.valid_until, peer.invalid_reason = 0, _DISTRUSTED
        return peer

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.time() / SECOND_NS, UTC)

    def _fast_handler(self, peer: Peer, path: str, length: int) -> Work | None:
        """Return the function that answers a call on the fast path.

        None if the call is to be refused, if its handler is a coroutine, or while each reply ends its connection.
        """
        handle, name = self._prompt.get(path), peer.name
        if handle is None or name is None or self.draining or self.aside or length > self.max_body:
            return None
        caller = self.authorize(name, path)
        if caller is None or (self.identity_error is not None and self.identity_error(name, peer.leaf)):
            return None

        def work(body: bytes, received: int) -> Reply:
            try:
                return handle(IncomingCall(name, caller, body, received, address=peer.address))
            except Exception as error:  # noqa: BLE001  it is logged
                reply = self._fault(path, error)
                self.refused(reply.refused, peer.address)
                return reply

        return work

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("FastPathConnection", request.protocol)
        received = connection.take_received_at()
        answer = await self._answer(request, connection, received)
        if answer.refused:
            self.refused(answer.refused, connection.peer.address)
        response = _Response(body=answer.body, status=answer.status, content_type="application/json")
        response.sent = answer.sent
        if self.draining or self.aside or connection.is_due:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, connection: FastPathConnection, received: int) -> Reply:
        handle = self.routes.get(request.path)
        if handle is None:
            return self._page(request, connection, received)
        if request.method != "POST":
            return _describe(405, f"{request.method} is not allowed; use POST")
        name = self._authenticate(connection.peer, received)
        if isinstance(name, Reply):
            return name
        caller = self.authorize(name, request.path)
        if caller is None:
            return _describe(403, f"the certificate of {name!r} may not call {request.path}")
        body = await self._body(request, received)
        if isinstance(body, Reply):
            return body
        if isinstance(ended := self._authenticate(connection.peer, received), Reply):  # reading may have taken a while
            return ended
        try:
            is_abandoned = lambda: connection.transport is None or connection.transport.is_closing()  # noqa: E731
            reply = handle(IncomingCall(name, caller, body, received, is_abandoned, connection.peer.address))
            return reply if isinstance(reply, Reply) else await reply
        except Exception as error:  # noqa: BLE001  it is logged
            return self._fault(request.path, error)

    def _page(self, request: web.BaseRequest, connection: FastPathConnection, received: int) -> Reply:
        page = self.pages.get(request.path) or self.pages.get(_first_part(request.path))
        if page is None:
            return _describe(404, f"no such path: {request.path}; there are {', '.join(self.routes)}")
        if request.method != "GET":
            return _describe(405, f"{request.method} is not allowed; use GET")
        name = self._authenticate(connection.peer, received)
        if isinstance(name, Reply):
            return name
        try:
            found = page(name, request.path)
        except LookupError:
            return _describe(404, f"there is nothing at {request.path}")
        if found is None:
            return _describe(403, f"the certificate of {name!r} may not read {request.path}")
        return Reply(found)

    def _authenticate(self, peer: Peer, received: int) -> str | Reply:
        """Return the common name of the client, or the reply if its certificate proves none."""
        if received >= peer.valid_until:
            reason = peer.invalid_reason
            text = f"the certificate of {peer.name!r} is no longer valid: {reason}; reconnect with another one"
            return _describe(403, text, reason)
        if peer.name is None:
            return _describe(403, "the certificate has no common name, or several, and may not call anything")
        if self.identity_error is not None and (why := self.identity_error(peer.name, peer.leaf)):
            return _describe(403, f"the certificate of {peer.name!r} may not call anything: {why}", _OTHER_CERTIFICATE)
        return peer.name

    def _fault(self, path: str, error: Exception) -> Reply:
        if (more := self._faults.allow(path)) is not None:
            LOG.error("request.fault", exc_info=FaultError(error), extra={"path": path, **more})
        return _describe(500, "internal error; the server's log has the details")

    async def _body(self, request: web.BaseRequest, received: int) -> bytes | Reply:
        length = request.content_length
        if length is not None and length > self.max_body:
            return self._too_large(length)
        content = request.content
        parts, size = [], 0
        try:
            if content.is_eof():  # the whole body has arrived, as nearly always
                body = content.read_nowait(-1)
                return body if len(body) <= self.max_body else self._too_large(len(body))
            async with asyncio.timeout(self.body_s - (self.clock() - received) / SECOND_NS):
                while part := await content.readany():
                    parts.append(part)
                    size += len(part)
                    if size > self.max_body:
                        return self._too_large(size)
        except TimeoutError:
            return _describe(408, f"the body did not arrive within {self.body_s:g} s")
        except (web.RequestPayloadError, ConnectionError) as error:  # the latter if the caller has gone
            return _describe(400, f"the body cannot be read: {error}")
        return b"".join(parts)

    def _too_large(self, size: int) -> Reply:
        message = f"the body has {size} bytes, at most {self.max_body} are allowed"
        return _describe(413, f"{message}; set nodeCacheCapable: true, or raise --max-body")


class _Response(web.Response):
    sent: Callable[[], None] | None = None

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the body, and then call `sent`, also if the client has gone."""
        try:
            await super().write_eof(data)
        finally:
            sent, self.sent = self.sent, None
            if sent is not None:
                sent()


def _first_part(path: str) -> str:
    """Return the first part of a path: `/data/` of `/data/p/load`."""
    end = path.find("/", 1)
    return path[: end + 1]


def _describe(status: int, text: str, reason: str = "") -> Reply:
    return Reply(text.encode(), status, refused=reason or _REASONS[status])
