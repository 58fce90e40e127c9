"""A list and a watch that keep a sink equal to what the API server has.

List everything, then watch from the list's version; a watch that ends is followed by another from where it got to.
When that version is no longer known everything is listed again, and what the list does not name is removed. No delete
is ever lost: each is either an event that was heard, or missing from a list.
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
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.http.retry import LONGEST_S, Backoff
from fairlead.kube.resources import ObjectRef, Page
from fairlead.kube.watch import store
from fairlead.kube.watch.reflector_status import SILENT_S, ReflectorStatus, Relist
from fairlead.kube.watch.store import Key, ObjectVersion, Sink, Store
from fairlead.kube.watch.verify import differences

T = TypeVar("T", bound=store.Identified)
WATCH_S: Final = 240
WATCH_JITTER_S: Final = 60

SILENT_JITTER_S: Final = 15.0
SHORT_S: Final = 1.0
_SLICE: Final = 50  # items that are decoded and put before anybody else has a turn
_FAILURES: Final = 5  # of the API server itself in a row, before everything is listed
_SILENCES: Final = 2
_NONE: Final[Mapping[str, str]] = {}
_log: Final = logging.getLogger(__name__)
_page: Final = msgspec.json.Decoder(Page[msgspec.Raw])
_ANEW: Final = frozenset({Relist.ASKED, Relist.DIFFERS, Relist.REFUSED, Relist.FAILING})
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, NotImplementedError, RecursionError)
_PASSING: Final = frozenset({0, 401, 403, 408, 429})  # they say nothing of the version; 0 is no answer


class Reflector(Generic[T]):
    """Keeps one sink. `run` is a task of its own; everything else is for those beside it."""

    def __init__(
        self,
        client: Client,
        where: ObjectRef,
        *,
        decode: Callable[[msgspec.Raw], T],
        sink: Sink[T],
        query: Mapping[str, str] = _NONE,
        clock: Clock | None = None,
    ) -> None:
        """`query` is what limits the objects: a `fieldSelector`, a `labelSelector`."""
        self.where = where
        self.state = ReflectorStatus()
        self._client = client
        self._decode = decode
        self._query = query
        self._clock = clock or Clock()
        self._held = Store(sink, store.identify)
        self._backoff = Backoff(self._clock.random)
        self._version = ""
        self._asked = asyncio.Event()
        self._listed = asyncio.Event()
        self._why = Relist.ASKED
        self._silences = 0
        self._lines = 0

    @property
    def objects(self) -> Mapping[Key, ObjectVersion]:
        """What is held."""
        return self._held.stamps

    def staleness(self) -> float:
        """Return for how long what is held may be behind what there is; infinite before the first list."""
        return self.state.staleness(self._clock.now())

    def relist(self, why: Relist = Relist.ASKED) -> None:
        """List everything soon, and put every object once more."""
        self._why = why
        self._asked.set()
        self._listed.clear()

    async def listed(self) -> None:
        """Wait until everything is listed that has to be."""
        await self._listed.wait()

    async def check(self) -> int:
        """How many objects are held otherwise than they are. If there are any, everything is listed."""
        found = await differences(self._client, self.where, self._query, self.objects, self._clock)
        if found:
            self.state.differences += len(found)
            _log.warning("reflector.differs", extra={"resource": str(self.where), "objects": sorted(found)[:10]})
            self.relist(Relist.DIFFERS)
        return len(found)

    async def run(self) -> NoReturn:
        """Until it is cancelled."""
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
        self._held.begin(anew=why in _ANEW or self._asked.is_set())
        self._asked.clear()
        version = ""
        async with aclosing(self._client.pages(self.where, _page.decode, query=self._query)) as pages:
            async for page in pages:
                version = version or page.metadata.resource_version
                await self._take(page.items or [])
                self._mark_contact()
        while self._held.sweep(_SLICE):
            await asyncio.sleep(0)
        self._held.end()
        self._version = version
        self.state.synced = True
        if not self._asked.is_set():
            self._listed.set()

    async def _take(self, items: list[msgspec.Raw]) -> None:
        for start in range(0, len(items), _SLICE):
            for raw in items[start : start + _SLICE]:
                try:
                    self._held.list(self._decode(raw))
                except _UNREADABLE as error:
                    self._held.skip(self._unreadable(raw, error)[0])
            await asyncio.sleep(0)

    async def _watch(self) -> Relist | None:
        """One watch, to its end; why everything has to be listed then."""
        if self._asked.is_set():
            return self._why
        begun, lines = self._clock.now(), self._lines
        reader, silence, asked = tasks = (
            asyncio.ensure_future(self._read()),
            asyncio.ensure_future(self._silence(begun)),
            asyncio.ensure_future(self._asked.wait()),
        )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        heard = self._lines != lines
        if reader in done:
            reader.result()
            if not heard and self._clock.now() - begun < SHORT_S:
                raise UnreachableError("watch", self.where, "it ended as soon as it had begun")
            return None
        if asked in done:
            return self._why
        silence.result()
        self.state.failures["silent"] += 1
        self._record_failure(f"watch {self.where}: nothing was heard for more than {SILENT_S:g} s")
        self._silences = 0 if heard else self._silences + 1
        return Relist.SILENT if self._silences >= _SILENCES else None

    async def _read(self) -> None:
        query = {
            **self._query,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S + int(WATCH_JITTER_S * self._clock.random())),
        }
        async with aclosing(self._client.watch(self.where, query)) as lines:
            async for line in lines:
                self._handle_line(line)
                self._lines += 1
                self._mark_contact()

    def _handle_line(self, line: bytes) -> None:
        try:
            event = store.watch_event.decode(line)
        except msgspec.DecodeError as error:
            raise UnreachableError("watch", self.where, f"a line that is no event: {error}") from error
        self.state.events[event.type] += 1
        if event.type == "ERROR":
            raise refusal("watch", self.where, status_of(event.object).code, bytes(event.object))
        if event.type in ("ADDED", "MODIFIED"):
            try:
                stamp = self._held.put(self._decode(event.object))
            except _UNREADABLE as error:
                _, stamp = self._unreadable(event.object, error)
        else:
            key, stamp = self._known(event.object)
            if event.type == "DELETED":
                self._held.gone(key, stamp.uid)
        self._version = stamp.version or self._version  # a watch from no version would not tell of deletes

    async def _silence(self, begun: float) -> None:
        """Ends when nothing was heard for too long."""
        clock = self._clock
        longest = SILENT_S + SILENT_JITTER_S * clock.random()
        while (left := max(begun, self.state.last_contact or begun) + longest - clock.now()) > 0:
            await clock.sleep(left)

    def _mark_contact(self) -> None:
        now = self._clock.now()
        self.state.last_contact = now
        if self.state.last_error:
            self.state.last_error = self.state.missing_permission = ""
            _log.info("reflector.well", extra={"resource": str(self.where)})
        self._backoff.well(now)

    def _record_failure(self, what: str) -> None:
        """Said when it begins; that it lasts is no news."""
        level = logging.DEBUG if what == self.state.last_error else logging.WARNING
        _log.log(level, "reflector.failed", extra={"resource": str(self.where), "error": what})
        self.state.last_error = what

    def _unreadable(self, raw: msgspec.Raw, error: Exception) -> tuple[Key, ObjectVersion]:
        """What is held of it stays as it was: one bad object must not keep us from all the others."""
        key, stamp = self._known(raw)
        self.state.unreadable += 1
        # the decoder's words have no value of the object in them; those of others may
        why = str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
        _log.error("reflector.unreadable", extra={"resource": str(self.where), "object": key, "error": why})
        return key, stamp

    def _known(self, raw: msgspec.Raw) -> tuple[Key, ObjectVersion]:
        try:
            return store.identify(store.partial_object.decode(raw))
        except msgspec.DecodeError as error:
            raise UnreachableError("watch", self.where, f"what is no object: {error}") from error

    def _failed(self, error: ClusterError) -> float:
        """Note it; how long to wait."""
        kind, told = "access", 0.0
        if isinstance(error, RequestError):
            kind, told = str(error.status or "unreachable"), error.retry_after_s or 0.0
        self.state.failures[kind] += 1
        self._record_failure(str(error))
        self.state.missing_permission = str(error) if isinstance(error, ForbiddenError) else ""
        # Who is in between may ask for an hour: nobody knows before it is over that all is well again.
        return max(self._backoff.failed(self._clock.now()), min(told, LONGEST_S))

    def _consequence(self, error: ClusterError) -> Relist | None:
        """What a watch that failed means for what is held."""
        if isinstance(error, GoneError):
            return Relist.EXPIRED
        if not isinstance(error, RequestError) or error.status in _PASSING:
            return None
        if error.status < 500:
            return Relist.REFUSED
        return Relist.FAILING if self._backoff.failures % _FAILURES == 0 else None
