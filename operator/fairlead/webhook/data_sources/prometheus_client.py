"""Client of Prometheus servers: instant queries within a time, and what their failure means for users."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from http.client import responses
from pathlib import Path
from time import monotonic, time_ns
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from fairlead import __version__
from fairlead.kube.errors import ERROR_BYTES_MAX, AccessError
from fairlead.kube.http.transport import os_reason
from fairlead.policy.nodes.polls import PollError, PrometheusPoll, Reading
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources.loop_turns import LoopTurns, turns_of_large_replies
from fairlead.webhook.data_sources.prometheus_reply import ReplyReader, refusal_text
from fairlead.webhook.data_sources.query_places import AT_ONCE, QueryConnections, QueryPlaces
from fairlead.webhook.data_sources.samples import TEXT_MAX, NodeOf, NodeSamples, one_line, reading
from fairlead.webhook.data_sources.server_access import FOLDER, ServerAccess

BODY_BYTES_MAX: Final = 16 << 20
"""Greatest size of a reply, before and after decompression."""
_PATH: Final = "/api/v1/query"
_GET_MAX: Final = 1500
"""Length of a query up to which GET is used, the only one that many proxies allow; some refuse longer lines."""
_LONG_S: Final = 1.0  # to wait for a place without a word
_STEP_BYTES: Final = 64 << 10  # decompressed between two turns of the loop
_GZIP: Final = 31  # zlib's number for it
_CONNECT_PART: Final = 0.8  # of the time, so that a connection that is dropped is told apart from a slow query
_SERVER_PART: Final = 0.9  # of the time, so that the server's own message arrives
_LOGIN: Final = "check bearerToken, serviceAccount, basicAuth or clientCertificate of the server in the settings"
_HINTS: Final = {
    401: f": the credentials are missing or refused; {_LOGIN}",
    403: f": these credentials may not query; {_LOGIN}",
    404: ": there is no API of Prometheus; the url in the settings needs the path before /api/v1, if there is one",
}
_TOO_LARGE: Final = (
    f"the reply is larger than {BODY_BYTES_MAX >> 20} MiB: aggregate in the query, so that each node has one series"
)
_NETWORK_POLICY: Final = (
    "a NetworkPolicy may drop the connection: that of kube-prometheus must allow the operator's pods"
)


class _Answer(NamedTuple):
    """Reply to one query."""

    samples: NodeSamples
    sent: int
    """When the query was sent, in nanoseconds."""
    waited_s: float
    """How long it waited for a place."""


class PrometheusClient:
    """Client of the servers in the settings. Use it as a context manager; no proxy of the environment is used."""

    def __init__(self, settings_folder: Path, now: Callable[[], int] = time_ns, turns: LoopTurns | None = None) -> None:
        """`settings_folder` has the settings file, with the credentials beside it; `now` returns nanoseconds."""
        self._folder = settings_folder / FOLDER
        self._now = now
        self._turns = turns or LoopTurns()
        self._large_turns = turns_of_large_replies()
        self._clock = monotonic
        self._owners: Mapping[PrometheusPoll, str] = {}
        self._places: dict[URL, QueryPlaces] = {}
        self._answered: set[tuple[str, str | None]] = set()
        """Queries that were answered in time when they were last asked."""
        self._servers: dict[str, ServerAccess] = {}
        self._open_session: aiohttp.ClientSession | None = None

    def set_servers(self, servers: Iterable[PrometheusServer]) -> None:
        """Use these servers from the next poll on."""
        held = self._servers
        self._servers = {
            one.name: held[one.name]
            if one.name in held and held[one.name].server == one
            else ServerAccess(one, self._folder / one.name)
            for one in servers
        }

    def set_access(self, access: Iterable[ServerAccess]) -> None:
        """Use these servers, of a caller without settings."""
        self._servers = {one.server.name: one for one in access}

    def set_owners(self, owners: Mapping[PrometheusPoll, str]) -> None:
        """Set who asks each poll, and forget all others: owners take turns at a server."""
        self._owners = owners
        asked = {(poll.server, query) for poll in owners for query in (poll.query, poll.time_query)}
        self._answered &= asked

    async def __aenter__(self) -> Self:
        self._open_session = aiohttp.ClientSession(
            connector=QueryConnections(limit=0),  # the places are the limit
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"fairlead/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",  # compression costs both sides more than it saves within a cluster
            },
            auto_decompress=False,  # it has no limit that is ours
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._open_session is None:
            raise RuntimeError("use the client as a context manager: `async with PrometheusClient(...) as client`")
        return self._open_session

    async def read(
        self, poll: PrometheusPoll, greatest_age_s: int, node_of: NodeOf, series_max: int | None = None
    ) -> Reading:
        """Return the values of a poll; `greatest_age_s` is how far the server may look back. Raises PollError."""
        access = self._access(poll.server)
        values, times = await asyncio.gather(
            self._answer(access, poll, poll.query, greatest_age_s, ReplyReader(poll.node_label, node_of, series_max)),
            self._times(access, poll, greatest_age_s, ReplyReader(poll.node_label, node_of, series_max)),
            return_exceptions=True,
        )
        try:
            if isinstance(values, BaseException):
                raise values
            if isinstance(times, BaseException):
                raise times
            found = reading(values.samples, None if times is None else times.samples, values.sent, node_of)
            waited_s = max(one.waited_s for one in (values, times) if one is not None)
        finally:
            del values, times  # a frame that holds its own exception keeps the reply until the collector comes
        if waited_s < _LONG_S:
            return found
        note = f"the query waited {waited_s:.0f} s for one of {AT_ONCE} places at the server, which other queries held"
        return found._replace(note="; ".join(filter(None, (found.note, note))))

    def _access(self, name: str) -> ServerAccess:
        if (found := self._servers.get(name)) is not None:
            return found
        there = f"there are {', '.join(self._servers)}" if self._servers else "the settings have none"
        raise PollError(f'there is no server "{name}"; {there}')

    async def _times(
        self, access: ServerAccess, poll: PrometheusPoll, greatest_age_s: int, reader: ReplyReader
    ) -> _Answer | None:
        if poll.time_query is None:
            return None
        try:
            return await self._answer(access, poll, poll.time_query, greatest_age_s, reader)
        except PollError as error:
            raise PollError(f"timeQuery: {error}") from error

    async def _answer(
        self, access: ServerAccess, poll: PrometheusPoll, query: str, greatest_age_s: int, reader: ReplyReader
    ) -> _Answer:
        """Send a query once it has a place, which it keeps until its reply is decoded. Raises PollError."""
        within_s = min(access.server.timeout.seconds, poll.interval_s)
        places = self._places.setdefault(URL(access.server.url).origin(), QueryPlaces())
        asked = (poll.server, query)
        began = self._clock()
        async with places.place(self._owners.get(poll, ""), is_answered=asked in self._answered):
            waited_s, sent = self._clock() - began, self._now()
            failed = ""
            try:
                await self._read(access, query, greatest_age_s, within_s, reader)
            except PollError as error:
                failed = str(error)
            except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
                if isinstance(error, TimeoutError):
                    self._answered.discard(asked)
                failed = _unreachable(access.server.url, error, within_s)
            if failed:
                # Raised anew: the frames below hold the reply, and a time limit whose task holds the error.
                raise PollError(failed)
            self._answered.add(asked)
            return _Answer(await self._turns.run(reader.end()), sent, waited_s)

    async def _read(
        self, access: ServerAccess, query: str, greatest_age_s: int, within_s: int, reader: ReplyReader
    ) -> None:
        """Send a query, and read the reply. Raises PollError, and what aiohttp raises."""
        server = access.server
        parameters = {
            "query": query,
            "timeout": f"{int(within_s * 1000 * _SERVER_PART)}ms",
            "lookback_delta": f"{greatest_age_s}s",  # servers before 2.43 ignore it
        }
        url, form = f"{server.url.rstrip('/')}{_PATH}", urlencode(parameters)
        is_short = len(form) <= _GET_MAX
        try:
            credential = access.credential()
            tls = access.trust.context(credential) if access.trust is not None else True
        except AccessError as error:
            raise PollError(str(error)) from error
        headers = {one.name: one.value for one in server.headers}
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if not is_short:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        # The limit is ours: that of aiohttp is not for a body that had begun to come before the query was sent.
        async with (
            asyncio.timeout(within_s) as limit,
            self._session.request(
                "GET" if is_short else "POST",
                URL(f"{url}?{form}" if is_short else url, encoded=True),
                data=None if is_short else form.encode(),
                headers=headers,
                ssl=tls,
                server_hostname=server.server_name or None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=within_s * _CONNECT_PART),
                allow_redirects=False,  # our credentials are for this server only
            ) as answer,
        ):
            if answer.status != 200:
                raise PollError(f"{server.url} answers {await _refusal(answer, self._large_turns)}")
            async for part in _parts(answer, BODY_BYTES_MAX, self._large_turns):
                if reader.add(part):
                    await self._decode(reader, limit)

    async def _decode(self, reader: ReplyReader, limit: asyncio.Timeout) -> None:
        """Decode what has come; this is no time of the server's."""
        ends, began = limit.when(), self._clock()
        limit.reschedule(None)
        await self._large_turns.run(reader.decode())
        limit.reschedule(None if ends is None else ends + self._clock() - began)


async def _parts(answer: aiohttp.ClientResponse, most: int, turns: LoopTurns) -> AsyncIterator[bytes]:
    """Yield the parts of a body, decompressed. Raises PollError for one that is larger, or goes on after its end."""
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise PollError(f"the reply is encoded with {one_line(encoding)}, which was not asked for")
    unzip = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    received = size = 0
    async for chunk in answer.content.iter_any():
        received += len(chunk)
        if received > most:
            raise PollError(_TOO_LARGE)
        left = chunk
        while left:
            if unzip is None:
                part, left = left, b""
            elif unzip.eof:
                raise PollError("the reply has more data after its compressed content")
            else:
                began = turns.share.clock()
                try:
                    part = unzip.decompress(left, _STEP_BYTES)
                except zlib.error:
                    raise PollError("the reply is not compressed with gzip, as its Content-Encoding says") from None
                left = unzip.unused_data or unzip.unconsumed_tail
                await asyncio.sleep(turns.share.pause(began))
            size += len(part)
            if size > most:
                raise PollError(_TOO_LARGE)
            yield part


async def _refusal(answer: aiohttp.ClientResponse, turns: LoopTurns) -> str:
    """Return the status of a reply, with the server's own message or a hint."""
    status = f"{answer.status} {responses.get(answer.status, '')}".strip()
    if 300 <= answer.status < 400:
        target = urlsplit(answer.headers.get("Location", "")).netloc.rpartition("@")[2]
        to = f" to {one_line(target)}" if target else ""
        return f"{status}, a redirect{to}, which is not followed: write the URL of the server itself in the settings"
    try:
        said = refusal_text(b"".join([part async for part in _parts(answer, ERROR_BYTES_MAX, turns)]))
    except PollError:
        said = ""
    return f"{status}: {said}" if said else f"{status}{_HINTS.get(answer.status, '')}"


def _unreachable(url: str, error: aiohttp.ClientError | OSError, within_s: int) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            wrong = error.certificate_error
            why = wrong.verify_message if isinstance(wrong, ssl.SSLCertVerificationError) else str(wrong)
            return f"{url} is not trusted: {why.rstrip('.')}; see ca and serverName of the server in the settings"
        case aiohttp.ConnectionTimeoutError():
            return f"{url} does not accept a connection within {within_s * _CONNECT_PART:g} s: {_NETWORK_POLICY}"
        case aiohttp.ClientConnectorSSLError():
            return f"{url} does not complete the TLS handshake: {os_reason(error)}"
        case aiohttp.ClientConnectorError():
            return f"{url} cannot be reached: {os_reason(error)}"
        case TimeoutError():
            return f"{url} does not answer within {within_s} s: simplify the query, or raise timeout in the settings"
        case _:
            return f"the connection to {url} was lost: {one_line(str(error), TEXT_MAX) or type(error).__name__}"
