"""Node as its list and watch bring it, which is decoded in full only if more than a heartbeat changed.

A heartbeat repeats all of a node but its version, the times of its conditions and who wrote them when. Finding that out
field by field costs more than the rest together, since the last state is in no cache of the processor by then: so bytes
are compared, of which a hash is kept.
"""

from itertools import compress, product
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fairlead.cel.values.structs import NO_TEXT
from fairlead.cel.values.value_types import Timestamp
from fairlead.mirror import decode
from fairlead.mirror.node_changes import HEARTBEAT
from fairlead.strategies.reads import NodeChange, Path

_VERSION: Final = b'"resourceVersion":"%b"'
_TIME: Final = b'"lastHeartbeatTime":"'
_QUOTE: Final = b'"'


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = NO_TEXT
    namespace: str = NO_TEXT
    uid: str = NO_TEXT
    resourceVersion: str = NO_TEXT  # noqa: N815 - as in the API
    managedFields: msgspec.Raw = decode.NOTHING  # noqa: N815


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: msgspec.Raw = decode.NOTHING


class _Node(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class _Heartbeat(msgspec.Struct, frozen=True, gc=False):
    lastHeartbeatTime: Timestamp | None = None  # noqa: N815


_node: Final = decode.Decoder(_Node)
_heartbeats: Final = decode.Decoder(list[_Heartbeat] | None)  # type: ignore[arg-type]


class WatchedNode:
    """A node, decoded as far as a heartbeat changes it."""

    __slots__ = ("_conditions", "_raw", "metadata", "settled")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        """Raise what `Decoder` raises."""
        parts = _node(raw)
        self.metadata: Final = parts.metadata
        self._conditions: Final = bytes(parts.status.conditions)
        self._raw = text = bytes(raw)
        version = _VERSION % parts.metadata.resourceVersion.encode()
        rest = list[bytes]()
        for changing in (version, bytes(parts.metadata.managedFields), self._conditions):
            before, found, text = text.partition(changing) if changing else (b"", b"", text)
            rest += before, found[:1]
        for at, part in enumerate(self._conditions.split(_TIME)):
            rest.append(part[part.find(_QUOTE) :] if at else part)
        self.settled: Final = hash(b"\0".join([*rest, text]))
        """Hash of all that a heartbeat leaves as it is; of the same kind as that of images, for the same reasons."""

    def decode(self) -> Any:
        """Return the node, with its images undecoded. Raises what `Decoder` raises."""
        return decode.watched_node(self._raw)

    def after(self, before: Any) -> tuple[Any, NodeChange]:
        """Return the node after a heartbeat, and what changed; `before` had the same hash, and so all the rest."""
        version, conditions = self.metadata.resourceVersion, before.status.conditions
        times = [one.lastHeartbeatTime for one in _heartbeats(self._conditions) or ()] if self._conditions else []
        has_new_times = [one.lastHeartbeatTime for one in conditions] != times
        if has_new_times:
            conditions = tuple(map(_at, conditions, times))
        metadata = replace(before.metadata, resourceVersion=version)
        status = replace(before.status, conditions=conditions)
        change = _CHANGES[version != before.metadata.resourceVersion, has_new_times]
        return replace(before, metadata=metadata, status=status), change


def _at(condition: Any, time: Timestamp | None) -> Any:
    return replace(condition, lastHeartbeatTime=time)


_PATHS: Final[tuple[Path, Path]] = ("metadata", "resourceVersion"), HEARTBEAT
_CHANGES: Final = {
    which: NodeChange(node=frozenset(compress(_PATHS, which))) for which in product((False, True), repeat=2)
}
"""Changes by whether the version is new, and whether times of conditions are."""
