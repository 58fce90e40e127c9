"""HTTP over mutual TLS: who may call which verb, how large a body may be, and how the last call is answered."""

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
from fairlead.webhook.extender.call import Caller, IncomingCall, Reply
from fairlead.webhook.https.connection_limits import WEBHOOK, Limits
from fairlead.webhook.https.counted_server import CountedServer
from fairlead.webhook.https.fast_path import FastPathConnection, Work
from fairlead.webhook.https.listener import Refused, TlsListener
from fairlead.webhook.https.peer import Peer, chain, met
from fairlead.webhook.https.tls import Tls

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
KEEP_ALIVE_S: Final = 120.0
"""kube-scheduler keeps idle connections for 90 s; a call on one that has just been closed is lost."""
AGE_S: Final = 600.0
"""After that a connection's next reply is its last: what was shown when it began is to be shown anew."""
BODY_S: Final = 10.0
_NANO: Final = 1_000_000_000
MAX_BODY: Final = 10 * 1024 * 1024
_DISTRUSTED: Final = "unknown authority"
_STRANGER: Final = "another certificate"
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
Page = Callable[[str], bytes | None]
"""What somebody of this name may read; None: nothing."""
Stranger = Callable[[str, str], str]
"""Why he is not who he says he is: told the name and the fingerprint of his certificate. Empty: he is."""


@dataclass(slots=True, eq=False)
class WebhookServer:
    """The port that schedulers call."""

    tls: Tls
    routes: Mapping[str, Handle]
    authorize: Callable[[str, str], Caller | None]
    """Returns the caller of a name; None where it may not call a path."""
    refused: Refused
    """Told of each connection and each call that is turned away."""
    max_body: int = MAX_BODY
    last_s: float = 1.0
    """How long calls may still take when connections are closed."""
    body_s: float = BODY_S
    keep_alive_s: float = KEEP_ALIVE_S
    age_s: float = AGE_S
    limits: Limits = WEBHOOK
    draining: bool = False
    pages: Mapping[str, Page] = field(default_factory=dict)
    """What is read with GET."""
    stranger: Stranger | None = None
    """Where the authority of callers signs for others, too: then a name says nothing by itself."""
    clock: Callable[[], int] = perf_counter_ns
    time: Callable[[], int] = time_ns
    _prompt: Mapping[str, Prompt] = field(init=False)
    _server: CountedServer = field(init=False)
    _door: TlsListener | None = None
    _faults: RateLimiter = field(default_factory=RateLimiter)
    _rarely: RateLimitFilter = field(default_factory=RateLimitFilter)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        _HTTP.addFilter(self._rarely)  # each request that is no HTTP is an error there, with a traceback
        self._prompt = {path: cast("Prompt", one) for path, one in self.routes.items() if not iscoroutinefunction(one)}
        door = TlsListener(lambda: self.tls.context, self.connection, self.refused, self.limits, identified=True)
        self._server = CountedServer(self._handle, door.gone)
        self._door = door
        self.tls.distrusted = self._distrust
        return await door.open(host, port)

    def connection(self) -> FastPathConnection:
        """What speaks with a caller."""
        return FastPathConnection(
            self._server,
            self._meet,
            self._at_once,
            self.clock,
            body_s=self.body_s,
            age=int(self.age_s * _NANO),
            keepalive_timeout=self.keep_alive_s,
            access_log=None,
            logger=_HTTP,
            auto_decompress=False,  # no scheduler compresses; a small body may be a large one
            lingering_time=1.0,
            read_bufsize=2**19,
        )

    async def stop(self, drain: float) -> None:
        """Answer for so many seconds, asking callers to connect elsewhere; then close what is idle."""
        self.draining = True
        await asyncio.sleep(drain)
        if self._door is not None:
            await self._door.close()
            await self._server.shutdown(timeout=self.last_s)
            _HTTP.removeFilter(self._rarely)

    def end_expired(self) -> None:
        """Close what is idle and whose certificate has ended; from time to time. Who calls meanwhile is told so."""
        now = self.clock()
        for connection in self._open():
            if now >= connection.peer.ends:
                self._end(connection, connection.peer.why)

    def _distrust(self) -> None:
        """Other authorities are believed: those whom they do not know are answered no longer."""
        now, trusted = self._now(), dict[tuple[bytes, ...], bool]()
        for connection in self._open():
            if connection.transport is None or connection.transport.is_closing():
                continue  # it answers nothing more; and asyncio does not know any longer what was shown there
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

    def _meet(self, transport: asyncio.BaseTransport) -> Peer:
        peer = met(transport, self.clock(), self.time())
        # Others may be believed since it began to shake hands.
        begun_with = transport.get_extra_info("sslcontext")
        if begun_with not in (None, self.tls.context) and not self.tls.trusts(chain(transport), self._now()):
            peer.ends, peer.why = 0, _DISTRUSTED
        return peer

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.time() / _NANO, UTC)

    def _at_once(self, peer: Peer, path: str, length: int) -> Work | None:
        """Who answers when all is there; None where it is to be refused, or has to wait, or the server is to end."""
        handle, name = self._prompt.get(path), peer.name
        if handle is None or name is None or self.draining or length > self.max_body:
            return None
        caller = self.authorize(name, path)
        if caller is None or (self.stranger is not None and self.stranger(name, peer.leaf)):
            return None

        def work(body: bytes, begun: int) -> Reply:
            try:
                return handle(IncomingCall(name, caller, body, begun))
            except Exception as error:  # noqa: BLE001  it is logged
                reply = self._fault(path, error)
                self.refused(reply.refused, peer.address)
                return reply

        return work

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("FastPathConnection", request.protocol)
        begun = connection.take_received_at()
        answer = await self._answer(request, connection, begun)
        if answer.refused:
            self.refused(answer.refused, connection.peer.address)
        response = web.Response(body=answer.body, status=answer.status, content_type="application/json")
        if self.draining or connection.is_due:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, connection: FastPathConnection, begun: int) -> Reply:
        handle = self.routes.get(request.path)
        if handle is None:
            return self._page(request, connection, begun)
        if request.method != "POST":
            return _describe(405, f"{request.method} is not how schedulers call; use POST")
        name = self._authenticate(connection.peer, begun)
        if isinstance(name, Reply):
            return name
        caller = self.authorize(name, request.path)
        if caller is None:
            return _describe(403, f"the certificate of {name!r} does not allow to call {request.path}")
        body = await self._body(request, begun)
        if isinstance(body, Reply):
            return body
        if isinstance(ended := self._authenticate(connection.peer, begun), Reply):  # that took a while
            return ended
        try:
            reply = handle(IncomingCall(name, caller, body, begun))
            return reply if isinstance(reply, Reply) else await reply
        except Exception as error:  # noqa: BLE001  it is logged
            return self._fault(request.path, error)

    def _page(self, request: web.BaseRequest, connection: FastPathConnection, begun: int) -> Reply:
        page = self.pages.get(request.path)
        if page is None:
            return _describe(404, f"there is no {request.path} here, only {', '.join(self.routes)}")
        if request.method != "GET":
            return _describe(405, f"{request.method} is not how this is read; use GET")
        name = self._authenticate(connection.peer, begun)
        if isinstance(name, Reply):
            return name
        found = page(name)
        if found is None:
            return _describe(403, f"the certificate of {name!r} does not allow to read {request.path}")
        return Reply(found)

    def _authenticate(self, peer: Peer, begun: int) -> str | Reply:
        """Return the name of who calls; or the reply where its certificate proves none."""
        if begun >= peer.ends:
            said = f"the certificate of {peer.name!r} is believed no longer: {peer.why}; connect anew with another one"
            return _describe(403, said, peer.why)
        if peer.name is None:
            return _describe(403, "the certificate has no common name, or several: it does not allow to call anything")
        if self.stranger is not None and (why := self.stranger(peer.name, peer.leaf)):
            return _describe(403, f"the certificate of {peer.name!r} does not allow to call anything: {why}", _STRANGER)
        return peer.name

    def _fault(self, path: str, error: Exception) -> Reply:
        if (more := self._faults.about(path)) is not None:
            LOG.error("request.fault", exc_info=FaultError(error), extra={"path": path, **more})
        return _describe(500, "this is a fault of the server; its log says more")

    async def _body(self, request: web.BaseRequest, begun: int) -> bytes | Reply:
        length = request.content_length
        if length is not None and length > self.max_body:
            return self._too_large(length)
        content = request.content
        if content.is_eof():  # all of it is there, as nearly always
            body = content.read_nowait(-1)
            return body if len(body) <= self.max_body else self._too_large(len(body))
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.body_s - (self.clock() - begun) / _NANO):
                while part := await content.readany():
                    parts.append(part)
                    size += len(part)
                    if size > self.max_body:
                        return self._too_large(size)
        except TimeoutError:
            return _describe(408, f"the body did not come within {self.body_s:g} s")
        except web.RequestPayloadError as error:
            return _describe(400, f"the body cannot be read: {error}")
        return b"".join(parts)

    def _too_large(self, size: int) -> Reply:
        fault = f"the body has {size} bytes, {self.max_body} are allowed"
        return _describe(413, f"{fault}; set nodeCacheCapable: true, or raise --max-body")


def _describe(status: int, text: str, reason: str = "") -> Reply:
    return Reply(text.encode(), status, refused=reason or _REASONS[status])
