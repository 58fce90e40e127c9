"""What a reflector holds: which objects, and as of which version. Pure: it tells its sink what came and went.

A list is marked and swept: what it does not name has been deleted while nobody watched, and the sink is told so.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

import msgspec

Key = tuple[str, str]
"""What an object is called: namespace and name."""


class ObjectVersion(msgspec.Struct, frozen=True, gc=False):
    """Which object it is that is called so, and as of when: another of the same name has another uid."""

    uid: str
    version: str


class Event(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class Metadata(Protocol):
    """Of any object, the part that says which it is; called as in the API."""

    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def resourceVersion(self) -> str: ...  # noqa: D102, N802


class Identified(Protocol):
    """Any object, however it was decoded."""

    @property
    def metadata(self) -> Metadata: ...  # noqa: D102


class Meta(msgspec.Struct, frozen=True):
    """Which object it is; called as in the API."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815


class PartialObject(msgspec.Struct, frozen=True):
    """Any object, as far as it can be told from others."""

    metadata: Meta = Meta()


watch_event: Final = msgspec.json.Decoder(Event)
partial_object: Final = msgspec.json.Decoder(PartialObject)


def identify(one: Identified) -> tuple[Key, ObjectVersion]:
    """Which object, as of when."""
    meta = one.metadata
    return (meta.namespace, meta.name), ObjectVersion(meta.uid, meta.resourceVersion)


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Who wants to know. Never waits: it is called between one event and the next."""

    def begin(self) -> None:
        """A list begins. What is held holds on until it is told otherwise; it may begin again before it ends."""

    def put(self, item: T_contra, /) -> None:
        """An object came or became different."""

    def remove(self, key: Key, /) -> None:
        """An object went. One of the same name that comes after it is another one."""

    def end(self) -> None:
        """The list is complete: what is held is what there is."""


class Store(Generic[T]):
    """The objects that the sink has been told of."""

    def __init__(self, sink: Sink[T], identify: Callable[[T], tuple[Key, ObjectVersion]]) -> None:
        self._sink: Final = sink
        self._identify: Final = identify
        self._stamps: dict[Key, ObjectVersion] = {}
        self._unlisted: set[Key] = set()
        self._anew = False

    @property
    def stamps(self) -> Mapping[Key, ObjectVersion]:
        """What there is."""
        return self._stamps

    def begin(self, *, anew: bool) -> None:
        """A list begins; `anew` puts also what is held as it is, because the sink wants to see it again."""
        self._unlisted = set(self._stamps)
        self._anew = self._anew or anew  # it may be one that was broken off, and begins again
        self._sink.begin()

    def list(self, item: T) -> None:
        """An object of the list."""
        key, stamp = self._identify(item)
        self._unlisted.discard(key)
        self._put(item, key, stamp, anew=self._anew)

    def skip(self, key: Key) -> None:
        """An object of the list that cannot be read: what is held of it stays."""
        self._unlisted.discard(key)

    def sweep(self, most: int) -> bool:
        """Remove so many of what the list has not named; whether there is more."""
        for key in [*islice(self._unlisted, most)]:
            self._unlisted.discard(key)
            self._remove(key)
        return bool(self._unlisted)

    def end(self) -> None:
        """The list is complete, and what it has not named was swept."""
        self._anew = False
        self._sink.end()

    def put(self, item: T) -> ObjectVersion:
        """An object came or changed; which it is now."""
        key, stamp = self._identify(item)
        self._put(item, key, stamp, anew=False)
        return stamp

    def gone(self, key: Key, uid: str) -> None:
        """An object was deleted. One of the same name that is held by now stays."""
        held = self._stamps.get(key)
        if held and held.uid == uid:
            self._remove(key)

    def _put(self, item: T, key: Key, stamp: ObjectVersion, *, anew: bool) -> None:
        held = self._stamps.get(key)
        if held == stamp and not anew:
            return
        if held and held.uid != stamp.uid:
            self._remove(key)
        self._sink.put(item)  # one that cannot be taken is not held
        self._stamps[key] = stamp

    def _remove(self, key: Key) -> None:
        del self._stamps[key]
        self._sink.remove(key)
