"""aiohttp server that reports closed connections and answers one request of a connection at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class CountedServer(web.Server):
    """HTTP server that calls `gone` for each closed connection.

    If a client sends many requests without waiting for replies, other connections have their turn after each of them:
    from Python 3.12 on aiohttp would answer thousands in one go.
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
    """Return the handler, run after everything that is ready now."""

    async def later(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0)
        return await handle(request)

    return later
