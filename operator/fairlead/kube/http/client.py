"""Requests to the API server: made again where that is safe, within a deadline, and with errors that say what to do."""

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

from fairlead.kube.access.access import Access, Connection
from fairlead.kube.errors import NotLeadingError, RequestError, UnreachableError
from fairlead.kube.http.retry import wait_s
from fairlead.kube.http.transport import JSON, OnResponse, Request, Transport
from fairlead.kube.resources import ObjectRef, Page


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that only grow, a way to let them pass, and numbers from 0 to 1."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


LINE_BYTES_MAX: Final = 32 << 20


class LongLineError(ValueError):
    """A line without end."""


class Lines:
    """Put chunks in, take whole lines out. What is left when the stream ends is half a line, and nobody's."""

    def __init__(self, longest: int = LINE_BYTES_MAX) -> None:
        self._longest = longest
        self._parts: list[bytes] = []  # joined once, when the line ends: a long line costs no more than its length
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
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
    """Asks one API server, as one user. Use it as a context."""

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        deadline_s: float = _DEADLINE_S,
        tries: int | None = None,
        writes_for_s: Callable[[], float] | None = None,
        on_response: OnResponse = lambda _verb, _code: None,
    ) -> None:
        """`deadline_s` is for a request with all that is made again of it; `tries`: how often at most.

        `writes_for_s` is asked before each attempt of a write: how long it may take, none at all at 0.
        """
        self.access = access
        self._clock = clock or Clock()
        self._deadline_s = deadline_s
        self._tries = tries
        self._writes_for_s = writes_for_s
        self.on_response = on_response
        """Told of each answer."""
        self._opened: Transport | None = None

    async def __aenter__(self) -> Self:
        self._opened = Transport(self.access, self._count)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    def _count(self, verb: str, code: str) -> None:
        self.on_response(verb, code)

    @property
    def _transport(self) -> Transport:
        if self._opened is None:
            raise RuntimeError("a client is used as a context: `async with Client(access) as client`")
        return self._opened

    async def get(self, where: ObjectRef, decode: Decode[T], query: Mapping[str, str] = _NONE) -> T:
        """One object, or a part of it that a query describes."""
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
        """A list, a page at a time, all of the same version. GoneError: it took too long, begin anew."""
        asked = {**query, "limit": str(limit)}
        while True:
            page = await self._decoded(Request("list", where, asked, accept=accept), decode)
            yield page
            if not page.metadata.more:
                return
            asked = {**asked, "continue": page.metadata.more}

    async def watch(
        self, where: ObjectRef, query: Mapping[str, str], *, line_bytes_max: int = LINE_BYTES_MAX
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, until the API server ends it. Not made again, and silence is for the caller to mind.

        Close it (`contextlib.aclosing`): the connection is given up then.
        """
        ask = Request("watch", where, {**query, "watch": "true"})
        lines = Lines(line_bytes_max)
        try:
            async with self._shown() as connection, self._transport.stream(ask, connection) as chunks:
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        yield line
        except LongLineError as error:
            raise UnreachableError("watch", where, str(error)) from error

    async def create(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """A new object in a collection. It is made again only after 429, or when it was surely not sent."""
        return await self._decoded(Request("create", where, body=_encoded(body)), decode)

    async def replace(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """The whole object; with a resourceVersion in it, ConflictError if it has become another."""
        return await self._decoded(Request("update", where, body=_encoded(body)), decode)

    async def merge(self, where: ObjectRef, body: object, decode: Decode[T]) -> T:
        """Merge into an object, or into its status."""
        return await self._decoded(Request("patch", where, body=_encoded(body), content_type=_MERGE), decode)

    async def apply(self, where: ObjectRef, body: object, decode: Decode[T], *, manager: str, force: bool = False) -> T:
        """Server-side apply of an object, or of its status; `force` takes fields from their owners."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._decoded(Request("patch", where, query, _encoded(body), _APPLY), decode)

    async def delete(self, where: ObjectRef, *, uid: str = "", version: str = "") -> None:
        """Delete an object, if it is still that one. Made again, it may meet what it has deleted: NotFoundError."""
        given = {"uid": uid, "resourceVersion": version}
        conditions = {name: value for name, value in given.items() if value}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions} if conditions else None
        await self._ask(Request("delete", where, body=None if body is None else _encoded(body)))

    async def post(self, where: ObjectRef, body: bytes, *, within_s: float) -> bytes:
        """What must not happen twice, such as a binding: one attempt, and bytes as they are.

        An UnreachableError without `not_sent` leaves open whether it has happened.
        """
        return await self._at_once(Request("create", where, body=body), within_s)

    async def read(self, where: ObjectRef, *, within_s: float) -> bytes:
        """One object, for somebody who cannot wait: one attempt, and bytes as they are."""
        return await self._at_once(Request("get", where), within_s)

    async def _at_once(self, ask: Request, within_s: float) -> bytes:
        """Also a program that tells who asks has only that time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        try:
            async with asyncio.timeout(within_s) as limit, self._shown() as connection:
                limit.reschedule(None)
                left = min(end - loop.time(), self._writable_s(ask))
                return await self._transport.once(ask, connection, within_s=max(left, 0.001))
        except TimeoutError as error:
            message = f"who asks was not known within {within_s:.2g} s"
            raise UnreachableError(ask.verb, ask.where, message, not_sent=True) from error

    @asynccontextmanager
    async def _shown(self) -> AsyncIterator[Connection]:
        """A connection for one attempt; when it is refused, whoever asks next shows something newer."""
        connection = await self.access.connection()
        try:
            yield connection
        except RequestError as error:
            if error.status == 401:
                self.access.renew(connection)
            raise

    async def _decoded(self, ask: Request, decode: Decode[T]) -> T:
        body = await self._ask(ask)
        try:
            return decode(body)
        except msgspec.DecodeError as error:
            raise RequestError(ask.verb, ask.where, f"the answer is not what was asked for: {error}") from error

    async def _ask(self, ask: Request) -> bytes:
        clock = self._clock
        end = clock.now() + self._deadline_s
        attempt, renewed = 0, False
        while True:
            connection = await self.access.connection()
            left = min(end - clock.now(), self._writable_s(ask))
            try:
                return await self._transport.once(ask, connection, within_s=max(left, 0.001))
            except RequestError as error:
                if error.status == 401 and not renewed and self.access.renew(connection):
                    renewed = True  # a 401 says that nothing was done
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
            raise NotLeadingError(ask.verb, ask.where, "it was not sent: another may lead by now")
        return left


def _encoded(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
