"""What a watch says, line by line: decoded in two steps, because only the first says what the second is."""

from typing import Final, Protocol

import msgspec

from fairlead.cluster.held import Key, Stamp


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


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815


class Known(msgspec.Struct, frozen=True):
    """Any object, as far as it can be told from others."""

    metadata: _Meta = _Meta()


event: Final = msgspec.json.Decoder(Event)
known: Final = msgspec.json.Decoder(Known)


def identify(one: Identified) -> tuple[Key, Stamp]:
    """Which object, as of when."""
    meta = one.metadata
    return (meta.namespace, meta.name), Stamp(meta.uid, meta.resourceVersion)
