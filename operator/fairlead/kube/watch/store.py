"""Store of a reflector: which objects exist, and in which version. Pure: it tells its sink what changed.

Lists are marked and swept: an object that a list does not name was deleted while no watch ran, and is removed.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

import msgspec

Key = tuple[str, str]
"""Namespace and name of an object."""


class ObjectVersion(msgspec.Struct, frozen=True, gc=False):
    """UID and resource version of an object; another object of the same name has another UID."""

    uid: str
    version: str


class Event(msgspec.Struct, frozen=True):
    """Event of a watch."""

    type: str
    object: msgspec.Raw


class ObjectMetadata(Protocol):
    """Metadata that identifies an object, named as in the API."""

    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def resourceVersion(self) -> str: ...  # noqa: D102, N802


class Identified(Protocol):
    """Any decoded object."""

    @property
    def metadata(self) -> ObjectMetadata: ...  # noqa: D102


class Meta(msgspec.Struct, frozen=True):
    """Metadata that identifies an object, named as in the API."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815


class PartialObject(msgspec.Struct, frozen=True):
    """Any object, with its identifying metadata only."""

    metadata: Meta = Meta()


_event: Final = msgspec.json.Decoder(Event)
_BEGINS: Final = {b'{"type":"%b","object":{' % kind.encode(): kind for kind in ("MODIFIED", "ADDED", "DELETED")}
"""First bytes of a line as the API server writes it, with the type of the event."""
_BEGIN_MAX: Final = max(map(len, _BEGINS))
partial_object: Final = msgspec.json.Decoder(PartialObject)


def read_event(line: bytes) -> Event:
    """Decode a line of a watch. Raises msgspec.DecodeError.

    The object in a line that the API server writes is cut out and not read here: its decoder reads all of it, and so
    finds what is wrong.
    """
    end = line.find(b"{", 1, _BEGIN_MAX) + 1
    kind = _BEGINS.get(line[:end])
    if kind is None or not line.endswith(b"}}"):
        return _event.decode(line)
    return Event(kind, msgspec.Raw(memoryview(line)[end - 1 : -1]))


def identify(item: Identified) -> tuple[Key, ObjectVersion]:
    """Return the key and the version of an object."""
    meta = item.metadata
    return (meta.namespace, meta.name), ObjectVersion(meta.uid, meta.resourceVersion)


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Receiver of changes. Its methods never wait: they run between one event and the next."""

    def begin(self) -> None:
        """Start a list. Existing objects stay until they are removed; a list may start again before it ends."""

    def put(self, item: T_contra, /) -> None:
        """Add or update an object. Raises msgspec.DecodeError if it cannot be read, and then changes nothing."""

    def remove(self, key: Key, /) -> None:
        """Remove an object. One of the same name that comes later is a different one."""

    def end(self) -> None:
        """End a list: the sink now equals the API server."""


class EventSink:
    """Base of sinks that need not know where a list begins and ends."""

    def begin(self) -> None:
        """Ignore the start of a list."""

    def end(self) -> None:
        """Ignore the end of a list."""


class Store(Generic[T]):
    """Versions of the objects that the sink has received."""

    def __init__(self, sink: Sink[T], identify: Callable[[T], tuple[Key, ObjectVersion]]) -> None:
        self._sink: Final = sink
        self._identify: Final = identify
        self._versions: dict[Key, ObjectVersion] = {}
        self._unlisted: set[Key] = set()
        self._replay = False

    @property
    def versions(self) -> Mapping[Key, ObjectVersion]:
        """Return the versions by key."""
        return self._versions

    def begin(self, *, replay: bool) -> None:
        """Start a list; with `replay`, unchanged objects are put again too, because the sink needs them."""
        self._unlisted = set(self._versions)
        self._replay = self._replay or replay  # an aborted list may start again
        self._sink.begin()

    def list(self, item: T) -> tuple[Key, ObjectVersion]:
        """Take an object of the list, and return its key and version."""
        key, version = self._identify(item)
        self._unlisted.discard(key)
        self._put(item, key, version, replay=self._replay)
        return key, version

    def skip(self, key: Key) -> None:
        """Note an object of the list that cannot be put: its last state stays."""
        self._unlisted.discard(key)

    def sweep(self, most: int) -> bool:
        """Remove up to `most` objects that the list did not name; return whether there are more."""
        for key in [*islice(self._unlisted, most)]:
            self._unlisted.discard(key)
            self._remove(key)
        return bool(self._unlisted)

    def end(self) -> None:
        """End a list whose missing objects were swept."""
        self._replay = False
        self._sink.end()

    def put(self, item: T) -> tuple[Key, ObjectVersion]:
        """Take an object of the watch, and return its key and version."""
        key, version = self._identify(item)
        self._put(item, key, version, replay=False)
        return key, version

    def gone(self, key: Key, uid: str) -> None:
        """Remove a deleted object, unless another one has its name by now."""
        stored = self._versions.get(key)
        if stored and stored.uid == uid:
            self._remove(key)

    def _put(self, item: T, key: Key, version: ObjectVersion, *, replay: bool) -> None:
        stored = self._versions.get(key)
        if stored == version and not replay:
            return
        if stored and stored.uid != version.uid:
            self._remove(key)
        self._sink.put(item)  # an object that raises is not stored
        self._versions[key] = version

    def _remove(self, key: Key) -> None:
        del self._versions[key]
        self._sink.remove(key)
