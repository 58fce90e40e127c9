"""What a watch says, line by line: decoded in two steps, because only the first says what the second is."""

from typing import Final

import msgspec

from fairlead.cluster.held import Key, Stamp


class Event(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """Of any object, the part that says which it is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Known(msgspec.Struct, frozen=True):
    """Any object, as far as it can be told from others."""

    metadata: Meta = Meta()


event: Final = msgspec.json.Decoder(Event)
known: Final = msgspec.json.Decoder(Known)


def identify(one: Known) -> tuple[Key, Stamp]:
    """Which object, as of when."""
    meta = one.metadata
    return (meta.namespace, meta.name), Stamp(meta.uid, meta.resource_version)
