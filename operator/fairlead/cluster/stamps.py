"""When labels and annotations of a node became so, as this process saw it.

Only what changed before its eyes has a stamp. All else was so when the node was first seen, and counts from the
creation of the node: a restart puts no node on hold.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fairlead.strategies.facts import Stamped
from fairlead.strategies.reads import ANNOTATIONS, LABELS, Path


class _Stamp(NamedTuple):
    came: int | None  # None: it was there already
    valued: int


_WHERE: Final[Mapping[Path, Stamped]] = {LABELS: "labels", ANNOTATIONS: "annotations"}


class Stamps:
    """The stamps of one state of a node; never changed once made."""

    __slots__ = ("_node", "_stamps")

    def __init__(self, node: Any, stamps: Mapping[tuple[Stamped, str], _Stamp] | None = None) -> None:
        self._node = node
        self._stamps = stamps or {}

    def after(self, node: Any, changes: Iterable[Path], now: int) -> "Stamps":
        """The stamps of the state that follows, which differs in these paths."""
        stamps = dict(self._stamps)
        for path in changes:
            where = _WHERE.get(path[:2])
            if where is None:
                continue
            key = path[2]
            if key not in getattr(node.metadata, where):
                stamps.pop((where, key), None)
            elif key not in getattr(self._node.metadata, where):
                stamps[where, key] = _Stamp(now, now)
            else:
                before = stamps.get((where, key))
                stamps[where, key] = _Stamp(before and before.came, now)
        return Stamps(node, stamps)

    def get(self, asked: tuple[Stamped, str, str | None], /) -> int | None:
        """When the key got this value, or with None when it came; None when that is not so now."""
        where, key, value = asked
        metadata = self._node.metadata
        found = getattr(metadata, where).get(key)
        if found is None or value not in (None, found):
            return None
        created: int | None = metadata.creationTimestamp
        stamp = self._stamps.get((where, key))
        if stamp is None:
            return created
        moment = stamp.came if value is None else stamp.valued
        return created if moment is None else moment
