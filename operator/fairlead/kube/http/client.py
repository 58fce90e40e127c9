"""Client of the API server: retries where that is safe, deadlines, and errors that say what to do."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from fairlead.kube.access.login import Connection, Login
from fairlead.kube.errors import NotLeadingError, RequestError, UnreachableError, UntrustedServerError
from fairlead.kube.http.retry import wait_s
from fairlead.kube.http.transport import JSON, OnResponse, Request, Transport
from fairlead.kube.resources import ObjectRef, Page


@dataclass(frozen=True, slots=True)
class Clock:
    """Monotonic seconds, a sleep function, and random numbers from 0 to 1; tests replace them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


LINE_BYTES_MAX: Final = 32 << 20


class LongLineError(ValueError):
    """Line that exceeds the limit."""


class Lines:
    """Splitter of a stream into lines. An incomplete line at the end of the stream is dropped."""

    def __init__(self, longest: int = LINE_BYTES_MAX) -> None:
        self._longest = longest
        self._parts: list[bytes] = []  # joined once, so that a long line takes linear time
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk, and return the lines that it completes. Raises LongLineError."""
        *ended, rest = chunk.split(b"\n")
        if ended and self._parts:
            ended[0] = b"".join([*self._parts, ended[0]])
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._longest or any(len(line) > self._longest for line in ended):
            raise LongLineError(f"a line is longer than {self._longest} bytes")
        return [line for line in ended if line]


T = TypeVar("T")
Decode = Callable[[bytes], T]
PAGE: Final = 250
_DEADLINE_S: Final = 60.0
_READS: Final = frozenset({"get", "list", "watch"})
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
_NONE: Final[Mapping[str, str]] = {}


class Client:
    """Client of one API server, with one user's credentials. Use it as a context manager."""

    def __init__(
        self,
        login: Login,
        *,
        clock: Clock | None = None,
        deadline_s: float = _DEADLINE_S,
        tries: int | None = None,
        writes_for_s: Callable[[], float] | None = None,
        on_response: OnResponse = lambda _verb, _code: None,
    ) -> None:
        """`deadline_s` is for a request with its retries; `tries` limits the attempts.

        `writes_for_s` is called before each attempt of a write: for how long writes are allowed, 0 for not at all.
        """
        self.login = login
        self._clock = clock or Clock()
        self._deadline_s = deadline_s
        self._tries = tries
        self._writes_for_s = writes_for_s
        self.on_response = on_response
        """Called with the verb and the status of each reply."""
        self._open_transport: Transport | None = None

    async def __aenter__(self) -> Self:
        self._open_transport = Transport(self.login, self._count)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    def _count(self, verb: str, code: str) -> None:
        self.on_response(verb, code)

    @property
    def _transport(self) -> Transport:
        if self._open_transport is None:
            raise RuntimeError("use the client as a context manager: `async with Client(login) as client`")
        return self._open_transport

    async def get(self, where: ObjectRef, decode: Decode[T], query: Mapping[str, str] = _NONE) -> T:
        """Return one object, or the part of it that a query selects."""
        return await self._decoded(Request("get", where, query), decode)

    async def pages(
        self,
        where: ObjectRef,
        decode: Decode[Page[T]],
        *,
        query: Mapping[str, str] = _NONE,
        accept: str = JSON,
        limit: int = PAGE,
    ) -> AsyncGenerator[Page[T], None]:
        """Yield a list page by page, all of one resource version. Raises GoneError if it took too long.

        The next page is requested before one is yielded: the API server makes it while its receiver works.
        """
        page_query = {**query, "limit": str(limit)}

        def request(more: str = "") -> asyncio.Task[Page[T]]:
            asked = {**page_query, "continue": more} if more else page_query
            return asyncio.ensure_future(self._decoded(Request("list", where, asked, accept=accept), decode))

        requested = request()
        try:
            while True:
                page = await requested
                if not page.metadata.more:
                    yield page
                    return
                requested = request(page.metadata.more)
                yield page
        finally:
            requested.cancel()
            await asyncio.gather(requested, return_exceptions=True)

    async def watch(
        self,
        where: ObjectRef,
        query: Mapping[str, str],
        *,
        line_bytes_max: int = LINE_BYTES_MAX,
        pause_s: float = 0.0,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch until the API server ends it, without retries or a timeout for silence.

        Close it (`contextlib.aclosing`) to close the connection. `pause_s` as in `Transport.stream`.
        """
        ask = Request("watch", where, {**query, "watch": "true"})
        lines = Lines(line_bytes_max)
        try:
            async with (
                self._connection() as connection,
                self._transport.stream(ask, connection, pause_s=pause_s) as chunks,
            ):
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        yield line
        except LongLineError as error:
            raise UnreachableError("watch", where, str(error)) from error

    async def create(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """Create an object. Retried only after 429, or if the request certainly was not sent."""
        return await self._decoded(Request("create", where, body=body), decode)

    async def replace(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """Replace an object. Raises ConflictError if the body has a resourceVersion that is no longer current."""
        return await self._decoded(Request("update", where, body=body), decode)

    async def merge(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """Merge-patch an object, or its status."""
        return await self._decoded(Request("patch", where, body=body, content_type=_MERGE), decode)

    async def apply(self, where: ObjectRef, body: object, decode: Decode[T], *, manager: str, force: bool = False) -> T:
        """Apply an object, or its status, on the server; `force` takes fields from other managers."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._decoded(Request("patch", where, query, body, _APPLY), decode)

    async def delete(self, where: ObjectRef, *, uid: str = "", version: str = "") -> None:
        """Delete an object if it still has this UID and version. A retry may meet its own success: NotFoundError."""
        preconditions = {"uid": uid, "resourceVersion": version}
        conditions = {name: value for name, value in preconditions.items() if value}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions} if conditions else None
        await self._ask(Request("delete", where, body=body))

    async def post(self, where: ObjectRef, body: object, *, within_s: float) -> bytes:
        """Create an object that must not be created twice, such as a Binding: one attempt, returning the reply's bytes.

        An UnreachableError without `not_sent` means that it may have been created.
        """
        return await self._at_once(Request("create", where, body=body), within_s)

    async def merge_once(self, where: ObjectRef, body: object, *, within_s: float) -> bytes:
        """Merge-patch an object with one attempt. An UnreachableError without `not_sent` leaves the outcome open."""
        return await self._at_once(Request("patch", where, body=body, content_type=_MERGE), within_s)

    async def read(self, where: ObjectRef, *, within_s: float) -> bytes:
        """Return one object as bytes, with a single attempt, for a caller with little time."""
        return await self._at_once(Request("get", where), within_s)

    async def read_list(
        self, where: ObjectRef, *, within_s: float, query: Mapping[str, str] = _NONE, bytes_max: int | None = None
    ) -> bytes:
        """Return all objects as bytes, in one page and with a single attempt."""
        return await self._at_once(Request("list", where, query), within_s, bytes_max)

    async def _at_once(self, ask: Request, within_s: float, bytes_max: int | None = None) -> bytes:
        """Send a request once, and again with newer credentials after a 401, when it was certainly not carried out.

        The time includes that of an exec plugin.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        renewed = False
        while True:
            try:
                async with asyncio.timeout_at(end):
                    connection = await self.login.connection()
            except TimeoutError as error:
                message = f"no credentials within {within_s:.2g} s"
                raise UnreachableError(ask.verb, ask.where, message, not_sent=True) from error
            left = min(end - loop.time(), self._writable_s(ask))
            try:
                return await self._transport.once(ask, connection, within_s=max(left, 0.001), bytes_max=bytes_max)
            except RequestError as error:
                if renewed or not self._renewed(connection, error):
                    raise
                renewed = True

    def _renewed(self, refused: Connection, error: RequestError) -> bool:
        """Log in again after a refusal of the credentials or of the server; return whether to ask again at once."""
        if isinstance(error, UntrustedServerError):
            return self.login.read_again(refused)
        return error.status == 401 and self.login.renew(refused)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """Provide the credentials for one attempt; if they are refused, the next attempt gets newer ones."""
        connection = await self.login.connection()
        try:
            yield connection
        except RequestError as error:
            self._renewed(connection, error)
            raise

    async def _decoded(self, ask: Request, decode: Decode[T]) -> T:
        body = await self._ask(ask)
        try:
            return decode(body)
        except msgspec.DecodeError as error:
            raise RequestError(ask.verb, ask.where, f"the reply cannot be decoded: {error}") from error

    async def _ask(self, ask: Request) -> bytes:
        clock = self._clock
        end = clock.now() + self._deadline_s
        attempt, renewed = 0, False
        while True:
            connection = await self.login.connection()
            left = min(end - clock.now(), self._writable_s(ask))
            try:
                return await self._transport.once(ask, connection, within_s=max(left, 0.001))
            except RequestError as error:
                if not renewed and self._renewed(connection, error):
                    renewed = True  # nothing was carried out
                    continue
                wait = wait_s(error, attempt, clock.random, idempotent=ask.idempotent)
                if wait is None or attempt + 1 == self._tries or clock.now() + wait >= end:
                    raise
            await clock.sleep(wait)
            attempt += 1

    def _writable_s(self, ask: Request) -> float:
        if self._writes_for_s is None or ask.verb in _READS:
            return inf
        left = self._writes_for_s()
        if left <= 0:
            raise NotLeadingError(ask.verb, ask.where, "not sent: another replica may lead by now")
        return left
