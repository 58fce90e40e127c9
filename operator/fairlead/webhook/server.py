"""HTTP over mutual TLS: who may call which verb, how large a body may be, and how the last call is answered."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from time import perf_counter_ns
from typing import Any, Final, cast

from aiohttp import web

from fairlead.logs import Rarely, Seldom
from fairlead.webhook.direct import Direct, Work
from fairlead.webhook.door import Door, Guests, Refused
from fairlead.webhook.limits import WEBHOOK, Limits
from fairlead.webhook.tls import Tls, common_name

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
KEEP_ALIVE_S: Final = 120.0
"""kube-scheduler keeps idle connections for 90 s; a call on one that has just been closed is lost."""
BODY_S: Final = 10.0
_NANO: Final = 1_000_000_000
MAX_BODY: Final = 10 * 1024 * 1024
_REASONS: Final = {
    400: "bad request",
    403: "identity",
    404: "no such path",
    405: "method",
    408: "slow body",
    413: "large body",
    500: "fault",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    body: bytes
    status: int = 200
    turned_away: bool = False
    """Whether nobody looked at what was asked."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose caller is known."""

    caller: str
    body: bytes
    begun: int
    """When its head was there, in nanoseconds of the clock that deadlines are of."""


Prompt = Callable[[Call], Answer]
Handle = Prompt | Callable[[Call], Awaitable[Answer]]
Page = Callable[[str], bytes | None]
"""What somebody of this name may read; None: nothing."""


@dataclass(slots=True, eq=False)
class WebhookServer:
    """The port that schedulers call."""

    tls: Tls
    routes: Mapping[str, Handle]
    allowed: Callable[[str, str], bool]
    """Whether a caller may use a path."""
    refused: Refused
    """Told of each connection and each call that is turned away."""
    max_body: int = MAX_BODY
    last_s: float = 1.0
    """How long calls may still take when connections are closed."""
    body_s: float = BODY_S
    keep_alive_s: float = KEEP_ALIVE_S
    limits: Limits = WEBHOOK
    draining: bool = False
    pages: Mapping[str, Page] = field(default_factory=dict)
    """What is read with GET."""
    clock: Callable[[], int] = perf_counter_ns
    _prompt: Mapping[str, Prompt] = field(init=False)
    _server: Guests = field(init=False)
    _door: Door | None = None
    _faults: Seldom = field(default_factory=Seldom)
    _rarely: Rarely = field(default_factory=Rarely)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        _HTTP.addFilter(self._rarely)  # each request that is no HTTP is an error there, with a traceback
        self._prompt = {path: cast("Prompt", one) for path, one in self.routes.items() if not iscoroutinefunction(one)}
        door = Door(lambda: self.tls.context, self.connection, self.refused, self.limits)
        self._server = Guests(self._handle, door.gone)
        self._door = door
        return await door.open(host, port)

    def connection(self) -> Direct:
        """What speaks with a caller."""
        return Direct(
            self._server,
            self._at_once,
            self.clock,
            self.body_s,
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

    def _at_once(self, transport: asyncio.BaseTransport, path: str, length: int) -> Work | None:
        """Who answers when all is there; None where it is to be refused, or has to wait, or the server is to end."""
        handle, caller = self._prompt.get(path), common_name(transport.get_extra_info("peercert"))
        if handle is None or caller is None or self.draining:
            return None
        if length > self.max_body or not self.allowed(caller, path):
            return None

        def work(body: bytes, begun: int) -> tuple[int, bytes]:
            try:
                answer = handle(Call(caller, body, begun))
            except Exception as error:  # noqa: BLE001  it is logged
                answer = self._fault(path, error)
                self.refused(_REASONS[answer.status], str((transport.get_extra_info("peername") or ("?",))[0]))
            return answer.status, answer.body

        return work

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol: Any = request.protocol
        begun = protocol.since()
        answer = await self._answer(request, begun)
        if answer.turned_away:
            self.refused(_REASONS[answer.status], request.remote or "?")
        response = web.Response(body=answer.body, status=answer.status, content_type="application/json")
        if self.draining:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, begun: int) -> Answer:
        handle = self.routes.get(request.path)
        if handle is None:
            return self._page(request)
        if request.method != "POST":
            return _said(405, f"{request.method} is not how schedulers call; use POST")
        caller = _caller(request)
        if caller is None or not self.allowed(caller, request.path):
            return _said(403, f"the certificate of {caller!r} does not allow to call {request.path}")
        body = await self._body(request, begun)
        if isinstance(body, Answer):
            return body
        try:
            answer = handle(Call(caller, body, begun))
            return answer if isinstance(answer, Answer) else await answer
        except Exception as error:  # noqa: BLE001  it is logged
            return self._fault(request.path, error)

    def _page(self, request: web.BaseRequest) -> Answer:
        page = self.pages.get(request.path)
        if page is None:
            return _said(404, f"there is no {request.path} here, only {', '.join(self.routes)}")
        if request.method != "GET":
            return _said(405, f"{request.method} is not how this is read; use GET")
        caller = _caller(request)
        found = None if caller is None else page(caller)
        if found is None:
            return _said(403, f"the certificate of {caller!r} does not allow to read {request.path}")
        return Answer(found)

    def _fault(self, path: str, error: Exception) -> Answer:
        if (more := self._faults.about(path)) is not None:
            LOG.error("a request could not be answered", exc_info=error, extra={"path": path, **more})
        return _said(500, "this is a fault of the server; its log says more")

    async def _body(self, request: web.BaseRequest, begun: int) -> bytes | Answer:
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
            return _said(408, f"the body did not come within {self.body_s:g} s")
        except web.RequestPayloadError as error:
            return _said(400, f"the body cannot be read: {error}")
        return b"".join(parts)

    def _too_large(self, size: int) -> Answer:
        fault = f"the body has {size} bytes, {self.max_body} are allowed"
        return _said(413, f"{fault}; set nodeCacheCapable: true, or raise --max-body")


def _caller(request: web.BaseRequest) -> str | None:
    transport = request.transport
    return common_name(None if transport is None else transport.get_extra_info("peercert"))


def _said(status: int, text: str) -> Answer:
    return Answer(text.encode(), status, turned_away=True)
