"""Functions whose work depends on the size of their arguments: they pay the meter before they do it.

A function that is not here takes about the same time for all arguments, and is paid for by the loop that calls it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from fairlead.cel.functions import addresses, conversions, lists, maths, quantity, semver, sorting, strings, time_text
from fairlead.cel.values import equality
from fairlead.cel.values.meter import ITEM, PAID, SHORT_TEXT, Meter
from fairlead.cel.values.work_units import (
    DURATION_UNIT,
    MADE,
    PARSED_UNIT,
    WALKED,
    pieces_units,
    search_units,
    searches_units,
    sort_units,
)

Function = Callable[..., Any]
Metered = Callable[..., Any]
"""A function that takes a meter before its arguments."""


def _reads(function: Function, units: int = 1) -> Metered:
    """Wrap a function that converts a text; a text above the limit of conversions is rejected unread."""

    def metered(meter: Meter, text: Any) -> Any:
        meter.pay(PAID + min(len(text), SHORT_TEXT) * units // MADE)
        return function(text)

    return metered


def _parses(function: Function, most: int, at: int = 0) -> Metered:
    """Wrap a function that reads an address or a version; a longer text is rejected unread."""

    def metered(meter: Meter, *arguments: Any) -> Any:
        meter.pay(PAID + min(len(arguments[at]), most) * PARSED_UNIT)
        return function(*arguments)

    return metered


def _copies(function: Function, units: int = 1) -> Metered:
    """Wrap a function whose result is about as long as its text or list."""

    def metered(meter: Meter, value: Any, *rest: Any) -> Any:
        meter.pay(PAID + len(value) * units // MADE)
        return function(value, *rest)

    return metered


def _searches(function: Function, *, backwards: bool = False) -> Metered:
    def metered(meter: Meter, text: str, part: str, *rest: Any) -> Any:
        units = searches_units(len(text), len(part)) if rest else 0
        meter.pay(max(units, search_units(len(text), len(part), backwards=backwards)))
        return function(text, part, *rest)

    return metered


def add_metered(meter: Meter, left: Any, right: Any) -> Any:
    """Add numbers, or concatenate texts or bytes."""
    if isinstance(left, str | bytes):
        meter.pay(PAID + (len(left) + len(right)) // MADE)
    return left + right


def _add_list(meter: Meter, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    meter.pay(PAID + len(left) + len(right))
    return [*left, *right]


def _starts(function: Function) -> Metered:
    def metered(meter: Meter, text: str, part: str) -> Any:
        meter.pay(PAID + len(part) // WALKED)
        return function(text, part)

    return metered


def _replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    meter.pay(searches_units(len(text), len(old)))
    count = text.count(old) if old else len(text) + 1
    if limit >= 0:
        count = min(count, limit)
    meter.pay(count + (len(text) + count * len(new)) // MADE)
    return text.replace(old, new, limit)


def _split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    meter.pay(searches_units(len(text), len(separator)))
    count = text.count(separator) + 1 if separator else len(text)
    if limit >= 0:
        count = min(count, limit)
    meter.pay(pieces_units(count, len(text)))
    return strings.string_split_string_int(text, separator, limit)


def _join(meter: Meter, parts: Sequence[Any], separator: str = "") -> str:
    meter.pay(PAID + len(parts) * 4)
    meter.pay((sum(len(part) for part in parts if isinstance(part, str)) + len(parts) * len(separator)) // MADE)
    return strings.list_join_string(parts, separator)


def _range(meter: Meter, end: int) -> list[int]:
    meter.pay(PAID + max(end, 0) * 2)
    return lists.list_range(end)


def _of_texts(meter: Meter, values: Sequence[Any]) -> None:
    """Pay for going through a list and, once each, the texts in it."""
    meter.pay(PAID + 15 * len(values))
    meter.pay(sum(len(value) for value in values if isinstance(value, str | bytes)) // WALKED)


def _distinct(meter: Meter, values: Sequence[Any]) -> list[Any]:
    _of_texts(meter, values)
    if not lists.are_hashable(values):
        _each_with_each(meter, values, values)
    return lists.list_distinct(values)


def _each_with_each(meter: Meter, values: Sequence[Any], others: Sequence[Any]) -> None:
    """Pay for comparing each element of a list with each of another, of any type."""
    meter.pay(ITEM * len(values) * len(others))
    for value in values:
        if not isinstance(value, int | float):
            before = meter.left
            meter.walk(value)
            meter.pay((before - meter.left) * len(others))


def _over_list(function: Function) -> Metered:
    def metered(meter: Meter, values: Any, *rest: Any) -> Any:
        meter.pay(PAID + (10 * len(values) if isinstance(values, list | tuple) else 0))
        return function(values, *rest)

    return metered


def _sort(meter: Meter, values: Sequence[Any]) -> list[Any]:
    _pay_sort(meter, values, exact=False)
    return sorted(values)


def _sort_doubles(meter: Meter, values: Sequence[Any]) -> list[Any]:
    _pay_sort(meter, values, exact=True)
    return sorting.sort_doubles(values)


def _sort_by(meter: Meter, values: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    _pay_sort(meter, keys, exact=True)
    return sorting.sort_by_keys(values, keys)


def _pay_sort(meter: Meter, keys: Sequence[Any], *, exact: bool) -> None:
    _of_texts(meter, keys)
    longest = max((len(key) for key in keys if isinstance(key, str | bytes)), default=0)
    meter.pay(sort_units(len(keys), longest, exact=exact))


def _sets(function: Function) -> Metered:
    def metered(meter: Meter, left: Sequence[Any], right: Sequence[Any]) -> Any:
        _of_texts(meter, left)
        _of_texts(meter, right)
        if not lists.are_hashable(left, right):
            _each_with_each(meter, left, right)
            _each_with_each(meter, right, left)
        return function(left, right)

    return metered


def _flatten(meter: Meter, values: Sequence[Any]) -> list[Any]:
    meter.pay(PAID + 20 * (len(values) + sum(map(len, values))))
    return lists.list_flatten(values)


def _slice(meter: Meter, values: Sequence[Any], start: int, end: int) -> Sequence[Any]:
    meter.pay(PAID + max(0, min(end, len(values)) - max(start, 0)))
    return lists.list_slice(values, start, end)


def equal_metered(meter: Meter, left: object, right: object) -> bool:
    """Return whether two values of any types are equal."""
    meter.compare(left, right)
    return equality.equal(left, right)


def equal_texts(meter: Meter, left: Any, right: Any) -> bool:
    """Return whether two texts, or bytes, are equal."""
    meter.pay(PAID + min(len(left), len(right)) // 32)
    return bool(left == right)


def ordered_texts(meter: Meter, sign: Function, left: Any, right: Any) -> bool:
    """Compare two texts, or bytes, with one of Python's operators."""
    meter.pay(PAID + min(len(left), len(right)) // WALKED)
    return bool(sign(left, right))


def among(meter: Meter, item: Any, value: Any) -> bool:
    """Return whether a list has a value, or a map a key, when Python's equality is CEL's."""
    look(meter, item, value)
    return item in value


def look_up(meter: Meter, key: Any) -> Any:
    """Pay for looking up a key of a map: it is compared with the stored key."""
    if isinstance(key, str):
        meter.pay(len(key) // WALKED)
    return key


def look(meter: Meter, item: Any, operand: Any) -> None:
    """Pay for looking for a value in a list, or for a key in a map."""
    if isinstance(operand, list | tuple):
        size = len(item) // 32 if isinstance(item, str | bytes) else 0
        meter.pay(PAID + len(operand) * (ITEM + size))
        if not isinstance(item, int | float | str | bytes):
            meter.pay(len(operand))
            for value in operand:
                meter.compare(item, value)
    elif isinstance(item, str | bytes):
        meter.pay(PAID + len(item) // WALKED)


METERED: Final[Mapping[Function, Metered]] = MappingProxyType(
    {
        operator.add: add_metered,
        strings.contains_string: _searches(strings.contains_string),
        strings.starts_with_string: _starts(strings.starts_with_string),
        strings.ends_with_string: _starts(strings.ends_with_string),
        strings.string_index_of_string: _searches(strings.string_index_of_string),
        strings.string_index_of_string_int: _searches(strings.string_index_of_string_int),
        strings.string_last_index_of_string: _searches(strings.string_last_index_of_string, backwards=True),
        strings.string_last_index_of_string_int: _searches(strings.string_last_index_of_string_int, backwards=True),
        strings.string_lower_ascii: _copies(strings.string_lower_ascii, 20),
        strings.string_upper_ascii: _copies(strings.string_upper_ascii, 20),
        strings.string_replace_string_string: _replace,
        strings.string_replace_string_string_int: _replace,
        strings.string_reverse: _copies(strings.string_reverse),
        strings.string_split_string: _split,
        strings.string_split_string_int: _split,
        strings.string_substring_int: _copies(strings.string_substring_int),
        strings.string_substring_int_int: _copies(strings.string_substring_int_int),
        strings.string_trim: _copies(strings.string_trim, 8),
        strings.list_join: _join,
        strings.list_join_string: _join,
        lists.add_list: _add_list,
        lists.list_range: _range,
        lists.list_slice: _slice,
        lists.list_distinct: _distinct,
        lists.list_flatten: _flatten,
        lists.list_sets_contains_list: _sets(lists.list_sets_contains_list),
        lists.list_sets_equivalent_list: _sets(lists.list_sets_equivalent_list),
        lists.list_sets_intersects_list: _sets(lists.list_sets_intersects_list),
        sorted: _sort,
        sorting.sort_doubles: _sort_doubles,
        sorting.sort_by_keys: _sort_by,
        lists.list_reverse: _copies(lists.list_reverse, MADE),
        maths.greatest_of_list: _over_list(maths.greatest_of_list),
        maths.least_of_list: _over_list(maths.least_of_list),
        conversions.string_to_bytes: _copies(conversions.string_to_bytes, 2),
        conversions.bytes_to_string: _copies(conversions.bytes_to_string, 2),
        conversions.string_to_int64: _reads(conversions.string_to_int64),
        conversions.string_to_uint64: _reads(conversions.string_to_uint64),
        conversions.string_to_double: _reads(conversions.string_to_double),
        conversions.string_to_bool: _reads(conversions.string_to_bool),
        time_text.string_to_duration: _reads(time_text.string_to_duration, MADE * DURATION_UNIT),
        time_text.string_to_timestamp: _reads(time_text.string_to_timestamp, MADE),
        quantity.quantity: _reads(quantity.quantity, MADE),
        quantity.is_quantity: _reads(quantity.is_quantity, MADE),
        **{function: _parses(function, addresses.NETWORK_MAX) for function in addresses.READERS},
        addresses.cidr_contains_ip_string: _parses(addresses.cidr_contains_ip_string, addresses.NETWORK_MAX, at=1),
        addresses.cidr_contains_cidr_string: _parses(addresses.cidr_contains_cidr_string, addresses.NETWORK_MAX, at=1),
        **{function: _parses(function, semver.VERSION_MAX) for function in semver.READERS},
        equality.equal: equal_metered,
    }
)
