"""The pictures of the documents show what commands print now, and are small."""

import hashlib
import re
from pathlib import Path

import pytest
from pictures import terminal
from pictures.chromium import hash_in, hash_of
from pictures.subjects import FOLDER, SUBJECTS, Subject, explained

from support.docs.pages import CHECKOUT

_LARGEST = 150_000
_SHOWN_IN = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]


def by_name(subject: Subject) -> str:
    return subject.name


@pytest.mark.parametrize("subject", SUBJECTS, ids=by_name)
def test_a_picture_shows_what_there_is_now(subject: Subject) -> None:
    picture = (FOLDER / subject.file).read_bytes()
    assert hash_in(picture) == hash_of(subject), "outdated: `make pictures` draws it again"
    assert len(picture) < _LARGEST


@pytest.mark.parametrize("subject", SUBJECTS, ids=by_name)
def test_a_picture_is_shown_with_a_text_alternative(subject: Subject) -> None:
    shown = re.compile(rf"!\[([^\]]+)\]\((?:[\w./]+/)?pictures/{re.escape(subject.file)}\)")
    alternatives = [one for page in _SHOWN_IN for one in shown.findall(page.read_text())]
    assert [one for one in alternatives if len(one) > 20] == alternatives != []


def test_a_terminal_shows_the_text_of_the_readme_in_colours() -> None:
    html = explained()
    code = html.partition("<pre>")[2].partition("</pre>")[0]
    assert "UNSCHEDULABLE: none of 3 nodes is possible" in re.sub("<[^>]+>", "", code)
    assert re.search(r'<span style="[^"]*color: #ff938a[^"]*">UNSCHEDULABLE', code)


def test_a_page_is_as_high_as_its_rows() -> None:
    width, height = terminal.size(terminal.page("a", "b\n"))
    assert terminal.size(terminal.page("a", "b\n" + "x" * (terminal.COLUMNS + 1))) == (width, height + 2 * 18)


def test_another_text_is_another_picture(tmp_path: Path) -> None:
    def subject(text: str) -> Subject:
        return Subject("x", lambda: (1, 1), lambda: text, lambda _: tmp_path)

    assert hash_of(subject("a")) == hashlib.sha256(b"a").hexdigest() != hash_of(subject("b"))
    assert hash_in(b"\x89PNG\r\n\x1a\n") == ""
