"""Transport: one attempt of one request, and what its failure means. Retries are in `client`."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from fairlead import __version__
from fairlead.kube.access.access import Access, Connection
from fairlead.kube.errors import ERROR_BYTES_MAX, RequestError, UnreachableError, refusal
from fairlead.kube.resources import ObjectRef

JSON: Final = "application/json"
CONNECT_S: Final = 10.0
SILENT_S: Final = 20.0  # the API server aborts requests after 60 s, and starts its replies much earlier
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
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def idempotent(self) -> bool:
        """Return whether the request may be carried out twice."""
        return self.verb != "create"


OnResponse = Callable[[str, str], None]
"""Called with the verb of each request and its status, or `unreachable`."""


class Transport:
    """Connections to one API server. Proxies from the environment are ignored: only a kubeconfig's own is used."""

    def __init__(self, access: Access, on_response: OnResponse = lambda _verb, _code: None) -> None:
        self._access = access
        self._on_response = on_response
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"fairlead/{__version__}",
                # the API server compresses replies over 128 KiB, which costs both sides more than it saves
                "Accept-Encoding": "identity",
            },
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

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
    async def stream(self, ask: Request, connection: Connection) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request, and provide the chunks of its reply, without a timeout for silence. Raises RequestError."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=None)
        async with self._answer(ask, connection, limits) as answer:
            yield answer.content.iter_any()

    @asynccontextmanager
    async def _answer(
        self, ask: Request, connection: Connection, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        access, credential = self._access, connection.credential
        headers = {"Accept": ask.accept}
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if ask.body is not None:
            headers["Content-Type"] = ask.content_type
        query = f"?{urlencode(ask.query)}" if ask.query else ""
        try:
            async with self._session.request(
                _METHODS[ask.verb],
                URL(f"{access.server}{ask.where.path}{query}", encoded=True),
                data=ask.body,
                headers=headers,
                ssl=connection.tls or True,
                server_hostname=access.server_name or None,
                proxy=access.proxy or None,
                timeout=limits,
                allow_redirects=False,  # our credentials are for this server only
            ) as answer:
                self._on_response(ask.verb, str(answer.status))
                if answer.status >= 300:
                    body = await answer.content.read(ERROR_BYTES_MAX)
                    after = answer.headers.get("Retry-After")
                    raise refusal(ask.verb, ask.where, answer.status, body, retry_after=after)
                yield answer
        except aiohttp.ClientConnectorCertificateError as error:
            message = f"{access.server} is not trusted: {error.certificate_error}"
            raise self._unreachable(ask, message, not_sent=True) from error
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.ClientHttpProxyError,
        ) as error:
            message = f"{access.server} cannot be reached: {os_reason(error)}"
            raise self._unreachable(ask, message, not_sent=True) from error
        except TimeoutError as error:
            raise self._unreachable(ask, f"{access.server} does not answer") from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"the connection to {access.server} was lost: {str(error) or type(error).__name__}"
            raise self._unreachable(ask, message) from error

    def _unreachable(self, ask: Request, message: str, *, not_sent: bool = False) -> UnreachableError:
        self._on_response(ask.verb, "unreachable")
        return UnreachableError(ask.verb, ask.where, message, not_sent=not_sent)


def os_reason(error: aiohttp.ClientError) -> str:
    """Return the operating system's error text, without aiohttp's internals."""
    found = getattr(error, "os_error", None)
    if not isinstance(found, OSError):
        return str(error)
    said = found.strerror or str(found)
    return os.strerror(found.errno) if found.errno and said.startswith("Connect call failed") else said
