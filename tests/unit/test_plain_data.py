"""YAML that somebody else wrote: what is deep is told before it is read, and no number is a surprise."""

import pytest
import yaml

from fairlead.plain_data import DEPTH_MAX, Loader, is_deep


@pytest.mark.parametrize(
    ("data", "deep"),
    [
        (b"- " * DEPTH_MAX, True),
        (b"- " * (DEPTH_MAX - 1) + b"-", False),
        (b"a: " + b"-  \t" * DEPTH_MAX, True),
        (b"? - " * (DEPTH_MAX // 2), True),
        ((b"- " * (DEPTH_MAX - 1) + b"a\n") * 3, False),
        (b"- a\n" * 2 * DEPTH_MAX, False),
        (b"-" * 2 * DEPTH_MAX, False),
        (b"[" * (DEPTH_MAX + 1), True),
        (b"[]" * (DEPTH_MAX + 1), False),
    ],
)
def test_what_is_nested_deeply(data: bytes, deep: bool) -> None:
    assert is_deep(data) is deep


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1", 1),
        ("0x1f", 31),
        ("1.5", 1.5),
        ("9" * 400, int("9" * 400)),
        ("2027-01-01", "2027-01-01"),
        ("1e-05", 1e-05),
        ("-1E3", -1000.0),
        ("1e+3", 1000.0),
        ("1.5e3", 1500.0),
        ("1.7E308", 1.7e308),
        ("1e", "1e"),
        ("1e3m", "1e3m"),
        ("'1e3'", "1e3"),
    ],
)
def test_numbers_are_read_and_dates_are_texts(text: str, want: object) -> None:
    assert list(yaml.load_all(text, Loader)) == [want]


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5_000,
        "0x" + "f" * 5_000,
        "9" * 5_000 + ".0",
        "1" + ":10" * 1_000,
        "1" + ":10" * 190 + ".5",
        "? " + "9" * 5_000 + "\n: 1",
        "!!int maybe",
    ],
)
def test_a_number_that_nobody_can_read_is_a_fault_of_the_text(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        list(yaml.load_all(text, Loader))
