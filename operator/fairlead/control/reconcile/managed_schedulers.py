"""Which schedulers were ever managed: whoever placed pods for a name that is not among them is somebody else.

The leader alone writes it, and need not read what it has written. Those that are gone stay in it while pods name
them.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Key, Meta
from fairlead.render.object_names import MANAGER

NAME: Final = "fairlead-schedulers"
GONE: Final = "gone since "
"""What is said of one of which nothing is left begins so."""
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: dict[str, str] = {}


def is_gone(said: str) -> bool:
    """Whether nothing is left of one of which this is said."""
    return said.startswith(GONE)


class ManagedSchedulersSink:
    """What the leader's ConfigMap says."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Those of which something may be there."""

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, item: _ConfigMap, /) -> None:
        """It came or became different."""
        self.names = frozenset(name for name, said in item.data.items() if not is_gone(said))

    def remove(self, _: Key, /) -> None:
        """Somebody has deleted it: who could call goes on."""


def watch_managed_schedulers(client: Client, namespace: str, ever: ManagedSchedulersSink) -> Reflector[_ConfigMap]:
    """Keeps it told."""
    query = {"fieldSelector": f"metadata.name={NAME}"}
    decode = msgspec.json.Decoder(_ConfigMap).decode
    return Reflector(client, ObjectRef(CONFIG_MAPS, namespace), decode=decode, sink=ever, query=query)


MOST: Final = 1000
"""Names; a ConfigMap holds 1 MiB, and each takes about a hundred bytes."""
KEPT: Final = timedelta(hours=1)
"""For so long one that is gone is remembered though no pod names it: its pods may come again."""
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True, eq=False)
class ManagedSchedulers:
    """A ConfigMap that outlives them."""

    objects: ObjectClient
    namespace: str
    _held: dict[str, str] = field(default_factory=dict)
    _is_read: bool = False
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> None:
        """Know what it says, if that is not known."""
        async with self._busy:
            await self._read()

    def forget(self) -> None:
        """Somebody may have edited it: it is read when it is needed again."""
        self._is_read = False

    def __contains__(self, scheduler: str) -> bool:
        """Whether this one was ever managed."""
        return scheduler in self._held

    @property
    def there(self) -> frozenset[str]:
        """Those of which something may be there."""
        return frozenset(name for name, said in self._held.items() if not is_gone(said))

    async def note(self, scheduler: str, now: datetime) -> None:
        """It is there from now on. Raises InvalidObjectError where no more can be."""
        async with self._busy:
            await self._read()
            changes: dict[str, str | None] = {scheduler: now.isoformat(timespec="seconds")}
            if scheduler not in self._held and len(self._held) >= MOST:
                changes[self._oldest()] = None
            await self._write(changes)

    async def gone(self, scheduler: str, now: datetime) -> None:
        """Nothing is left of it."""
        async with self._busy:
            await self._write({scheduler: GONE + now.isoformat(timespec="seconds")})

    async def drop(self, scheduler: str) -> None:
        """Nobody needs to know of it any more."""
        async with self._busy:
            if is_gone(self._held.get(scheduler, "")):
                await self._write({scheduler: None})

    def gone_since(self, scheduler: str) -> datetime | None:
        """Since when nothing is left of it; None if it is there, was never, or nobody can read the time."""
        said = self._held.get(scheduler, "")
        return _when(said) if is_gone(said) else None

    def outdated(self, now: datetime) -> Sequence[str]:
        """Those that are gone for long enough, and whose time nobody can read."""
        return [name for name, said in self._held.items() if is_gone(said) and not _is_new(said, now)]

    def _oldest(self) -> str:
        gone = [(said, name) for name, said in self._held.items() if is_gone(said)]
        if not gone:
            raise InvalidObjectError([FieldError(("schedulers",), f"{MOST} schedulers exist, which is the maximum")])
        return min(gone)[1]

    async def _read(self) -> None:
        if not self._is_read:
            found = await self.objects.get(ObjectRef(resource("ConfigMap"), self.namespace, NAME))
            data: Mapping[str, str] = (found or {}).get("data") or {}
            self._held = {name: said for name, said in data.items() if _NAME.fullmatch(name)}
            self._is_read = True

    async def _write(self, changes: Mapping[str, str | None]) -> None:
        at = ObjectRef(resource("ConfigMap"), self.namespace, NAME)
        data = {name: said for name, said in {**self._held, **changes}.items() if said is not None}
        try:
            await self.objects.client.merge(at, {"data": changes}, _decode)
        except NotFoundError:
            labels = {"app.kubernetes.io/managed-by": MANAGER}
            metadata = {"name": NAME, "namespace": self.namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self.objects.client.create(ObjectRef(resource("ConfigMap"), self.namespace), body, _decode)
        self._held = data


def _is_new(said: str, now: datetime) -> bool:
    try:
        return (when := _when(said)) is not None and now < when + KEPT
    except OverflowError:
        return False


def _when(said: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(said.removeprefix(GONE))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
