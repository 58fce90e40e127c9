"""Values of any types are equal, and have types, as the engine says."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.values import equality
from fairlead.cel.values.value_types import NONE, Some, UInt
from oracle import ask, literal, outcome_of
from oracle import strategies as any_
from oracle.comparison import thorough

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


@thorough
@given(_pairs)
def test_equality_is_what_the_engine_says(pair: tuple[object, object]) -> None:
    left, right = pair
    expression = f"{literal(left, dyn=True)} == {literal(right, dyn=True)}"
    assert outcome_of(equality.equal, left, right) == ask(expression), expression
