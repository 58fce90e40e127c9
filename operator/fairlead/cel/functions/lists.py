"""Functions of lists, and of lists as sets. Elements are compared as CEL compares them."""

from collections.abc import Sequence
from typing import Any, Final

from fairlead.cel.values.equality import contains
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.value_types import NONE, Duration, Nothing, Some, Timestamp, TypeName, UInt

_INSERTION_SORT_TO: Final = 16  # elements; up to here `std::sort` is stable

Order = list[int]


def sorted_indices(keys: Sequence[Any], *, ties_show: bool) -> Order:
    """Return the positions of keys in sorted order; `ties_show` says whether the order of equal keys is visible."""
    kind = keys[0].__class__
    if kind is float:
        exact = any(key != key for key in keys) or (ties_show and len(keys) > _INSERTION_SORT_TO)
    else:
        exact = ties_show and len(keys) > _INSERTION_SORT_TO and len(set(keys)) < len(keys)
    if not exact:
        return sorted(range(len(keys)), key=keys.__getitem__)
    order = list(range(len(keys)))
    _introsort(keys, order, 0, len(order), 2 * (len(order).bit_length() - 1))
    _finish(keys, order)
    return order


def _introsort(keys: Sequence[Any], order: Order, first: int, last: int, depth: int) -> None:
    """Partition until the parts are small.

    Beyond the depth libstdc++ changes to a heap; only lists made for the purpose get there, and they are just sorted.
    """
    while last - first > _INSERTION_SORT_TO:
        if depth == 0:
            order[first:last] = sorted(order[first:last], key=keys.__getitem__)
            return
        depth -= 1
        cut = _partition(keys, order, first, last)
        _introsort(keys, order, cut, last, depth)
        last = cut


def _partition(keys: Sequence[Any], order: Order, first: int, last: int) -> int:
    _median_to_first(keys, order, first, (first + 1, first + (last - first) // 2, last - 1))
    pivot = keys[order[first]]
    low, high = first + 1, last
    while True:
        while keys[order[low]] < pivot:
            low += 1
        high -= 1
        while pivot < keys[order[high]]:
            high -= 1
        if not low < high:
            return low
        order[low], order[high] = order[high], order[low]
        low += 1


def _median_to_first(keys: Sequence[Any], order: Order, first: int, of: tuple[int, int, int]) -> None:
    left, middle, right = of
    a, b, c = (keys[order[position]] for position in of)
    if not a < b:
        left, middle, a, b = middle, left, b, a
    chosen = middle if b < c else right if a < c else left
    order[first], order[chosen] = order[chosen], order[first]


def _finish(keys: Sequence[Any], order: Order) -> None:
    """Sort by insertion; the first elements may go to the very front, the others cannot pass a lesser one."""
    for position in range(1, len(order)):
        index = order[position]
        key = keys[index]
        if position < _INSERTION_SORT_TO and key < keys[order[0]]:
            order.insert(0, order.pop(position))
            continue
        hole = position
        while key < keys[order[hole - 1]]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = index


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


def list_flatten(values: Values) -> list[Any]:
    """Replace nested lists by their elements, one level deep."""
    return list_flatten_int(values, 1)


def list_flatten_int(values: Values, depth: int) -> list[Any]:
    """Replace nested lists by their elements, down to a depth."""
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
    """Keep the first of equal elements."""
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
    """Sort by keys, each at the position of its value; `sortBy` expands to this."""
    _require_sortable(keys)
    if len(keys) < 2:
        return list(values)
    return [values[index] for index in sorted_indices(keys, ties_show=True)]


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
