"""YAML that Go's readers and ours take for the same value."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairlead.yaml_output import to_yaml

NUMBERS = [
    *("12e3", "123456e78901", "1E5", "+1e5", "-1e-5", "089", "0891234567", "0o17", "0O17", "0X1F", "0B1", "1_000"),
    *("1_0.5", ".5", "5.", "1.5", ".5e3", "1.e3", "-.5", "007", "12", "-0x1f", "0b_1", ".inf", ".nan", "1:30"),
]
OTHERS = ["y", "Y", "n", "N", "yes", "no", "on", "off", "true", "null", "~", "", "2026-01-01", "<<", "="]
PLAIN = ["10m", "250Ki", "a1b2c3d4e5f6", "v1", "12e3a", "1.2.3", "10.0.0.1", "ny", "e5", "0xg", "kube-scheduler"]


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("text", NUMBERS + OTHERS)
def test_a_text_that_some_reader_takes_for_something_else_has_quotes(text: str, blocks: bool) -> None:
    assert to_yaml({"key": text}, blocks=blocks) == f"key: '{text}'\n"
    assert to_yaml({text: 1}, blocks=blocks) == f"'{text}': 1\n"


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_has_none(text: str) -> None:
    assert to_yaml({"key": text}) == f"key: {text}\n"


@pytest.mark.parametrize(
    ("value", "text"), [(12, "12"), (-1, "-1"), (0, "0"), (1.5, "1.5"), (1e300, "1.0e+300"), (True, "true")]
)
def test_what_is_no_text_has_none(value: object, text: str) -> None:
    assert to_yaml({"key": value}) == f"key: {text}\n"


def test_what_is_there_twice_is_written_twice() -> None:
    one = {"a": ["b"]}
    assert to_yaml([one, one]) == "- a:\n  - b\n- a:\n  - b\n"


def test_texts_of_several_lines_are_blocks_where_asked_for() -> None:
    assert to_yaml({"key": "a\nb\n"}, blocks=True) == "key: |\n  a\n  b\n"


PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(PLAIN_DATA, st.booleans())
def test_what_is_written_reads_back(value: object, blocks: bool) -> None:
    assert yaml.safe_load(to_yaml(value, blocks=blocks)) == value
