"""Texts that many objects have in common, on Pythons that forget them and on the one that does not."""

import re
import sys
import tracemalloc
from pathlib import Path

import pytest

import fairlead
from fairlead.mirror.interning import sharing

PYTHONS = [(3, 11), (3, 12), (3, 13), (3, 14)]


def copied(text: str) -> str:
    """An equal one that is another."""
    return text.encode().decode()


@pytest.mark.parametrize("python", PYTHONS)
def test_equal_texts_are_one(python: tuple[int, int]) -> None:
    same = sharing(python)
    assert same(copied("a label of many")) is same(copied("a label of many"))


@pytest.mark.parametrize("python", PYTHONS)
def test_nothing_is_interned_where_it_would_stay_for_ever(python: tuple[int, int]) -> None:
    assert (sharing(python) is sys.intern) is (python != (3, 12))


def test_what_is_kept_in_its_place_is_bounded() -> None:
    same = sharing((3, 12))
    tracemalloc.start()
    try:
        for number in range(300_000):
            same(f"message {number}")
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 20 << 20, "65,536 texts, and not 300,000"
    long = "x" * 10_000
    assert same(copied(long)) is not same(copied(long))


def test_nobody_interns_past_it() -> None:
    source = Path(fairlead.__file__).parent
    found = [file for file in source.rglob("*.py") if re.search(r"import intern\b|\bintern\(", file.read_text())]
    assert found == []
