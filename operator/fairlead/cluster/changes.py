"""Which fields of a node became different, as deep as rules name them."""

from typing import Any, Final

from fairlead.cel.messages import empty, is_present
from fairlead.cel.schema import NODE, element, messages
from fairlead.strategies.reads import CONDITIONS, Path


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
