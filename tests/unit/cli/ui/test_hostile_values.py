"""Names, reasons and texts that try to be more than text."""

import html
import re
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli.ui.decision_table import ReadDecisions
from fairlead.cli.ui.page_templates import page_templates, visible_lines
from fairlead.cli.ui.page_view import page_view
from support.cli.page import node, pod, policy, read, write

HOSTILE: Final = {
    "HTML": "</textarea></title><script>document.title='pwned'</script><img src=x onerror=alert(1)>",
    "a quote": '" onmouseover="alert(1)" x=\'',
    "a template": "{{ 7*7 }}{% raw %}",
    "an override": "\u202egnp.exe\u2066",
    "a terminal": "\x1b]0;pwned\x07\x1b[2J",
    "a new line": "first\nsecond\r",
}


class _Reader(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, frozenset[str]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, frozenset(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _rendered(folder: Path, text: str) -> _Reader:
    """The page of a cluster in which everything that may be any text is this text."""
    labels = {"gpu": text}
    objects = [
        node(text, labels=labels),
        node("b", labels=labels),
        pod(text, job=text),
        pod("there", on=text, job=text),
    ]
    rules = [
        policy("first", ("node.metadata.labels[?'gpu'].orValue('') == ''", text)),
        policy("shadow", ("false", text), mode="Shadow"),
    ]
    found = read(write(folder, objects, rules))
    record = {
        "time": text,
        "pod": {"namespace": text, "name": text},
        "rules": [{"policy": text, "rule": text, "reason": text, "nodes": 1}],
        "effects": [{"policy": text, "effects": [text]}],
        "error": text,
        "node": text,
    }
    stored = {"shadow": {"status": {"shadow": {"calls": 1, "since": text, "rules": [{"name": text, "kind": text}]}}}}
    found = replace(
        found,
        stored=stored,
        texts={text: text, **found.texts},
        decisions=ReadDecisions([record], notes=[text]),
        notes=[text],
        options=text,
    )
    view, _ = page_view(found)
    reader = _Reader()
    reader.feed(page_templates().get_template("page.html").render(view=view))
    return reader


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_text_says_the_page_has_the_same_elements(text: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "hostile").mkdir()
    plain, hostile = _rendered(tmp_path / "plain", "text"), _rendered(tmp_path / "hostile", text)
    assert hostile.tags == plain.tags
    assert [tag for tag, _ in hostile.tags].count("script") == 1
    shown = hostile.text.replace("\n", " ")
    assert re.findall(r"[^\S ]|[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) == []


def test_no_element_has_a_handler_or_a_style_of_its_own(tmp_path: Path) -> None:
    tags = _rendered(tmp_path, "text").tags
    assert {name for _, names in tags for name in names if name.startswith("on") or name == "style"} == set()


def test_the_text_of_the_editor_keeps_its_lines_and_nothing_else() -> None:
    text = "a: <b>\r\n\tb: \u202e\x1b\n"
    assert html.unescape(visible_lines(text)) == "a: <b>\n\tb: \\u202e\\x1b\n"


def test_every_field_of_the_view_is_plain_data(tmp_path: Path) -> None:
    """Markup that a view brings along would not be escaped."""
    view, _ = page_view(read(write(tmp_path, [node("a"), pod("p")], [policy("p", ("true", "why"))])))

    def check(value: object) -> None:
        assert not hasattr(value, "__html__")
        if is_dataclass(value):
            for field in fields(value):
                check(getattr(value, field.name))
        elif isinstance(value, list | tuple):
            for each in value:
                check(each)

    check(view)
