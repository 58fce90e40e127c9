"""ConfigMap `fairlead-schedulers`: the name of every scheduler that this operator has managed.

A name that has placed pods and is not listed belongs to someone else and is never taken over. Only the leader writes
the ConfigMap, and need not read back what it wrote. Names of deleted schedulers stay while pods name them.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.documents import Document, Format
from fairlead.kube.errors import ConflictError
from fairlead.kube.http.client import Client
from fairlead.kube.http.document_writer import DocumentFaultError, write_document
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.render.object_names import MANAGER

LOG: Final = logging.getLogger(__name__)
NAME: Final = "fairlead-schedulers"
GONE: Final = "gone since "
"""Prefix of the value of a scheduler that is gone."""
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")


class _Metadata(Meta, frozen=True):
    annotations: Mapping[str, str] = {}


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    data: dict[str, str] = {}


def is_gone(value: str) -> bool:
    """Return whether a value says that the scheduler is gone."""
    return value.startswith(GONE)


def _names(data: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in data.items() if _NAME.fullmatch(name)}


RECORD: Final = Format(
    "the record of managed schedulers",
    _names,
    "delete it, and schedulers without policies are no longer known as Fairlead's",
)


class ManagedSchedulersSink(EventSink):
    """Names in the ConfigMap, as a replica watches it."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Names of the schedulers that may exist."""

    def put(self, item: _ConfigMap, /) -> None:
        """Take the names of a ConfigMap that was added or changed; one of a newer version changes nothing."""
        meta = item.metadata
        found = RECORD.read_data(f"ConfigMap {meta.name}", item.data, meta.annotations, meta.resourceVersion)
        if found.value is None:
            LOG.warning("managed_schedulers.left_alone", extra={"error": found.fault})
        else:
            self.names = frozenset(name for name, value in found.value.items() if not is_gone(value))

    def remove(self, _: Key, /) -> None:
        """Ignore the deletion of the ConfigMap: schedulers may call as before."""


def watch_managed_schedulers(client: Client, namespace: str, sink: ManagedSchedulersSink) -> Reflector[_ConfigMap]:
    """Return a watch of the ConfigMap that feeds the sink."""
    query = {"fieldSelector": f"metadata.name={NAME}"}
    decode = msgspec.json.Decoder(_ConfigMap).decode
    return Reflector(client, ObjectRef(CONFIG_MAPS, namespace), decode=decode, sink=sink, query=query)


NAMES_MAX: Final = 1000
"""Maximum number of names; a ConfigMap holds 1 MiB, and each name takes about a hundred bytes."""
KEEP_FOR: Final = timedelta(hours=1)
"""How long the name of a deleted scheduler is kept although no pod names it: its pods may be created again."""
_TRIES: Final = 3
"""Writes until one meets the version that was read."""


@dataclass(slots=True, eq=False)
class ManagedSchedulers:
    """Record of the managed schedulers, as the leader reads and writes it."""

    objects: ObjectClient
    namespace: str
    _held: dict[str, str] = field(default_factory=dict)
    _document: Document[dict[str, str]] | None = None
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> None:
        """Read the ConfigMap unless it is cached. Raises DocumentFaultError if it is left alone."""
        async with self._busy:
            await self._read()

    def forget(self) -> None:
        """Drop the cache, because others may have edited the ConfigMap."""
        self._document = None

    def __contains__(self, scheduler: str) -> bool:
        """Return whether a scheduler was ever managed."""
        return scheduler in self._held

    @property
    def existing(self) -> frozenset[str]:
        """Names of the schedulers that may exist."""
        return frozenset(name for name, value in self._held.items() if not is_gone(value))

    async def record(self, scheduler: str, now: datetime) -> None:
        """Record that a scheduler exists from now on. Raises InvalidObjectError if there are too many."""
        async with self._busy:
            await self._read()
            changes: dict[str, str | None] = {scheduler: now.isoformat(timespec="seconds")}
            if scheduler not in self._held and len(self._held) >= NAMES_MAX:
                changes[self._oldest()] = None
            await self._write(changes)

    async def record_gone(self, scheduler: str, now: datetime) -> None:
        """Record that a scheduler is gone."""
        async with self._busy:
            await self._write({scheduler: GONE + now.isoformat(timespec="seconds")})

    async def drop(self, scheduler: str) -> None:
        """Remove the name of a scheduler that is gone."""
        async with self._busy:
            if is_gone(self._held.get(scheduler, "")):
                await self._write({scheduler: None})

    def gone_since(self, scheduler: str) -> datetime | None:
        """Return since when a scheduler is gone; None if it exists, never existed, or the time is unreadable."""
        value = self._held.get(scheduler, "")
        return _when(value) if is_gone(value) else None

    def find_expired(self, now: datetime) -> Sequence[str]:
        """Return the schedulers that are gone for long enough, or whose time is unreadable."""
        return [name for name, value in self._held.items() if is_gone(value) and not _is_new(value, now)]

    def _oldest(self) -> str:
        gone = [(value, name) for name, value in self._held.items() if is_gone(value)]
        if not gone:
            raise InvalidObjectError(
                [FieldError(("schedulers",), f"{NAMES_MAX} schedulers exist, which is the maximum")]
            )
        return min(gone)[1]

    async def _read(self) -> None:
        if self._document is None:
            found = RECORD.read(await self.objects.get(self._where))
            if found.fault:
                raise DocumentFaultError(found.fault)
            self._document, self._held = found, found.value or {}

    async def _write(self, changes: Mapping[str, str | None]) -> None:
        """Write changes of single names: others may have edited the ConfigMap since it was read."""
        for left in reversed(range(_TRIES)):
            await self._read()
            data = {name: value for name, value in {**self._held, **changes}.items() if value is not None}
            labels = {"app.kubernetes.io/managed-by": MANAGER}
            metadata = {"name": NAME, "namespace": self.namespace, "labels": labels}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            try:
                before = self._document or Document()
                made = await write_document(self.objects.client, RECORD, before, obj, self._where, changes=changes)
            except ConflictError:
                self._document = None
                if not left:
                    raise
            else:
                self._document, self._held = RECORD.read(made), data
                return

    @property
    def _where(self) -> ObjectRef:
        return ObjectRef(resource("ConfigMap"), self.namespace, NAME)


def _is_new(value: str, now: datetime) -> bool:
    try:
        return (when := _when(value)) is not None and now < when + KEEP_FOR
    except OverflowError:
        return False


def _when(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value.removeprefix(GONE))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
