"""Texts that are converted have a length at most, and within it none is a surprise."""

import sys

import pytest

from fairlead.cel.functions import conversions, quantity
from fairlead.cel.functions.conversions import TEXT_MAX
from fairlead.cel.functions.overloads import FUNCTIONS
from fairlead.cel.values.errors import CelError, Kind
from oracle.comparison import compare_call
from oracle.literals import literal

_AS_THEY_ARE = {"string_to_bytes", "string_to_string"}
_NOT_READ = {"string_to_ip", "string_to_cidr", "string_to_semver"}
"""What is longer than any of them is none."""
_CONVERSIONS = sorted(
    {name for name in FUNCTIONS if name.startswith("string_to_")} - _AS_THEY_ARE - _NOT_READ | {"is_quantity_string"}
)
_WRITTEN = {
    "string_to_bool": "bool",
    "string_to_double": "double",
    "string_to_duration": "duration",
    "string_to_int64": "int",
    "string_to_timestamp": "timestamp",
    "string_to_uint64": "uint",
}
_PARTS = (
    ("", "0", "1"),
    ("", "1", "x"),
    ("", "1", ""),
    ("-", "0", "1"),
    ("", "1", ".5e1"),
    ("1e", "0", "1"),
    ("1e-", "0", "1"),
    ("1.", "0", "1e"),
    ("0x", "f", "p1"),
    ("0x", "f", "z"),
    ("nan(", "a", ")"),
    ("", " ", "1"),
    ("", "1s", ""),
    ("1", "0", "h"),
    ("1.", "0", "1s"),
    ("", "0", "2027-01-01T00:00:00Z"),
    ("-", "0", "2027-01-01T00:00:00Z"),
    ("-", "0", "-01-01T00:00:00Z"),
    ("1", "0", "-01-01T00:00:00Z"),
    ("2027-01-01T00:00:00.", "0", "1Z"),
    ("2027-01-01T00:00:00Z", "\0", ""),
    ("", "true", ""),
)


def test_there_are_conversions() -> None:
    assert {*_WRITTEN, "string_to_quantity", "is_quantity_string"} == {*_CONVERSIONS}


@pytest.mark.parametrize("overload", _CONVERSIONS)
@pytest.mark.parametrize(("before", "repeated", "behind"), _PARTS)
def test_a_text_that_is_too_long_raises_and_is_not_shown(
    overload: str, before: str, repeated: str, behind: str
) -> None:
    text = before + repeated * (1 + TEXT_MAX // len(repeated)) + behind
    with pytest.raises(CelError) as caught:
        FUNCTIONS[overload](text)
    assert (caught.value.kind, caught.value.message) == (
        Kind.CONVERSION,
        "cannot convert a string of more than 1,024 characters",
    )


@pytest.mark.parametrize("overload", _WRITTEN)
@pytest.mark.parametrize(("before", "repeated", "behind"), _PARTS)
def test_up_to_that_length_a_text_is_worth_what_the_engine_says(
    overload: str, before: str, repeated: str, behind: str
) -> None:
    text = before + repeated * ((TEXT_MAX - len(before + behind)) // len(repeated)) + behind
    _compare(overload, text)


@pytest.mark.parametrize("overload", _WRITTEN)
@pytest.mark.parametrize(("before", "repeated", "behind"), _PARTS)
def test_no_length_is_a_fault_of_ours(
    overload: str, before: str, repeated: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversions, "TEXT_MAX", sys.maxsize)
    _compare(overload, before + repeated * (5_000 // len(repeated)) + behind)


def _compare(overload: str, text: str) -> None:
    compare_call(FUNCTIONS[overload], [text], f"{_WRITTEN[overload]}({literal(text)})")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1e" + "0" * 5_000 + "1", 10),
        ("1e-" + "0" * 5_000 + "1", 0.1),
        ("0" * 5_000 + "1", 1),
        ("1e" + "1" * 5_000, None),
    ],
)
def test_no_length_of_a_quantity_is_a_fault_of_ours(
    text: str, want: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CelError):
        quantity.parse(text)
    monkeypatch.setattr(conversions, "TEXT_MAX", sys.maxsize)
    assert quantity.to_float(text) == want


def test_a_quantity_that_is_none_is_not_shown() -> None:
    with pytest.raises(CelError) as caught:
        quantity.quantity("of a tenant")
    assert caught.value.message == "cannot convert string to quantity"
