"""The server: each request gets what comes next in the script, or what a handler makes of it."""

import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from kubernetes.aio.client import Configuration

from fairlead.kube.access.login import Connection, Login, one_line
from fairlead.kube.access.secret_files import FileSecret

Step = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request, as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(slots=True)
class Server:
    """A server on loopback, in the loop of the test. Use it as a context."""

    handler: Step | None = None
    tls: ssl.SSLContext | None = None
    script: list[Step] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    port: int = 0
    _runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.tls).start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def login(self, token: FileSecret | None = None) -> Login:
        """How it is reached."""
        return login_to(self.url, token)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        if self.script:
            return await self.script.pop(0)(request)
        assert self.handler, f"the script does not foresee {request.method} {request.path_qs}"
        return await self.handler(request)


def login_to(server: str, token: FileSecret | None = None) -> Login:
    """A login at an address, with what a file says now."""

    def load() -> Connection:
        key = {"BearerToken": f"Bearer {_token(token)}"} if token else {}
        return Connection(Configuration(host=server, api_key=key))

    return Login(server, load)


def _token(file: FileSecret) -> str:
    return one_line(file.read().decode(), file.file, file.field)
