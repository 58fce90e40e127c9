"""Functions of lists, and of lists as sets. Elements are compared as CEL compares them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from fairlead.cel.values.equality import contains
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.value_types import NONE, Duration, Nothing, Some, Timestamp, TypeName, UInt

Values = Sequence[Any]

RANGE_MAX: Final = 20_000
"""The longest range, twice the loop limit: the engine would build any range, whatever memory it takes."""

_HASHABLE: Final = frozenset({int, UInt, bool, str, bytes, Timestamp, Duration, TypeName})  # a NaN differs from itself


def add_list(left: Values, right: Values) -> list[Any]:
    """Concatenate two lists."""
    return [*left, *right]


def list_range(end: int) -> list[int]:
    """Return the numbers from 0 up to an exclusive end; aborts below zero, as the engine does."""
    if not 0 <= end <= RANGE_MAX:
        raise Abort(Kind.LIMIT, f"lists.range({end}): out of 0..{RANGE_MAX}")
    return list(range(end))


def list_slice(values: Values, start: int, end: int) -> Values:
    """Return the elements from one position up to another."""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif end > len(values):
        problem = f"list is length {len(values)}"
    else:
        return values[start:end]
    raise CelError(Kind.ARGUMENT, f"cannot slice({start}, {end}), {problem}")


def list_distinct(values: Values) -> list[Any]:
    """Keep the first of equal elements."""
    if are_hashable(values):
        return list(dict.fromkeys(values))
    seen: list[Any] = []
    for value in values:
        if not contains(seen, value):
            seen.append(value)
    return seen


def list_flatten(values: Values) -> list[Any]:
    """Concatenate the lists in a list."""
    return [*chain.from_iterable(values)]


def list_reverse(values: Values) -> Values:
    """Reverse the order."""
    return values[::-1]


def list_first(values: Values) -> Some | Nothing:
    """Return the first element, if there is one."""
    return Some(values[0]) if values else NONE


def list_last(values: Values) -> Some | Nothing:
    """Return the last element, if there is one."""
    return Some(values[-1]) if values else NONE


def list_sets_contains_list(values: Values, others: Values) -> bool:
    """Return whether the first list has every element of the second."""
    if are_hashable(values, others):
        return set(values).issuperset(others)
    return all(contains(values, value) for value in others)


def list_sets_equivalent_list(left: Values, right: Values) -> bool:
    """Return whether each list has every element of the other."""
    return list_sets_contains_list(left, right) and list_sets_contains_list(right, left)


def list_sets_intersects_list(left: Values, right: Values) -> bool:
    """Return whether the lists have an element in common."""
    if are_hashable(left, right):
        return not set(left).isdisjoint(right)
    return any(contains(right, value) for value in left)


def are_hashable(*lists: Values) -> bool:
    """Return whether all elements have one class whose equality is Python's."""
    kinds = {kind for values in lists for kind in set(map(type, values))}
    return len(kinds) <= 1 and kinds <= _HASHABLE
