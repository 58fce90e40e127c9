"""Sorting in the order of the engine, which leaves equal elements where `std::sort` of libstdc++ does."""

from collections.abc import Sequence
from typing import Any, Final

_INSERTION_SORT_TO: Final = 16  # elements; up to here `std::sort` is stable

Values = Sequence[Any]
Order = list[int]


def sort_doubles(values: Values) -> list[Any]:
    """Sort ascending; NaN and -0.0 end up where the engine puts them."""
    return sort_by_keys(values, values)


def sort_by_keys(values: Values, keys: Values) -> list[Any]:
    """Sort by keys, each at the position of its value; `sortBy` expands to this."""
    return [values[index] for index in _sorted_indices(keys)]


def _sorted_indices(keys: Values) -> Order:
    order = list(range(len(keys)))
    is_stable = len(keys) <= _INSERTION_SORT_TO or len(set(keys)) == len(keys)
    if is_stable and all(key == key for key in keys):  # NaN does not equal itself
        return sorted(order, key=keys.__getitem__)
    _introsort(keys, order, 0, len(order), 2 * (len(order).bit_length() - 1))
    _finish(keys, order)
    return order


def _introsort(keys: Values, order: Order, first: int, last: int, depth: int) -> None:
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


def _partition(keys: Values, order: Order, first: int, last: int) -> int:
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


def _median_to_first(keys: Values, order: Order, first: int, of: tuple[int, int, int]) -> None:
    left, middle, right = of
    a, b, c = (keys[order[position]] for position in of)
    if not a < b:
        left, middle, a, b = middle, left, b, a
    chosen = middle if b < c else right if a < c else left
    order[first], order[chosen] = order[chosen], order[first]


def _finish(keys: Values, order: Order) -> None:
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
