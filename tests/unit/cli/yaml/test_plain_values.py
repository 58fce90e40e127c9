"""Plain texts mean what kubectl takes them for."""

import pytest

from fairlead.cli.yaml.plain_values import find, text_at, to_data
from fairlead.cli.yaml.source import SourceText
from fairlead.cli.yaml.yaml_tree import documents

READ = {
    "yes": True, "y": True, "On": True, "true": True, "no": False, "N": False, "off": False, "False": False,
    "~": None, "null": None, "NULL": None, "Nil": "Nil", "yEs": "yEs",
    "1": 1, "-7": -7, "+7": 7, "0": 0, "017": 15, "0o17": 15, "0x1F": 31, "-0x1f": -31, "0b101": 5, "1_000": 1000,
    "08": 8.0, "1.5": 1.5, ".5": 0.5, "1e3": 1000.0, "-.5e-1": -0.05, ".inf": float("inf"), "-.inf": float("-inf"),
    "9" * 500: float("inf"), "-" + "9" * 500: float("-inf"),
    "1:30": "1:30", "2026-11-21": "2026-11-21", "1.2.3": "1.2.3", "1.5Gi": "1.5Gi", "-": ["?"], "0x": "0x", "+": "+",
    "'1'": "1", '"yes"': "yes", "!!str 1": "1", "!!int 1": 1, "!!float 1": 1, "! 1": "1", "": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "want"), READ.items(), ids=[text[:20] or "nothing" for text in READ])
def test_a_text_means(text: str, want: object) -> None:
    source = SourceText(f"a: {text}\n") if text != "-" else SourceText("a:\n- '?'\n")
    [document] = documents(source)
    data, misread = to_data(document, source)
    assert misread == []
    assert data == {"a": want}
    assert isinstance(data, dict)
    assert type(data["a"]) is type(want)


def test_keys_are_texts() -> None:
    source = SourceText("{1: a, yes: b, 0x10: c, '~': d, 1.5: e}")
    [document] = documents(source)
    assert to_data(document, source) == ({"1": "a", "true": "b", "16": "c", "~": "d", "1.5": "e"}, [])


def test_what_is_merged_gives_way_to_what_is_written_and_the_first_to_the_second() -> None:
    source = SourceText("x: &x {a: 1, b: 1, c: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: [*y, {d: 4, a: 4}], c: 3}\n")
    [document] = documents(source)
    data, misread = to_data(document, source)
    assert misread == []
    assert isinstance(data, dict)
    assert data["z"] == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert text_at(document, "z", "b") == "2"
    assert text_at(document, "z", "e") == ""
    _, nearest, there = find(document, ("z", "a", 3))
    assert not there
    assert source.text[nearest.start : nearest.end] == "1"
