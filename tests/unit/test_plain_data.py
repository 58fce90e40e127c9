"""YAML that somebody else wrote: what is deep is told before it is read, and no number is a surprise."""

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.cli.yaml.plain_values import to_data
from fairlead.cli.yaml.source import SourceText
from fairlead.cli.yaml.yaml_tree import documents
from fairlead.plain_data import DEPTH_MAX, MERGED_MAX, Loader, expanded_size, explain_error, is_deep
from support.bombs import merging_maps


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
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("1_000", 1000),
        ("010", 8),
        ("0o17", 15),
        ("+.inf", float("inf")),
        ("y", True),
        ("off", False),
        ("~", None),
        ("nodes", "nodes"),
        ("<<", "<<"),
        ("!!float 1", 1),
        ("!!timestamp 2027-01-01", "2027-01-01"),
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
        "? " + "9" * 5_000 + "\n: 1",
        "!!int maybe",
        "!!int true",
        "!!float",
        "!!bool maybe",
        "!!null none",
        "!!binary eA==",
        "!!set {a}",
    ],
)
def test_a_number_that_nobody_can_read_is_a_fault_of_the_text(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        list(yaml.load_all(text, Loader))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3", "'a' is already set in line 1: remove one of them"),
        ("{a: 1, 'a': 1}", "'a' is already set in line 1"),
        ('- x: {name: a,\n    "name": b}', "'name' is already set in line 1"),
        ("10: a\n1_0: b", "'1_0' is already set in line 1"),
        ("a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}", "'y' is already set in line 2"),
    ],
)
def test_a_key_that_is_written_twice_is_a_fault(text: str, fault: str) -> None:
    with pytest.raises(yaml.YAMLError, match=re.escape(fault)):
        list(yaml.load_all(text, Loader))


def test_a_merged_key_may_be_written_again() -> None:
    text = "a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: [*b, *a], x: 3}\nd: {<<: *b}"
    assert yaml.load(text, Loader) == {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}, "d": {"x": 2}}  # noqa: S506


def test_maps_that_merge_each_other_twice_end_with_the_line() -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        yaml.load(merging_maps(60), Loader)  # noqa: S506
    assert explain_error(caught.value) == "line 17: << copies more than 100,000 keys in this file: write them out"
    assert yaml.load(merging_maps(10), Loader)["a10"] == {"k": 1}  # noqa: S506


def test_keys_that_are_merged_are_counted_over_all_documents_of_a_file() -> None:
    keys = ", ".join(f"k{at}: 1" for at in range(MERGED_MAX // 2))
    document = f"---\na: &a {{{keys}}}\nb: {{<<: *a}}\n"
    assert len(list(yaml.load_all(document * 2, Loader))) == 2
    with pytest.raises(yaml.YAMLError, match="copies more than"):
        list(yaml.load_all(document * 3, Loader))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: &a {x: 1}\nb: {<<: *a, <<: {x: 2, z: 3}}", {"x": 2, "z": 3}),
        ("a: &a {x: 1}\nb: {<<: [*a, {x: 2, z: 3}]}", {"x": 1, "z": 3}),
        ("a: {}\nb: &b {<<: *b, x: 1}", {"x": 1}),
        ("a: {}\nb: &b {<<: [&c {<<: *b, z: 2}], x: 1}", {"x": 1, "z": 2}),
    ],
)
def test_what_a_map_gets_from_others(text: str, want: object) -> None:
    assert yaml.load(text, Loader)["b"] == want  # noqa: S506


@pytest.mark.parametrize("value", ["1", "[1]", "[[{a: 1}]]", "null"])
def test_only_maps_can_be_merged(value: str) -> None:
    with pytest.raises(yaml.YAMLError, match="<< takes a map, or a list of maps"):
        yaml.load(f"<<: {value}", Loader)  # noqa: S506


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("[1, {a: 2}]", 4), ("{a: &a [1, 1], b: [*a, *a]}", 11), ("&a [*a]", float("inf"))],
)
def test_the_size_with_aliases_expanded(text: str, size: float) -> None:
    assert expanded_size(yaml.load(text, Loader)) == size  # noqa: S506


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{0: a, 0x1: b, 1.50: c}", {"0": "a", "1": "b", "1.50": "c"}),
        ("{yes: a, off: b}", {"true": "a", "false": "b"}),
        ("&a {1: a}", {"1": "a"}),
    ],
)
def test_keys_are_texts_as_for_kubectl(text: str, want: object) -> None:
    assert yaml.load(text, Loader) == want  # noqa: S506


@given(st.text(alphabet="01_.:+-eExXobnyfrtu~ aAN", max_size=12).filter(lambda text: text == text.strip()))
@example("0: 0")
def test_plain_scalars_are_those_that_lint_reads(text: str) -> None:
    """`fairlead lint` and what serves the file see the same."""
    try:
        found = yaml.load(f"[{text}]", Loader)  # noqa: S506
    except yaml.YAMLError:
        return
    source = SourceText(f"[{text}]")
    [document] = documents(source)
    want, faults = to_data(document, source)
    assert faults or repr(found) == repr(want)
