"""Which fields of a node became different, as deep as rules name them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fairlead.cel.values.schema import NODE, element, messages
from fairlead.cel.values.structs import empty, is_present
from fairlead.strategies.facts import Stamped
from fairlead.strategies.reads import ANNOTATIONS, CONDITIONS, LABELS, Path


def node_changes(before: Any, after: Any) -> frozenset[Path]:
    """The paths of what is not the same: keys of maps, conditions by their type, else fields."""
    found: set[Path] = set()
    _compare(NODE, before, after, (), found)
    return frozenset(found)


def _compare(message: str, before: Any, after: Any, path: Path, found: set[Path]) -> None:
    for field, type_ in messages()[message].items():
        one, other = getattr(before, field), getattr(after, field)
        if one is other:
            continue
        here = (*path, field)
        if here == CONDITIONS:
            _compare_conditions(one, other, found)
        elif type_.startswith("map"):
            found.update((*here, key) for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        elif element(type_) is not None or type_ not in messages():
            if one != other or is_present(one, type_) is not is_present(other, type_):
                found.add(here)
        elif one is empty(type_) or other is empty(type_):
            found.add(here)
        else:
            _compare(type_, one, other, here, found)


_CONDITION: Final = "NodeCondition"
_HEARTBEAT: Final = "lastHeartbeatTime"


def _compare_conditions(before: Any, after: Any, found: set[Path]) -> None:
    one, other = ({condition.type: condition for condition in conditions} for conditions in (before, after))
    inner: set[Path] = set()
    for kind in one.keys() | other.keys():
        here = (*CONDITIONS, kind)
        if kind in one and kind in other:
            _compare(_CONDITION, one[kind], other[kind], here, inner)
        else:
            inner.add(here)
    # Only who reads the conditions as a list sees heartbeats: these are no change of the one or the other condition.
    found.update((*CONDITIONS, _HEARTBEAT) if path[-1] == _HEARTBEAT else path for path in inner)
    if [*one] != [*other] or len(before) != len(one) or len(after) != len(other):
        found.add(CONDITIONS)


class _Stamp(NamedTuple):
    came: int | None  # None: it was there already
    valued: int


_WHERE: Final[Mapping[Path, Stamped]] = {LABELS: "labels", ANNOTATIONS: "annotations"}


class ChangeTimes:
    """The stamps of one state of a node; never changed once made."""

    __slots__ = ("_node", "_stamps")

    def __init__(self, node: Any, stamps: Mapping[tuple[Stamped, str], _Stamp] | None = None) -> None:
        self._node = node
        self._stamps = stamps or {}

    def after(self, node: Any, changes: Iterable[Path], now: int) -> "ChangeTimes":
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
        return ChangeTimes(node, stamps)

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
