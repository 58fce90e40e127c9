"""Lists, and lists as sets, are what the engine says they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions import lists, sorting
from fairlead.cel.values.errors import Abort, Kind
from oracle import ask, literal, outcome_of
from oracle import strategies as any_
from oracle.comparison import Case, compare_overload, thorough

_positions = st.integers(-2, 6) | any_.ints
_few_doubles = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, float("inf"), float("nan"), -float("nan")])
_sizes = st.sampled_from([2, 3, 15, 16, 17, 18, 31, 64, 100])  # about the steps of the sort
_sortable = {
    "bool": any_.bools,
    "bytes": any_.bytestrings,
    "double": any_.doubles,
    "google.protobuf.Duration": any_.microsecond_durations,
    "google.protobuf.Timestamp": any_.microsecond_timestamps,
    "int": any_.ints,
    "string": any_.texts,
    "uint": any_.uints,
}
_mixed = st.lists(any_.close_values, max_size=4)
_plain_lists = st.lists(any_.plain_values, max_size=4)
_any_lists = st.lists(any_.values, max_size=4) | _mixed | st.lists(_few_doubles, max_size=4)

LISTS: dict[str, Case] = {
    "add_list": ("{} + {}", _plain_lists, _plain_lists),
    "list_distinct": (
        "{}.distinct()",
        _plain_lists | st.lists(any_.few_texts, max_size=30) | st.lists(_few_doubles, max_size=9),
    ),
    "list_flatten": ("{}.flatten()", st.lists(_plain_lists, max_size=3)),
    "list_range": ("lists.range({})", st.integers(0, 50)),
    "list_reverse": ("{}.reverse()", _plain_lists),
    "list_slice": ("{}.slice({}, {})", _plain_lists, _positions, _positions),
    "list_sets_contains_list": ("sets.contains({}, {})", _any_lists, _any_lists),
    "list_sets_equivalent_list": ("sets.equivalent({}, {})", _mixed, _mixed),
    "list_sets_intersects_list": ("sets.intersects({}, {})", _any_lists, _any_lists),
    "list_size": ("{}.size()", _any_lists),
    "size_list": ("size({})", _any_lists),
    "map_size": ("{}.size()", st.dictionaries(any_.few_texts, any_.scalars, max_size=3)),
    "size_map": ("size({})", st.dictionaries(any_.few_texts, any_.scalars, max_size=3)),
    "type": ("type({})", any_.values),
    "math_@max_list_int": ("math.greatest({})", st.lists(any_.ints, max_size=4)),
    "math_@min_list_int": ("math.least({})", st.lists(any_.ints, max_size=4)),
}
SORTS: dict[str, Case] = {
    **{
        f"list_{kind}_sort": ("{}.sort()", st.lists(values, min_size=1, max_size=40))
        for kind, values in _sortable.items()
    },
}
# These make an optional, whose content is compared.
OPTIONALS: dict[str, Case] = {
    "list_first": ("{}.first()", _plain_lists),
    "list_last": ("{}.last()", _plain_lists),
}


@pytest.mark.parametrize("overload", LISTS)
def test_a_function_of_any_values_is_what_the_engine_says(overload: str) -> None:
    compare_overload(overload, *LISTS[overload], dyn=True)


@pytest.mark.parametrize("overload", SORTS)
def test_sorting_is_what_the_engine_says(overload: str) -> None:
    compare_overload(overload, *SORTS[overload])


@pytest.mark.parametrize("overload", OPTIONALS)
def test_an_optional_is_what_the_engine_says(overload: str) -> None:
    template, *operands = OPTIONALS[overload]
    compare_overload(overload, template, *operands, dyn=True, unwrap=True)


@thorough
@given(_sizes.flatmap(lambda size: st.lists(_few_doubles, min_size=size, max_size=size)))
def test_sorting_takes_the_steps_of_the_engine_around_nan(values: list[float]) -> None:
    assert outcome_of(sorting.sort_doubles, values) == ask(f"{literal(values)}.sort()")


@thorough
@given(_sizes.flatmap(lambda size: st.lists(st.integers(0, 99), min_size=size, max_size=size)), st.integers(1, 50))
def test_sorting_by_keys_leaves_equals_in_the_order_of_the_engine(values: list[int], coarseness: int) -> None:
    keys = [value // coarseness for value in values]
    want = ask(f"{literal(values)}.sortBy(x, x / {coarseness})")
    assert outcome_of(sorting.sort_by_keys, values, keys) == want


def test_a_range_below_zero_or_too_long_gives_up() -> None:
    assert ask("lists.range(-1)").error is Kind.LIMIT
    assert ask("lists.range(-1)").aborted
    for end in (-1, lists.RANGE_MAX + 1):
        with pytest.raises(Abort):
            lists.list_range(end)
