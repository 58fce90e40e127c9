"""Where a character of an expression stands in the file, for every way in which YAML can hold a text.

In each case the letter X stands once in the value and once in the file, and the one has to lead to the other.
"""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cli.yaml.plain_values import find
from fairlead.cli.yaml.scalar_positions import index_in_file, offsets
from fairlead.cli.yaml.source import BrokenError, SourceText
from fairlead.cli.yaml.yaml_tree import YamlNode, YamlScalar, documents
from support.examples import MANY


def _text(*lines: str, end: str = "\n") -> str:
    return end.join(lines) + end


CASES = {
    "a plain text": "e: a X b\n",
    "a plain text that begins with it": "e: X b\n",
    "a plain text that ends with it": "e: a X",
    "a plain text before a comment": "e: a X b # and no more\n",
    "a plain text over two lines": _text("e: a", "  b X c"),
    "a plain text over lines with an empty one between": _text("e: a", "", "", "  b X c"),
    "a plain text over lines that end with blanks": _text("e: a   ", "    b X c"),
    "a plain text that is continued with tabs": _text("e: a", "  \tb X c"),
    "a plain text in a list in a list": "- - {e: a X b}\n",
    "a plain text in a map in one line": "{z: 1, e: a X b, y: 2}\n",
    "a plain text as the key's neighbour on the next line": _text("e:", "  a X b"),
    "a plain text after one of every width": "e: é 字 \U0001f600 ﷽ X\n",
    "a plain text with quotes inside": "e: a 'b' \"c\" X\n",
    "a plain text with CRLF": _text("e: a", "  b X c", end="\r\n"),
    "a plain text with CR alone": _text("e: a", "  b X c", end="\r"),
    "a single quoted text": "e: 'a X b'\n",
    "a single quoted text with quotes before it": "e: '''a'' == ''b'' X'\n",
    "a single quoted text with two quotes in a row": "e: 'a '''''''' X'\n",
    "a single quoted text over lines": _text("e: 'a", "   b X", "  c'"),
    "a single quoted text with an empty line": _text("e: 'a", "", "   b X'"),
    "a single quoted text that begins with blanks": "e: '   X'\n",
    "a single quoted text with a backslash": "e: 'a\\n X'\n",
    "a single quoted text with CRLF": _text("e: 'a", "", "   b X'", end="\r\n"),
    "a double quoted text": 'e: "a X b"\n',
    "a double quoted text with quotes escaped": 'e: "\\"a\\" == \\"b\\" X"\n',
    "a double quoted text with every short escape": 'e: "\\0\\a\\b\\t\\n\\v\\f\\r\\e\\ \\"\\\\\\/\\N\\_\\L\\P X"\n',
    "a double quoted text with escapes of two digits": 'e: "\\x41\\x42 X"\n',
    "a double quoted text with escapes of four digits": 'e: "\\u00e9\\u5b57 X"\n',
    "a double quoted text with escapes of eight digits": 'e: "\\U0001F600 X"\n',
    "a double quoted text over lines": _text('e: "a', '   b X"'),
    "a double quoted text over lines with an empty one": _text('e: "a', "", "", '   b X"'),
    "a double quoted text whose line goes on": _text('e: "a\\', '   b X"'),
    "a double quoted text whose line goes on with its blanks": _text('e: "a  \\', '   \\  b X"'),
    "a double quoted text whose line goes on after an empty one": _text('e: "a\\', "", '   b X"'),
    "a double quoted text with a tab written out": 'e: "a\tb\t X"\n',
    "a double quoted text with a tab before the line's end": _text('e: "a\t', '\tb X"'),
    "a double quoted text with CRLF whose line goes on": _text('e: "a\\', '   b X"', end="\r\n"),
    "a literal block": _text("e: |", "  a", "  b X c"),
    "a literal block in its first line": _text("e: |", "  X"),
    "a literal block that strips": _text("e: |-", "  a", "  b X c"),
    "a literal block that keeps": _text("e: |+", "  a", "  b X c", "", ""),
    "a literal block with an indentation indicator": _text("e: |2", "    a", "  b X c"),
    "a literal block with both indicators": _text("e: |-2", "    a", "  b X c"),
    "a literal block with the indicators the other way": _text("e: |2-", "    a", "  b X c"),
    "a literal block with a comment at its head": _text("e: | # here it goes", "  a", "  b X c"),
    "a literal block with deeper lines": _text("e: |", "  a", "      b X c", "  d"),
    "a literal block with empty lines": _text("e: |", "", "  a", "", "", "  b X c"),
    "a literal block with a comment of the language": _text("e: |", "  // # no comment of YAML", "  b X c"),
    "a literal block with tabs": _text("e: |", "  a", "  \tb X c"),
    "a literal block with CRLF": _text("e: |", "  a", "  b X c", end="\r\n"),
    "a literal block with blanks at the end of lines": _text("e: |", "  a   ", "  b X c"),
    "a literal block at the end without a line's end": "e: |\n  a\n  b X",
    "a literal block as an item of a list": _text("- |", "  a", "  b X"),
    "a folded block": _text("e: >", "  a", "  b X c"),
    "a folded block that strips": _text("e: >-", "  a", "  b X c"),
    "a folded block with an empty line": _text("e: >", "  a", "", "  b X c"),
    "a folded block with a deeper line": _text("e: >", "  a", "    b X c", "  d"),
    "a folded block after a deeper line": _text("e: >", "  a", "    b", "  c X d"),
    "a folded block with an indentation indicator": _text("e: >2", "    a", "  b X c"),
    "a folded block with CRLF": _text("e: >", "  a", "", "  b X c", end="\r\n"),
    "a text with an anchor": "e: &here a X b\n",
    "a quoted text with an anchor and a tag": "e: &here !!str 'a X b'\n",
    "a quoted text with a tag of its own": "e: ! 'a X b'\n",
    "a text whose anchor stands in the line before": _text("e: &here # a remark", "  a X b"),
    "a literal block with an anchor": _text("e: &here |", "  a X b"),
    "a text that is named by an alias": _text("z: &here 'a X b'", "e: *here"),
    "a text that is merged in": _text("z: &here {e: a X b}", "y:", "  <<: *here"),
    "a text in a second document": _text("z: 1", "---", "e: a X b"),
    "a text behind characters that take two of UTF-16": "z: \U0001f600\U0001f600\ne: \U0001f600 X\n",
    "JSON": '{"z": [1, {"e": "a \\"b\\" \\/ X"}]}',
    "JSON that is indented by tabs": '{\n\t"z": 1,\n\t"e": "a X"\n}',
}


def _with_x(node: YamlNode) -> list[YamlScalar]:
    if isinstance(node, YamlScalar):
        return [node] if "X" in node.value else []
    below = getattr(node, "items", None) or [one for pair in getattr(node, "entries", ()) for one in pair]
    return [found for one in below for found in _with_x(one)]


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_a_place_in_the_value_leads_to_the_place_in_the_file(text: str) -> None:
    assert text.count("X") == 1
    scalar = next(found for document in documents(SourceText(text)) for found in _with_x(document))
    assert index_in_file(text, scalar, scalar.value.index("X")) == text.index("X")


ESCAPED = {
    "written with two digits": (r'e: "a \x58 b"', "\\"),
    "written with four digits": (r'e: "a \u0058 b"', "\\"),
    "written with eight digits": (r'e: "a \U00000058 b"', "\\"),
}


@pytest.mark.parametrize(("text", "want"), ESCAPED.values(), ids=ESCAPED)
def test_a_character_that_is_written_as_an_escape_stands_where_the_escape_begins(text: str, want: str) -> None:
    [document] = documents(SourceText(text))
    [scalar] = _with_x(document)
    assert index_in_file(text, scalar, scalar.value.index("X")) == text.index(want)


ENDS = {
    "of a plain text": ("e: abc # x\n", "c"),
    "of a quoted text": ("e: 'abc'\n", "c"),
    "of a literal block that strips": ("e: |-\n  a\n  bc\nf: 1\n", "c"),
    "of a folded block that strips": ("e: >-\n  a\n  bc\nf: 1\n", "c"),
}


@pytest.mark.parametrize(("text", "last"), ENDS.values(), ids=ENDS)
def test_the_end_is_behind_the_last_character(text: str, last: str) -> None:
    [document] = documents(SourceText(text))
    _, scalar, _ = find(document, ("e",))
    assert isinstance(scalar, YamlScalar)
    assert index_in_file(text, scalar, len(scalar.value)) == text.index(last) + 1


def test_an_empty_text_stands_where_it_would_begin() -> None:
    text = "z: 1\ne: ''\n"
    [document] = documents(SourceText(text))
    _, scalar, _ = find(document, ("e",))
    assert isinstance(scalar, YamlScalar)
    assert index_in_file(text, scalar, 0) == text.index("''")


def test_lines_and_columns_are_those_of_editors() -> None:
    source = SourceText("a\r\nb\rc\n\x85d\u2028e\n\tf")
    places = {character: source.place(source.text.index(character)) for character in "abcdef"}
    assert places == {"a": (1, 1), "b": (2, 1), "c": (3, 1), "d": (4, 2), "e": (4, 4), "f": (5, 2)}
    assert [source.line(number) for number in range(1, 6)] == ["a", "b", "c", "\x85d\u2028e", "\tf"]


_TEXTS = st.text(st.sampled_from("ab 'é\"\\\n\t:#[{,&*!|>%-\u00a0?\U0001f600字"), max_size=30)


@settings(max_examples=MANY)
@given(
    before=_TEXTS,
    after=_TEXTS,
    style=st.sampled_from([None, "'", '"', "|", ">"]),
    width=st.sampled_from([10, 20, 80]),
    indent=st.sampled_from([2, 4, 8]),
    end=st.sampled_from(["\n", "\r\n"]),
    is_unicode=st.booleans(),
)
def test_whatever_was_written_is_found(
    before: str, after: str, style: str | None, width: int, indent: int, end: str, is_unicode: bool
) -> None:
    value = f"{before}X{after}"

    class Dumper(yaml.SafeDumper):
        """One that writes the value in the style that is asked for."""

    def written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style if text == value else None)

    Dumper.add_representer(str, written)
    text = yaml.dump(
        {"k": [{"e": value, "z": 1}]},
        Dumper=Dumper,
        allow_unicode=is_unicode,
        width=width,
        indent=indent,
        line_break=end,
    )
    [document] = documents(SourceText(text))
    _, scalar, there = find(document, ("k", 0, "e"))
    assert there
    assert isinstance(scalar, YamlScalar)
    if scalar.value != value:  # a defect of the dumper: blocks that begin with blanks
        return
    found = offsets(text, scalar)
    assert found is not None
    assert text[found[value.index("X")]] == "X"
    assert [
        text[at] for at, character in zip(found, value, strict=True) if character.isalnum() and character in "ab"
    ] == [character for character in value if character in "ab"]


def test_every_case_is_found_by_the_parser_without_libyaml_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.cli.yaml.yaml_tree._LOADER", yaml.SafeLoader)
    refused = set()
    for sentence, text in CASES.items():
        try:
            scalar = next(found for document in documents(SourceText(text)) for found in _with_x(document))
        except BrokenError:
            refused.add(sentence)
            continue
        assert index_in_file(text, scalar, scalar.value.index("X")) == text.index("X"), sentence
    assert all("tabs" in sentence for sentence in refused)  # it takes fewer of them


def test_the_cases_are_many_enough() -> None:
    assert len(CASES) >= 40
