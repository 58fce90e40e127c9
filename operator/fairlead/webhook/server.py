"""HTTP over mutual TLS: who may call which verb, how large a body may be, and how the last call is answered."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Final

from aiohttp import web

from fairlead.webhook.door import Door, Refused
from fairlead.webhook.tls import Tls, common_name

LOG: Final = logging.getLogger(__name__)
KEEP_ALIVE_S: Final = 120.0
"""kube-scheduler keeps idle connections for 90 s; a call on one that has just been closed is lost."""
BODY_S: Final = 10.0
MAX_BODY: Final = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    body: bytes
    status: int = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose caller is known."""

    caller: str
    body: bytes
    begun: int
    """When it came, in nanoseconds of the clock that deadlines are of."""


Handle = Callable[[Call], Answer | Awaitable[Answer]]
Refusal = Callable[[str], None]


@dataclass(slots=True, eq=False)
class WebhookServer:
    """The port that schedulers call."""

    tls: Tls
    routes: Mapping[str, Handle]
    allowed: Callable[[str, str], bool]
    """Whether a caller may use a path."""
    refused: Refused
    max_body: int = MAX_BODY
    draining: bool = False
    clock: Callable[[], int] = perf_counter_ns
    _server: web.Server = field(init=False)
    _listening: asyncio.Server | None = None

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        self._server = web.Server(
            self._handle,
            keepalive_timeout=KEEP_ALIVE_S,
            access_log=None,
            lingering_time=1.0,
            read_bufsize=2**19,
        )
        door = Door(lambda: self.tls.context, self._server, self.refused)
        self._listening = await door.open(host, port)
        chosen: int = self._listening.sockets[0].getsockname()[1]
        return chosen

    async def stop(self, drain: float) -> None:
        """Answer for so many seconds, asking callers to connect elsewhere; then close what is idle."""
        self.draining = True
        await asyncio.sleep(drain)
        if self._listening is not None:
            self._listening.close()
        await self._server.shutdown(timeout=1.0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        begun = self.clock()
        answer = await self._answer(request, begun)
        response = web.Response(body=answer.body, status=answer.status, content_type="application/json")
        if self.draining:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, begun: int) -> Answer:
        handle = self.routes.get(request.path)
        if handle is None:
            return _said(404, f"there is no {request.path} here, only {', '.join(self.routes)}")
        if request.method != "POST":
            return _said(405, f"{request.method} is not how schedulers call; use POST")
        transport = request.transport
        caller = common_name(None if transport is None else transport.get_extra_info("peercert"))
        if caller is None or not self.allowed(caller, request.path):
            self.refused("identity", request.remote or "?")
            return _said(403, f"the certificate of {caller!r} does not allow to call {request.path}")
        body = await self._body(request)
        if isinstance(body, Answer):
            return body
        try:
            answer = handle(Call(caller, body, begun))
            return answer if isinstance(answer, Answer) else await answer
        except Exception:
            LOG.exception("a request could not be answered", extra={"path": request.path})
            return _said(500, "this is a fault of the server; its log says more")

    async def _body(self, request: web.BaseRequest) -> bytes | Answer:
        length = request.content_length
        if length is not None and length > self.max_body:
            return self._too_large(length)
        content = request.content
        if content.is_eof():  # all of it is there, as nearly always
            return content.read_nowait(-1)
        parts, size = [], 0
        try:
            async with asyncio.timeout(BODY_S):
                while part := await content.readany():
                    parts.append(part)
                    size += len(part)
                    if size > self.max_body:
                        return self._too_large(size)
        except TimeoutError:
            return _said(408, f"the body did not come within {BODY_S:.0f} s")
        except web.RequestPayloadError as error:
            return _said(400, f"the body cannot be read: {error}")
        return b"".join(parts)

    def _too_large(self, size: int) -> Answer:
        fault = f"the body has {size} bytes, {self.max_body} are allowed"
        return _said(413, f"{fault}; set nodeCacheCapable: true, or raise --max-body")


def _said(status: int, text: str) -> Answer:
    return Answer(text.encode(), status)
