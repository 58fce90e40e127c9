"""Server for the API server's admission reviews of policies. It answers nothing else.

Unless `client_ca` is set, clients need no certificate. Few bodies are read at once and fewer reviewed, in pieces
between which schedulers are answered; the other requests wait with only their heads read, and the address with the
fewest reviews is next. A request that waits too long gets a 503, and the API server continues without the review.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from time import perf_counter
from typing import Final

from aiohttp import web

from fairlead.cooperative import Pauses, Share, Steps, run_within_share
from fairlead.logs import RateLimiter
from fairlead.webhook.admission.review import NoReviewError
from fairlead.webhook.https.connection_limits import ADMISSION, IDLE_S, ConnectionLimits
from fairlead.webhook.https.http_port import HttpPort
from fairlead.webhook.https.listener import NoteRefused
from fairlead.webhook.https.peer import chain
from fairlead.webhook.https.review_turns import BusyError, ReviewTurns
from fairlead.webhook.https.tls import Tls, is_of

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
PATH: Final = "/validate"
_ALLOWED: Final = b'"allowed":true'
_NO_REVIEW: Final = frozenset({403, 404, 413})
"""Statuses of requests that were refused before any review."""
MAX_BODY: Final = 3 << 20
"""Room for the old and the new policy: etcd takes up to 1.5 MiB of each."""
WITHIN_S: Final = 9.0
"""Longest time for a review: a policy that is denied as too slow has used two seconds of processor time, at a third of
the event loop's time.
"""
BODY_S: Final = 1.0
"""How long a body may take to arrive: the API server sends it at once, and 16 KiB are read in a turn."""
READ: Final = 4
"""Requests whose bodies are held in memory."""
READ_EACH: Final = 2
"""The same for one address."""
AT_ONCE: Final = 2
"""Reviews that run, each for another address."""
WAITING: Final = 28
AGAIN_S: Final = 1
UNKNOWN: Final = "unknown authority"


@dataclass(slots=True, eq=False)
class AdmissionServer:
    """HTTPS server of admission reviews."""

    tls: Tls
    review: Callable[[bytes], Steps[bytes]]
    """Returns the answer to a review. Raises NoReviewError."""
    refused: NoteRefused
    client_ca: Callable[[], str] = str
    """Returns the authority of the API server's client certificate, as PEM; "" if it needs none."""
    within_s: float = WITHIN_S
    share: Share = field(default_factory=lambda: Share(perf_counter))
    body_s: float = BODY_S
    idle_s: float = IDLE_S
    limits: ConnectionLimits = ADMISSION
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    observe: Callable[[float, str], None] = lambda _seconds, _result: None
    """Called with the duration of each review and its result: allowed, denied or failed."""
    _port: HttpPort | None = None
    _turns: ReviewTurns = field(default_factory=lambda: ReviewTurns(READ, READ_EACH, WAITING))
    _reviews: ReviewTurns = field(default_factory=lambda: ReviewTurns(AT_ONCE, 1, READ))
    _client_context: tuple[ssl.SSLContext, str, ssl.SSLContext] | None = None
    _faults: RateLimiter = field(default_factory=RateLimiter)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        self._port = HttpPort(
            name="admission",
            handle=self._handle,
            refused=self.refused,
            limits=self.limits,
            logger=_HTTP,
            idle_s=self.idle_s,
            context=self._context,
            ends_with_caller=True,  # the API server no longer waits for the answer
        )
        return await self._port.start(host, port)

    async def stop(self) -> None:
        """Close all connections."""
        if self._port is not None:
            await self._port.stop()

    def _context(self) -> ssl.SSLContext:
        """Return the TLS context, rebuilt when a certificate or the authority changes."""
        server_only, authority = self.tls.server_only_context, self.client_ca()
        if not authority:
            return server_only
        built = self._client_context
        if built is None or built[0] is not server_only or built[1] != authority:
            built = self._client_context = server_only, authority, self.tls.context_requiring(authority)
        return built[2]

    def _is_trusted(self, transport: asyncio.BaseTransport | None) -> bool:
        """Return whether the client would be accepted now: its certificate may have expired, or the setting changed."""
        authority = self.client_ca()
        return not authority or (transport is not None and is_of(authority, chain(transport), self.now()))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = perf_counter()
        answer = await self._answer(request)
        if answer.status not in _NO_REVIEW:
            allowed = isinstance(answer, web.Response) and isinstance(answer.body, bytes) and _ALLOWED in answer.body
            result = "failed" if answer.status != 200 else "allowed" if allowed else "denied"
            self.observe(perf_counter() - began, result)
        return answer

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != PATH or request.method != "POST":
            return self._refuse(request, 404, "no such path", f"only POST {PATH} is answered")
        if not self._is_trusted(request.transport):
            return self._refuse(request, 403, UNKNOWN, "the client certificate is no longer valid; reconnect")
        if (request.content_length or 0) > MAX_BODY:
            return self._too_large(request)
        peer = request.remote or "?"
        try:
            async with asyncio.timeout(self.within_s), self._turns.of(peer):
                body = await self._body(request)
                if isinstance(body, web.StreamResponse):
                    return body
                async with self._reviews.of(peer):
                    return web.Response(body=await self._run(body), content_type="application/json")
        except BusyError:
            return self._refuse(request, 503, "too many", "too many reviews at once")
        except TimeoutError:
            return self._refuse(request, 503, "slow", f"not answered within {self.within_s:g} s")
        except (NoReviewError, web.RequestPayloadError) as error:
            return self._refuse(request, 400, "bad request", str(error))
        except Exception:
            if (more := self._faults.allow("review")) is not None:
                LOG.exception("admission.fault", extra=more)
            return web.Response(status=500, text="internal error; the server's log has the details")

    async def _run(self, body: bytes) -> bytes:
        """Return the answer to a review, sleeping after each stretch so that schedulers are answered meanwhile."""
        for pause in (pauses := Pauses(run_within_share(self.review(body), self.share))):
            await asyncio.sleep(pause)
        return pauses.result

    async def _body(self, request: web.BaseRequest) -> bytes | web.StreamResponse:
        parts, size = list[bytes](), 0
        try:
            async with asyncio.timeout(self.body_s):
                while part := await request.content.readany():
                    parts.append(part)
                    size += len(part)
                    if size > MAX_BODY:
                        return self._too_large(request)
        except TimeoutError:
            return self._refuse(request, 408, "slow body", f"the body did not arrive within {self.body_s:g} s")
        return b"".join(parts)

    def _too_large(self, request: web.BaseRequest) -> web.Response:
        return self._refuse(request, 413, "large body", f"more than {MAX_BODY} bytes")

    def _refuse(self, request: web.BaseRequest, status: int, reason: str, text: str) -> web.Response:
        """Refuse a request; `reason` is one of a few fixed texts, a metric label."""
        self.refused(f"admission: {reason}", request.remote or "?")
        response = web.Response(status=status, text=text)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            response.headers["Retry-After"] = str(AGAIN_S)
        response.force_close()
        return response
