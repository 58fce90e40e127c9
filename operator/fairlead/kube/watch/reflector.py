"""Reflector: a list and a watch that keep a sink equal to the API server.

It lists everything, then watches from the list's resource version; a watch that ends is resumed from its last version.
If that version has expired, everything is listed again, and objects that the list does not name are removed. No delete
is lost: each is either an event, or missing from a list.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final, Generic, NoReturn, TypeVar

import msgspec

from fairlead.kube.errors import (
    ClusterError,
    ForbiddenError,
    GoneError,
    RequestError,
    UnreachableError,
    refusal,
    status_of,
)
from fairlead.kube.http.client import PAGE, Client, Clock
from fairlead.kube.http.retry import LONGEST_S, Backoff
from fairlead.kube.resources import ObjectRef, Page
from fairlead.kube.watch import store
from fairlead.kube.watch.reflector_status import SILENT_S, ReflectorStatus, Relist
from fairlead.kube.watch.store import Key, ObjectVersion, Sink, Store
from fairlead.kube.watch.verify import differences
from fairlead.logs import FaultError

T = TypeVar("T", bound=store.Identified)
WATCH_S: Final = 240
WATCH_JITTER_S: Final = 60
SILENT_JITTER_S: Final = 15.0
SHORT_S: Final = 1.0
_PIECE: Final = 50  # items that are decoded before other tasks run
_FAILURES: Final = 5  # consecutive failures of the API server before everything is listed
_SILENCES: Final = 2
_NONE: Final[Mapping[str, str]] = {}
_log: Final = logging.getLogger(__name__)
_page: Final = msgspec.json.Decoder(Page[msgspec.Raw])
_REPLAY: Final = frozenset({Relist.ASKED, Relist.DIFFERS, Relist.REFUSED, Relist.FAILING})
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, NotImplementedError, RecursionError)
_PASSING: Final = frozenset({0, 401, 403, 408, 429})  # they say nothing about the version; 0 is no reply


class Reflector(Generic[T]):
    """List and watch that feed one sink. `run` is a task; all other methods are for other tasks of its loop."""

    def __init__(
        self,
        client: Client,
        where: ObjectRef,
        *,
        decode: Callable[[msgspec.Raw], T],
        sink: Sink[T],
        query: Mapping[str, str] = _NONE,
        clock: Clock | None = None,
        page: int = PAGE,
        piece: int = _PIECE,
        puts_deleted: bool = False,
        pause_s: float = 0.0,
    ) -> None:
        """`query` selects the objects: a `fieldSelector`, a `labelSelector`. `page`: those listed at a time.

        `piece`: those of them that are decoded before other tasks run; if 1, they also run before it is put.
        `puts_deleted`: the last state of an object, which comes with its deletion, is put before it is removed.
        `pause_s`: time that is let pass between two reads of a busy watch.
        """
        self.where = where
        self.state = ReflectorStatus()
        self._client = client
        self._decode = decode
        self._query = query
        self._page, self._piece = page, piece
        self._puts_deleted = puts_deleted
        self._pause_s = pause_s
        self._clock = clock or Clock()
        self._store = Store(sink, store.identify)
        self._backoff = Backoff(self._clock.random)
        self._version = ""
        self._asked, self._listed = asyncio.Event(), asyncio.Event()
        self._why = Relist.ASKED
        self._silences = self._lines = 0

    @property
    def objects(self) -> Mapping[Key, ObjectVersion]:
        """Return the versions of the objects in the store."""
        return self._store.versions

    def staleness(self) -> float:
        """Return for how many seconds the store may be behind the API server; infinite before the first list."""
        return self.state.staleness(self._clock.now())

    def relist(self, why: Relist = Relist.ASKED) -> None:
        """Request a list, which puts every object into the sink again."""
        self._why = why
        self._asked.set()
        self._listed.clear()

    async def wait_until_listed(self) -> None:
        """Wait until no list is pending."""
        await self._listed.wait()

    async def check(self) -> int:
        """Return how many objects differ from the API server; if any do, everything is listed."""
        found = await differences(self._client, self.where, self._query, self.objects, self._clock)
        if found:
            self.state.differences += len(found)
            _log.warning("reflector.differs", extra={"resource": str(self.where), "objects": sorted(found)[:10]})
            self.relist(Relist.DIFFERS)
        return len(found)

    async def run(self) -> NoReturn:
        """List and watch until cancelled."""
        relist: Relist | None = Relist.START
        while True:
            try:
                if relist is not None:
                    await self._list(relist)
                    relist = None
                relist = await self._watch()
            except ClusterError as error:
                wait = self._failed(error)
                relist = relist or self._consequence(error)
                await self._clock.sleep(wait)

    async def _list(self, why: Relist) -> None:
        self.state.relists[why] += 1
        self._store.begin(replay=why in _REPLAY or self._asked.is_set())
        self._asked.clear()
        self.state.faults.clear()
        version = ""
        async with aclosing(self._client.pages(self.where, _page.decode, query=self._query, limit=self._page)) as pages:
            async for page in pages:
                version = version or page.metadata.resource_version
                await self._take(page.items or [])
                self._mark_contact()
        while self._store.sweep(_PIECE):
            await asyncio.sleep(0)
        self._store.end()
        self._version = version
        self.state.synced = True
        if not self._asked.is_set():
            self._listed.set()

    async def _take(self, items: list[msgspec.Raw]) -> None:
        for start in range(0, len(items), self._piece):
            for raw in items[start : start + self._piece]:
                await self._put(raw, self._store.list)
            await asyncio.sleep(0)

    async def _watch(self) -> Relist | None:
        """Run one watch to its end; return why everything must be listed then, or None."""
        if self._asked.is_set():
            return self._why
        began, lines = self._clock.now(), self._lines
        reader, silence, relist_requested = tasks = (
            asyncio.ensure_future(self._read()),
            asyncio.ensure_future(self._silence(began)),
            asyncio.ensure_future(self._asked.wait()),
        )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        received = self._lines != lines
        if reader in done:
            reader.result()
            if not received and self._clock.now() - began < SHORT_S:
                raise UnreachableError("watch", self.where, "it ended as soon as it had started")
            return None
        if relist_requested in done:
            return self._why
        silence.result()
        self.state.failures["silent"] += 1
        self._record_failure(f"watch {self.where}: nothing was received for more than {SILENT_S:g} s")
        self._silences = 0 if received else self._silences + 1
        return Relist.SILENT if self._silences >= _SILENCES else None

    async def _read(self) -> None:
        query = {
            **self._query,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S + int(WATCH_JITTER_S * self._clock.random())),
        }
        async with aclosing(self._client.watch(self.where, query, pause_s=self._pause_s)) as lines:
            async for line in lines:
                await self._handle_line(line)
                self._lines += 1
                self._mark_contact()

    async def _handle_line(self, line: bytes) -> None:
        try:
            event = store.read_event(line)
        except msgspec.DecodeError as error:
            raise UnreachableError("watch", self.where, f"a line that is not an event: {error}") from error
        self.state.events[event.type] += 1
        if event.type == "ERROR":
            raise refusal("watch", self.where, status_of(event.object).code, bytes(event.object))
        if event.type in ("ADDED", "MODIFIED"):
            version = await self._put(event.object, self._store.put)
        else:
            key, version = self._known(event.object)
            if event.type == "DELETED":
                if self._puts_deleted:
                    await self._put(event.object, self._store.put)
                self._store.gone(key, version.uid)
                self.state.faults.pop(key, None)
        self._version = version.version or self._version  # a watch without a version would report no deletes

    async def _silence(self, began: float) -> None:
        """Return once nothing was received for too long."""
        clock = self._clock
        longest = SILENT_S + SILENT_JITTER_S * clock.random()
        while (left := max(began, self.state.last_contact or began) + longest - clock.now()) > 0:
            await clock.sleep(left)

    def _mark_contact(self) -> None:
        now = self._clock.now()
        self.state.last_contact = now
        if self.state.last_error:
            self.state.last_error = self.state.missing_permission = ""
            _log.info("reflector.recovered", extra={"resource": str(self.where)})
        self._backoff.well(now)

    def _record_failure(self, what: str) -> None:
        """Log a failure when it begins; repetitions are logged at DEBUG."""
        level = logging.DEBUG if what == self.state.last_error else logging.WARNING
        _log.log(level, "reflector.failed", extra={"resource": str(self.where), "error": what})
        self.state.last_error = what

    async def _put(self, raw: msgspec.Raw, put: Callable[[T], tuple[Key, ObjectVersion]]) -> ObjectVersion:
        """Put an object. One that cannot be put keeps its last state: it must not block all others."""
        try:
            item = self._decode(raw)
        except _UNREADABLE as error:
            return self._unreadable(raw, error)
        if self._piece == 1:
            await asyncio.sleep(0)
        try:
            key, version = put(item)
        except msgspec.DecodeError as error:
            return self._unreadable(raw, error)
        except _UNREADABLE as error:
            return self._sink_fault(raw, error)
        self.state.faults.pop(key, None)
        return version

    def _unreadable(self, raw: msgspec.Raw, error: Exception) -> ObjectVersion:
        """Skip an object that cannot be read."""
        key, version = self._known(raw)
        self._store.skip(key)
        self.state.unreadable += 1
        # msgspec's messages contain no values of the object; others may, also those that a sink passes on
        cause = error.__cause__ or error
        why = str(cause) if isinstance(cause, msgspec.DecodeError) else type(cause).__name__
        _log.error("reflector.unreadable", extra={"resource": str(self.where), "object": key, "error": why})
        return version

    def _sink_fault(self, raw: msgspec.Raw, error: Exception) -> ObjectVersion:
        """Skip an object with which the sink fails, and show it until it is put, or is gone."""
        key, version = self._known(raw)
        self.state.failures["fault"] += 1
        self.state.faults[key] = type(error).__name__
        _log.error("reflector.fault", exc_info=FaultError(error), extra={"resource": str(self.where), "object": key})
        return version

    def _known(self, raw: msgspec.Raw) -> tuple[Key, ObjectVersion]:
        try:
            return store.identify(store.partial_object.decode(raw))
        except msgspec.DecodeError as error:
            raise UnreachableError("watch", self.where, f"data that is not an object: {error}") from error

    def _failed(self, error: ClusterError) -> float:
        """Record a failure, and return how long to wait."""
        kind, retry_after_s = "access", 0.0
        if isinstance(error, RequestError):
            kind, retry_after_s = str(error.status or "unreachable"), error.retry_after_s or 0.0
        self.state.failures[kind] += 1
        self._record_failure(str(error))
        self.state.missing_permission = str(error) if isinstance(error, ForbiddenError) else ""
        # A proxy may ask for an hour, and recovery would go unnoticed until then.
        return max(self._backoff.record_failure(self._clock.now()), min(retry_after_s, LONGEST_S))

    def _consequence(self, error: ClusterError) -> Relist | None:
        """Return the list that a failed watch requires, or None."""
        if isinstance(error, GoneError):
            return Relist.EXPIRED
        if not isinstance(error, RequestError) or error.status in _PASSING:
            return None
        if error.status < 500:
            return Relist.REFUSED
        return Relist.FAILING if self._backoff.failures % _FAILURES == 0 else None
