"""Values of any types compare, and have types, as the engine says."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.values import equality
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import NONE, BoolKey, Some, UInt
from oracle import ask, literal, outcome_of
from oracle import strategies as any_
from oracle.comparison import thorough

OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "==": equality.equal,
    "!=": equality.not_equal,
    "<": equality.less,
    "<=": equality.less_equal,
    ">": equality.greater,
    ">=": equality.greater_equal,
}
_numbers = any_.ints | any_.uints | any_.doubles
_near = st.integers(-2, 2).flatmap(
    lambda by: st.sampled_from([0, 2**53, 2**62, 2**63 - 3]).flatmap(
        lambda base: st.sampled_from([base + by, UInt(abs(base + by)), float(base + by)])
    )
)


def _copy(value: object) -> object:
    return deepcopy(value, {id(NONE): NONE})


_pairs = (
    st.tuples(any_.values, any_.values)
    | st.tuples(any_.close_values, any_.close_values)
    | st.tuples(_numbers, _numbers)
    | st.tuples(_near, _near)
    | st.tuples(any_.scalars, any_.scalars)
    | st.one_of([st.tuples(same, same) for same in (any_.texts, any_.bytestrings, any_.bools, any_.types)])
    | any_.values.map(lambda value: (value, _copy(value)))
    | any_.scalars.map(lambda value: ({1: Some(value)}, {1: Some(_copy(value))}))
)


@pytest.mark.parametrize("sign", OPERATORS)
def test_comparing_is_what_the_engine_says(sign: str) -> None:
    @thorough
    @given(_pairs)
    def compare(pair: tuple[object, object]) -> None:
        left, right = pair
        expression = f"{literal(left, dyn=True)} {sign} {literal(right, dyn=True)}"
        assert outcome_of(OPERATORS[sign], left, right) == ask(expression), expression

    compare()


@thorough
@given(st.dictionaries(any_.keys, any_.small, max_size=3), any_.scalars | any_.keys)
def test_a_key_is_found_where_the_engine_finds_it(entries: dict[object, int], key: object) -> None:
    want = ask(f"dyn({literal(entries, dyn=True)})[{literal(key, dyn=True)}]")

    def look_up() -> int:
        try:
            return entries[equality.map_key(key)]
        except KeyError:
            raise CelError(Kind.NO_SUCH_KEY, "") from None

    assert outcome_of(look_up) == want


def test_a_bool_is_not_the_key_one() -> None:
    assert equality.map_key(True) is BoolKey.TRUE
    assert equality.map_key(1) == 1
    assert equality.map_key(True) != equality.map_key(1)
