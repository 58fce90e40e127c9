"""Calls with operands of type dyn find the overload that the engine finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions.dynamic import dispatch, parameters_of
from fairlead.cel.functions.table import FUNCTIONS, LEFT_TO_THE_ENGINE
from fairlead.cel.values import UInt
from oracle import literal, overloads_of
from oracle import strategies as any_
from oracle.comparison import compare_call, thorough

_operands = (
    st.sampled_from([0, 1, UInt(1), 1.5, "", "a", "1", "true", "1h", b"a", True, None])
    | any_.plain_values
    | any_.microsecond_timestamps
    | any_.microsecond_durations
    | st.lists(any_.few_texts, max_size=3)
)
CALLS = (
    "base64.decode({})",
    "base64.encode({})",
    "bool({})",
    "bytes({})",
    "double({})",
    "duration({})",
    "dyn({})",
    "int({})",
    "math.abs({})",
    "math.bitAnd({}, {})",
    "math.bitNot({})",
    "math.bitShiftLeft({}, {})",
    "math.ceil({})",
    "math.greatest({})",
    "math.greatest({}, {})",
    "math.least({})",
    "math.least({}, {})",
    "math.sign({})",
    "math.sqrt({})",
    "sets.contains({}, {})",
    "sets.intersects({}, {})",
    "size({})",
    "string({})",
    "strings.quote({})",
    "timestamp({})",
    "type({})",
    "uint({})",
    "{} + {}",
    "{} - {}",
    "{}.charAt({})",
    "{}.contains({})",
    "{}.distinct()",
    "{}.flatten()",
    "{}.flatten({})",
    "{}.getFullYear()",
    "{}.getHours()",
    "{}.getMilliseconds()",
    "{}.hasValue()",
    "{}.indexOf({}, {})",
    "{}.join()",
    "{}.join({})",
    "{}.lowerAscii()",
    "{}.orValue({})",
    "{}.replace({}, {})",
    "{}.reverse()",
    "{}.size()",
    "{}.slice({}, {})",
    "{}.sort()",
    "{}.split({})",
    "{}.split({}, {})",
    "{}.startsWith({})",
    "{}.substring({})",
    "{}.trim()",
    "{}.value()",
)
# The lowering writes out arithmetic on numbers; the rest of `+` and `-` is looked up.
_NUMBERS = tuple(f"{operation}_{kind}" for operation in ("add", "subtract") for kind in ("int64", "uint64", "double"))


@pytest.mark.parametrize("template", CALLS)
def test_a_call_is_what_the_engine_makes_of_it(template: str) -> None:
    ids = overloads_of(template.format(*["d"] * 4)) - set(LEFT_TO_THE_ENGINE) - set(_NUMBERS)
    function = dispatch(template.partition("(")[0], sorted(ids))

    @thorough
    @given(st.lists(_operands, min_size=template.count("{}"), max_size=template.count("{}")))
    def compare(operands: list[object]) -> None:
        if "+" in template or "-" in template:
            numbers = sum(type(operand) in {int, UInt, float} for operand in operands)
            if numbers == len(operands):
                return
        expression = template.format(*(literal(operand, dyn=True) for operand in operands))
        compare_call(function, operands, expression)

    compare()


@pytest.mark.parametrize("overload", FUNCTIONS)
def test_every_overload_says_what_it_takes(overload: str) -> None:
    assert isinstance(parameters_of(overload), str)
