"""ConfigMap `fairlead-schedulers`: the name of every scheduler that this operator has managed.

A name that has placed pods and is not listed belongs to someone else and is never taken over. Only the leader writes
the ConfigMap, and need not read back what it wrote. Names of deleted schedulers stay while pods name them.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource, decode_object
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.render.object_names import MANAGER

NAME: Final = "fairlead-schedulers"
GONE: Final = "gone since "
"""Prefix of the value of a scheduler that is gone."""
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: dict[str, str] = {}


def is_gone(value: str) -> bool:
    """Return whether a value says that the scheduler is gone."""
    return value.startswith(GONE)


class ManagedSchedulersSink(EventSink):
    """Names in the ConfigMap, as a replica watches it."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Names of the schedulers that may exist."""

    def put(self, item: _ConfigMap, /) -> None:
        """Take the names of a ConfigMap that was added or changed."""
        self.names = frozenset(name for name, value in item.data.items() if not is_gone(value))

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
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(slots=True, eq=False)
class ManagedSchedulers:
    """Record of the managed schedulers, as the leader reads and writes it."""

    objects: ObjectClient
    namespace: str
    _held: dict[str, str] = field(default_factory=dict)
    _is_read: bool = False
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> None:
        """Read the ConfigMap unless it is cached."""
        async with self._busy:
            await self._read()

    def forget(self) -> None:
        """Drop the cache, because others may have edited the ConfigMap."""
        self._is_read = False

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

    def expired(self, now: datetime) -> Sequence[str]:
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
        if not self._is_read:
            found = await self.objects.get(ObjectRef(resource("ConfigMap"), self.namespace, NAME))
            data: Mapping[str, str] = (found or {}).get("data") or {}
            self._held = {name: value for name, value in data.items() if _NAME.fullmatch(name)}
            self._is_read = True

    async def _write(self, changes: Mapping[str, str | None]) -> None:
        at = ObjectRef(resource("ConfigMap"), self.namespace, NAME)
        data = {name: value for name, value in {**self._held, **changes}.items() if value is not None}
        try:
            await self.objects.client.merge(at, {"data": changes}, decode_object)
        except NotFoundError:
            labels = {"app.kubernetes.io/managed-by": MANAGER}
            metadata = {"name": NAME, "namespace": self.namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self.objects.client.create(ObjectRef(resource("ConfigMap"), self.namespace), body, decode_object)
        self._held = data


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
