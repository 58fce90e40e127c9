"""A port for the API server, which shows no certificate: it is told what is wrong with a policy, and nothing else.

What takes long is done in pieces, between which schedulers are answered. Few are looked at at once, the others wait;
who waits too long is told nothing, and the API server goes on without us.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from aiohttp import web

from fairlead.cel.pausing import Share, Steps
from fairlead.logs import Rarely
from fairlead.webhook.admission import NoReviewError
from fairlead.webhook.door import Door, Refused
from fairlead.webhook.tls import Tls

LOG: Final = logging.getLogger(__name__)
_HTTP: Final = logging.getLogger(f"{__name__}.http")
PATH: Final = "/validate"
MAX_BODY: Final = 8 << 20
"""A policy as it was, and as it is to be: etcd takes 1.5 MiB of each, and JSON in JSON may be longer."""
WITHIN_S: Final = 9.0
"""A policy that is refused because it takes too much time has had two seconds of a processor, and a third of ours."""
AT_ONCE: Final = 2
WAITING: Final = 32


@dataclass(slots=True, eq=False)
class AdmissionServer:
    """Answers reviews."""

    tls: Tls
    review: Callable[[bytes], Steps[bytes]]
    """Raises NoReviewError."""
    refused: Refused
    within_s: float = WITHIN_S
    share: Share = field(default_factory=lambda: Share(perf_counter))
    _server: web.Server = field(init=False)
    _door: Door = field(init=False)
    _listening: asyncio.Server | None = None
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _asked: int = 0
    _rarely: Rarely = field(default_factory=Rarely)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        _HTTP.addFilter(self._rarely)
        self._server = web.Server(self._handle, access_log=None, logger=_HTTP, auto_decompress=False)
        refused = self.refused
        self._door = Door(
            lambda: self.tls.anyone, self._server, lambda reason, peer: refused(f"admission: {reason}", peer)
        )
        self._listening = await self._door.open(host, port)
        chosen: int = self._listening.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        """Close everything."""
        if self._listening is not None:
            self._listening.close()
            await self._door.close()
            await self._server.shutdown(timeout=0.5)
            _HTTP.removeFilter(self._rarely)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != PATH or request.method != "POST":
            return self._turned_away(request, 404, "no such path", f"only POST {PATH} is answered here")
        if self._asked >= WAITING:
            return self._turned_away(request, 503, "too many", "too many ask at once")
        self._asked += 1
        try:
            async with asyncio.timeout(self.within_s):
                body = await _body(request)
                if body is None:
                    return self._turned_away(request, 413, "large body", f"more than {MAX_BODY} bytes")
                async with self._turns:
                    return web.Response(body=await self._run(body), content_type="application/json")
        except TimeoutError:
            return self._turned_away(request, 503, "slow", f"not answered within {self.within_s:g} s")
        except (NoReviewError, web.RequestPayloadError) as error:
            return self._turned_away(request, 400, "bad request", str(error))
        except Exception:
            LOG.exception("a policy could not be looked at")
            return web.Response(status=500, text="this is a fault of the server; its log says more")
        finally:
            self._asked -= 1

    async def _run(self, body: bytes) -> bytes:
        """Each stretch is paid for with time for the schedulers."""
        steps = self.review(body)
        while True:
            began = self.share.clock()
            try:
                next(steps)
            except StopIteration as done:
                self.share.pause(began)
                answer: bytes = done.value
                return answer
            await asyncio.sleep(self.share.pause(began))

    def _turned_away(self, request: web.BaseRequest, status: int, reason: str, why: str) -> web.Response:
        """`reason` is one of a few words: a label of a metric."""
        self.refused(f"admission: {reason}", request.remote or "?")
        response = web.Response(status=status, text=why)
        response.force_close()
        return response


async def _body(request: web.BaseRequest) -> bytes | None:
    """None: it is too large."""
    if (request.content_length or 0) > MAX_BODY:
        return None
    parts, size = list[bytes](), 0
    while part := await request.content.readany():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY:
            return None
    return b"".join(parts)
