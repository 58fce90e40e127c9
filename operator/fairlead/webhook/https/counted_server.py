"""A server of aiohttp's that reports closed connections and answers one request of a connection at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class CountedServer(web.Server):
    """HTTP server that calls `gone` for each connection that is closed.

    Of requests that a connection sends without waiting for answers, one is answered before others have their turn:
    aiohttp itself would answer thousands of them at one stretch from Python 3.12 on.
    """

    def __init__(
        self,
        handle: Handle,
        gone: Callable[[RequestHandler], None],
        **options: Any,
    ) -> None:
        super().__init__(_in_turn(handle), **options)
        self._gone = gone

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Report a closed connection, after aiohttp's own work."""
        super().connection_lost(handler, exc)
        self._gone(handler)


def _in_turn(handle: Handle) -> Handle:
    """Return the handler, run after all that is ready now."""

    async def later(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0)
        return await handle(request)

    return later
