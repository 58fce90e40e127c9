"""Quantities are worth what Kubernetes says, and behave the same in the engine."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions import extensions, quantity
from fairlead.cel.values.errors import CelError, Kind
from oracle import literal, outcome_of
from oracle import strategies as any_
from oracle.comparison import thorough
from oracle.engine import Outcome
from oracle.own import ask_with_own

PARSED = json.loads((Path(__file__).parents[3] / "data/quantities/parsed.json").read_text())
texts = st.sampled_from([*(text for text, _ in PARSED), "1e401", "9" * 1_001])
quantities = st.sampled_from([text for text, value in PARSED if value is not None])


@pytest.mark.parametrize(("text", "want"), PARSED)
def test_a_text_is_worth_what_kubernetes_says(text: str, want: str | None) -> None:
    parsed = quantity.parse(text)
    assert (None if parsed is None else parsed.nano) == (None if want is None else Fraction(want) * 10**9)


@given(st.integers(-(10**40), 10**40).map(quantity.Quantity))
def test_the_canonical_text_says_all(value: quantity.Quantity) -> None:
    assert quantity.from_canonical(quantity.canonical(value)) == value


@pytest.mark.parametrize("text", ["1e401", "1e2147483647", "9" * 1_001, "-1e400000"])
def test_what_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(CelError) as caught:
        quantity.quantity(text)
    assert caught.value.kind is Kind.OVERFLOW
    assert not quantity.is_quantity(text)
    assert quantity.to_float(text) is None


@pytest.mark.parametrize("text", ["1e-2147483647", "0.1e-400", "0e999999"])
def test_what_is_tiny_is_the_least_there_is_and_zero_is_zero(text: str) -> None:
    assert quantity.quantity(text).nano == (0 if text.startswith("0e") else 1)


@pytest.mark.parametrize(
    ("text", "want"), [("1.5Gi", 1610612736.0), ("100m", 0.1), ("0.3", 0.3), ("1e350", math.inf), ("-1e350", -math.inf)]
)
def test_as_a_float_it_is_the_nearest(text: str, want: float) -> None:
    assert quantity.to_float(text) == want


BINARY = ("add", "sub", "isGreaterThan", "isLessThan", "compareTo")
UNARY = ("sign", "isInteger", "asInteger", "asApproximateFloat")
IMPLEMENTATIONS = {(d.name, d.parameters): d.implementation for d in extensions.DECLARATIONS}


@pytest.mark.parametrize("name", ["quantity", "isQuantity"])
def test_reading_is_the_same_in_the_engine(name: str) -> None:
    @thorough
    @given(texts | any_.texts.filter(lambda text: "\0" not in text))
    def compare(text: str) -> None:
        ours = outcome_of(IMPLEMENTATIONS[name, ("string",)], text)
        assert ours == ask_with_own(f"{name}({literal(text)})"), text

    compare()


@pytest.mark.parametrize("name", UNARY)
def test_what_it_is_is_the_same_in_the_engine(name: str) -> None:
    @thorough
    @given(quantities)
    def compare(text: str) -> None:
        ours = outcome_of(IMPLEMENTATIONS[name, (extensions.QUANTITY,)], quantity.quantity(text))
        assert ours == ask_with_own(f"quantity({literal(text)}).{name}()"), text

    compare()


@pytest.mark.parametrize("name", BINARY)
def test_operations_are_the_same_in_the_engine(name: str) -> None:
    @thorough
    @given(quantities, quantities)
    def compare(left: str, right: str) -> None:
        function = IMPLEMENTATIONS[name, (extensions.QUANTITY, extensions.QUANTITY)]
        ours = outcome_of(function, quantity.quantity(left), quantity.quantity(right))
        assert ours == ask_with_own(f"quantity({literal(left)}).{name}(quantity({literal(right)}))")

    compare()


@pytest.mark.parametrize("name", ["add", "sub"])
def test_operations_with_ints_are_the_same_in_the_engine(name: str) -> None:
    @thorough
    @given(quantities, any_.ints)
    def compare(left: str, right: int) -> None:
        ours = outcome_of(IMPLEMENTATIONS[name, (extensions.QUANTITY, "int")], quantity.quantity(left), right)
        assert ours == ask_with_own(f"quantity({literal(left)}).{name}({right})")

    compare()


@pytest.mark.parametrize("name", ["exp", "log2"])
def test_own_mathematics_is_the_same_in_the_engine(name: str) -> None:
    @thorough
    @given(any_.doubles)
    def compare(value: float) -> None:
        assert outcome_of(IMPLEMENTATIONS[name, ("double",)], value) == ask_with_own(f"{name}({literal(value)})")

    compare()


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ('quantity("1Gi") == quantity("1024Mi")', True),
        ('quantity("1") != quantity("1000m")', False),
        ('optional.ofNonZeroValue(quantity("0")).hasValue()', False),
        ('[quantity("1k"), quantity("1000")].distinct().size() == 1', True),
        ("log2(8.0) == 3.0 && exp(0.0) == 1.0", True),
    ],
)
def test_equal_quantities_are_equal_messages(expression: str, want: bool) -> None:
    assert ask_with_own(expression) == Outcome(value=f"bool {want}")
