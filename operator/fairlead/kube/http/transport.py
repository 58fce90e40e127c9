"""One attempt of one request, and what its failure means. Nothing here is made again: see `client`."""

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
from fairlead.kube.errors import ERROR_BYTES_MAX, UnreachableError, refusal
from fairlead.kube.resources import ObjectRef

JSON: Final = "application/json"
CONNECT_S: Final = 10.0
SILENT_S: Final = 20.0  # the API server gives up on what it is asked after 60, and begins to answer long before
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
    """As RBAC calls it."""
    where: ObjectRef
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def idempotent(self) -> bool:
        """Whether it comes to the same when it is carried out twice."""
        return self.verb != "create"


OnResponse = Callable[[str, str], None]
"""Told of each answer: the verb, and its status or `unreachable`."""


class Transport:
    """Connections to one API server. Proxies of the environment are not for it: only a kubeconfig's own is used."""

    def __init__(self, access: Access, on_response: OnResponse = lambda _verb, _code: None) -> None:
        self._access = access
        self._on_response = on_response
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"fairlead/{__version__}",
                # the API server would compress what is larger than 128 KiB, which costs both sides more than the wire
                "Accept-Encoding": "identity",
            },
            trust_env=False,
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._session.close()

    async def once(self, ask: Request, connection: Connection, *, within_s: float) -> bytes:
        """The body of a good answer; every other end is a RequestError."""
        limits = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_S, sock_read=SILENT_S)
        async with self._answer(ask, connection, limits) as answer:
            return await answer.read()

    @asynccontextmanager
    async def stream(self, ask: Request, connection: Connection) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of a good answer, for as long as it lasts; its silence is for the caller to mind."""
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
                allow_redirects=False,  # what we show is for this server alone
            ) as answer:
                self._on_response(ask.verb, str(answer.status))
                if answer.status >= 300:
                    body = await answer.content.read(ERROR_BYTES_MAX)
                    after = answer.headers.get("Retry-After")
                    raise refusal(ask.verb, ask.where, answer.status, body, retry_after=after)
                yield answer
        except aiohttp.ClientConnectorCertificateError as error:
            message = f"{access.server} is not whom we trust: {error.certificate_error}"
            raise self._unreachable(ask, message, not_sent=True) from error
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.ClientHttpProxyError,
        ) as error:
            message = f"{access.server} cannot be reached: {_why(error)}"
            raise self._unreachable(ask, message, not_sent=True) from error
        except TimeoutError as error:
            raise self._unreachable(ask, f"{access.server} does not answer") from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"the connection to {access.server} broke: {str(error) or type(error).__name__}"
            raise self._unreachable(ask, message) from error

    def _unreachable(self, ask: Request, message: str, *, not_sent: bool = False) -> UnreachableError:
        self._on_response(ask.verb, "unreachable")
        return UnreachableError(ask.verb, ask.where, message, not_sent=not_sent)


def _why(error: aiohttp.ClientError) -> str:
    """In the system's words, without what aiohttp says of objects of its own."""
    found = getattr(error, "os_error", None)
    if not isinstance(found, OSError):
        return str(error)
    said = found.strerror or str(found)
    return os.strerror(found.errno) if found.errno and said.startswith("Connect call failed") else said
