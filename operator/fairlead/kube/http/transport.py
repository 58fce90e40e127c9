"""Transport: one attempt of one request, and what its failure means. Retries are in `client`."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from fairlead import __version__
from fairlead.kube.access.login import Connection, Login
from fairlead.kube.access.official_client import ApiClient
from fairlead.kube.errors import ERROR_BYTES_MAX, RequestError, UnreachableError, UntrustedServerError, refusal
from fairlead.kube.resources import ObjectRef

JSON: Final = "application/json"
CONNECT_S: Final = 10.0
SILENT_S: Final = 20.0  # the API server aborts requests after 60 s, and starts its replies much earlier
_PAUSED_BYTES: Final = 64 << 10  # that much wakes the loop in a pause: the connection's buffer must not fill up
_METHODS: Final = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request."""

    verb: str
    """The verb as in RBAC."""
    where: ObjectRef
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    """Object to send; None sends nothing. The library encodes it."""
    content_type: str = JSON
    accept: str = JSON

    @property
    def idempotent(self) -> bool:
        """Return whether the request may be carried out twice."""
        return self.verb != "create"


OnResponse = Callable[[str, str], None]
"""Called with the verb of each request and its status, or `unreachable`."""


@dataclass(slots=True)
class _Pool:
    """Connections of one TLS configuration."""

    api: ApiClient
    made_for: Connection
    users: int = 0


class Transport:
    """The official client's connections to one API server. The environment is ignored: the login names the proxy."""

    def __init__(self, login: Login, on_response: OnResponse = lambda _verb, _code: None) -> None:
        self._login = login
        self._on_response = on_response
        self._pool: _Pool | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.api.close()

    def _pool_for(self, connection: Connection) -> _Pool:
        """Return the connections with the TLS configuration of this one: a token alone needs no new ones."""
        if self._pool is None or self._pool.made_for.tls != connection.tls:
            self._pool = _Pool(_api_client(connection), connection)
        return self._pool

    async def once(
        self, ask: Request, connection: Connection, *, within_s: float, bytes_max: int | None = None
    ) -> bytes:
        """Send a request, and return the body of a reply with status 2xx. Raises RequestError.

        `bytes_max` limits replies that an aggregated API server writes: the API server passes on whatever that sends.
        """
        limits = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_S, sock_read=SILENT_S)
        async with self._answer(ask, connection, limits) as answer:
            if bytes_max is None:
                return await answer.read()
            parts, size = list[bytes](), 0
            async for part in answer.content.iter_any():
                size += len(part)
                if size > bytes_max:
                    raise RequestError(ask.verb, ask.where, f"the reply is larger than {bytes_max >> 20} MiB")
                parts.append(part)
            return b"".join(parts)

    @asynccontextmanager
    async def stream(
        self, ask: Request, connection: Connection, *, pause_s: float = 0.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request, and provide the chunks of its reply, without a timeout for silence. Raises RequestError.

        While small chunks follow each other within `pause_s`, as much time is let pass between them, so that more comes
        in each: on a busy stream, the turns of the loop cost more than the bytes.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=None)
        async with self._answer(ask, connection, limits) as answer:
            if not pause_s:
                yield answer.content.iter_any()
                return
            async with aclosing(_with_pauses(answer, pause_s)) as chunks:
                yield chunks

    @asynccontextmanager
    async def _answer(
        self, ask: Request, connection: Connection, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        server = self._login.server
        headers = {"Accept": ask.accept}
        if authorization := connection.authorization:
            headers["Authorization"] = authorization
        if ask.body is not None:
            headers["Content-Type"] = ask.content_type
        query = f"?{urlencode(ask.query)}" if ask.query else ""
        body = msgspec.to_builtins(ask.body)  # the library encodes it
        replaced, pool = self._pool, self._pool_for(connection)
        pool.users += 1
        answer: aiohttp.ClientResponse | None = None
        try:
            if replaced is not None and replaced is not pool and not replaced.users:
                await replaced.api.close()  # else its last user closes it
            url = URL(f"{server}{ask.where.path}{query}", encoded=True)
            reply = await pool.api.call_api(_METHODS[ask.verb], url, headers, body, _request_timeout=limits)
            answer = reply.response
            self._on_response(ask.verb, str(answer.status))
            if answer.status >= 300:
                text = await answer.content.read(ERROR_BYTES_MAX)
                after = answer.headers.get("Retry-After")
                raise refusal(ask.verb, ask.where, answer.status, text, retry_after=after)
            yield answer
        except _RedirectError as error:
            self._on_response(ask.verb, str(error.status))
            raise refusal(ask.verb, ask.where, error.status, error.body) from None
        except aiohttp.ClientConnectorCertificateError as error:
            message = f"{server} is not trusted: {error.certificate_error}"
            self._on_response(ask.verb, "unreachable")
            raise UntrustedServerError(ask.verb, ask.where, message) from error
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.ClientHttpProxyError,
        ) as error:
            message = f"{server} cannot be reached: {os_reason(error)}"
            raise self._unreachable(ask, message, not_sent=True) from error
        except TimeoutError as error:
            raise self._unreachable(ask, f"{server} does not answer") from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"the connection to {server} was lost: {str(error) or type(error).__name__}"
            raise self._unreachable(ask, message) from error
        finally:
            if answer is not None:
                answer.release()
            pool.users -= 1
            if pool is not self._pool and not pool.users:
                await pool.api.close()

    def _unreachable(self, ask: Request, message: str, *, not_sent: bool = False) -> UnreachableError:
        self._on_response(ask.verb, "unreachable")
        return UnreachableError(ask.verb, ask.where, message, not_sent=not_sent)


async def _with_pauses(answer: aiohttp.ClientResponse, pause_s: float) -> AsyncGenerator[bytes, None]:
    now = asyncio.get_running_loop().time
    transport = answer.connection and answer.connection.transport
    taken: socket.socket | None = transport.get_extra_info("socket") if transport else None
    since = now()
    async for chunk in answer.content.iter_any():
        is_busy = now() - since < pause_s and len(chunk) < _PAUSED_BYTES
        for at in range(0, len(chunk), _PAUSED_BYTES):
            if at:
                await asyncio.sleep(0)  # all at once would hold up calls
            yield chunk[at : at + _PAUSED_BYTES]
        if is_busy:
            try:
                _wake_from(taken, _PAUSED_BYTES)
                await asyncio.sleep(pause_s)
            finally:
                _wake_from(taken, 1)  # it may have ended meanwhile, and carry another reply next
        since = now()


def _wake_from(taken: socket.socket | None, size: int) -> None:
    """Have the loop wake only once so many bytes have arrived, or the connection has ended."""
    if taken is not None:
        with suppress(OSError):  # closed, or of a system that knows no such limit
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


class _RedirectError(Exception):
    """A redirect, which is not followed."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"a redirect with {status}")
        self.status = status
        self.body = body


def _api_client(connection: Connection) -> ApiClient:
    redirects = aiohttp.TraceConfig()
    redirects.on_request_redirect.append(_refuse)
    configuration = connection.configuration
    configuration.connection_pool_maxsize = 0
    configuration.trace_configs = [redirects]
    configuration.client_session_kwargs = {
        "trust_env": False,
        "cookie_jar": aiohttp.DummyCookieJar(),
        "headers": {
            "User-Agent": f"fairlead/{__version__}",
            # the API server compresses replies over 128 KiB, which costs both sides more than it saves
            "Accept-Encoding": "identity",
        },
    }
    return connection.api_client()


async def _refuse(_session: aiohttp.ClientSession, _context: object, seen: aiohttp.TraceRequestRedirectParams) -> None:
    """Refuse a redirect: our credentials are for this server only."""
    body = await seen.response.content.read(ERROR_BYTES_MAX)
    seen.response.close()
    raise _RedirectError(seen.response.status, body)


def os_reason(error: aiohttp.ClientError) -> str:
    """Return the operating system's error text, without aiohttp's internals."""
    found = getattr(error, "os_error", None)
    if not isinstance(found, OSError):
        return str(error)
    said = found.strerror or str(found)
    return os.strerror(found.errno) if found.errno and said.startswith("Connect call failed") else said
