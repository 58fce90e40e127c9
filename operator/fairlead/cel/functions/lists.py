"""Functions of lists, and of lists as sets. Elements are compared as the language compares."""

from collections.abc import Sequence
from typing import Any, Final

from fairlead.cel.errors import Abort, CelError, Kind
from fairlead.cel.functions.equality import contains, type_of
from fairlead.cel.functions.sorting import sorted_indices
from fairlead.cel.values import NONE, Duration, Nothing, Some, Timestamp, TypeName, UInt

Values = Sequence[Any]

RANGE_MAX: Final = 20_000
"""The longest range, twice what a loop goes through: the engine would make any, whatever memory it takes."""

_SORTABLE: Final = frozenset({int, UInt, float, bool, str, bytes, Timestamp, Duration})
_HASHABLE: Final = (_SORTABLE - {float}) | {TypeName}  # a NaN differs from itself


def add_list(left: Values, right: Values) -> list[Any]:
    """Put one after the other."""
    return [*left, *right]


def list_range(end: int) -> list[int]:
    """Count from 0 up to an end, which is not in it; the engine gives up below zero."""
    if not 0 <= end <= RANGE_MAX:
        raise Abort(Kind.LIMIT, f"lists.range({end}): out of 0..{RANGE_MAX}")
    return list(range(end))


def list_slice(values: Values, start: int, end: int) -> Values:
    """Get what is between two positions."""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif end > len(values):
        problem = f"list is length {len(values)}"
    else:
        return values[start:end]
    raise CelError(Kind.ARGUMENT, f"cannot slice({start}, {end}), {problem}")


def list_flatten(values: Values) -> list[Any]:
    """Replace the lists in it by their elements."""
    return list_flatten_int(values, 1)


def list_flatten_int(values: Values, depth: int) -> list[Any]:
    """Replace the lists in it by their elements, and so on downwards."""
    if depth < 0:
        raise CelError(Kind.ARGUMENT, "flatten(): level must be non-negative")
    if depth == 0:
        return list(values)
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple):
            flat.extend(list_flatten_int(value, depth - 1))
        else:
            flat.append(value)
    return flat


def list_distinct(values: Values) -> list[Any]:
    """Keep the first of equals."""
    if are_hashable(values):
        return list(dict.fromkeys(values))
    seen: list[Any] = []
    for value in values:
        if not contains(seen, value):
            seen.append(value)
    return seen


def list_reverse(values: Values) -> Values:
    """Reverse the order."""
    return values[::-1]


def list_first(values: Values) -> Some | Nothing:
    """Get the first element, if there is one."""
    return Some(values[0]) if values else NONE


def list_last(values: Values) -> Some | Nothing:
    """Get the last element, if there is one."""
    return Some(values[-1]) if values else NONE


def list_sort(values: Values) -> list[Any]:
    """Sort ascending."""
    _require_sortable(values)
    if len(values) < 2:
        return list(values)
    return [values[index] for index in sorted_indices(values, ties_show=values[0].__class__ is float)]


def list_sort_by_associated_keys(values: Values, keys: Values) -> list[Any]:
    """Sort by keys, each at the position of its value; what `sortBy` becomes."""
    _require_sortable(keys)
    if len(keys) < 2:
        return list(values)
    return [values[index] for index in sorted_indices(keys, ties_show=True)]


def list_sets_contains_list(values: Values, wanted: Values) -> bool:
    """Decide whether each of the second is among the first."""
    if are_hashable(values, wanted):
        return set(values).issuperset(wanted)
    return all(contains(values, value) for value in wanted)


def list_sets_equivalent_list(left: Values, right: Values) -> bool:
    """Decide whether each of either is among the other."""
    return list_sets_contains_list(left, right) and list_sets_contains_list(right, left)


def list_sets_intersects_list(left: Values, right: Values) -> bool:
    """Decide whether any of one is among the other."""
    if are_hashable(left, right):
        return not set(left).isdisjoint(right)
    return any(contains(right, value) for value in left)


def are_hashable(*lists: Values) -> bool:
    """Decide whether all elements are of one class whose equality is that of Python."""
    kinds = {kind for values in lists for kind in set(map(type, values))}
    return len(kinds) <= 1 and kinds <= _HASHABLE


def _require_sortable(keys: Values) -> None:
    if keys and keys[0].__class__ not in _SORTABLE:
        raise CelError(Kind.ARGUMENT, f"sort(): unsupported type {type_of(keys[0])}")
    if len(set(map(type, keys))) > 1:
        raise CelError(Kind.ARGUMENT, "sort(): list elements must have the same type")
