"""What the README and the guide tell people to type is typed here; what needs a cluster, in tests/e2e/test_pages.py."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.inputs.strategy_folder import VARIABLE, custom_strategies
from support.docs.pages import CHECKOUT, COMMANDS, OTHERS, Page, PageError, Place, exchanges, matches, pages
from support.policy.lint import report_of

PAGES = pages()
_TYPED = re.compile(r"^(?: {4}|\t)(?:\$ )?(?:kubectl|helm|fairlead|make|docker|kustomize) ", re.MULTILINE)


def by_name(page: Page) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_block_says_what_it_is(page: Page) -> None:
    unknown = [(one.line, one.language) for one in page.blocks() if one.language not in COMMANDS | OTHERS]
    assert unknown == [], "write a language after ```, such as sh, console or yaml"
    outside = re.sub(r"^( *)```.*?^\1```", "", page.text, flags=re.MULTILINE | re.DOTALL)
    assert _TYPED.findall(outside) == [], "commands stand between ```sh and ```, where a test runs them"


@pytest.mark.parametrize("page", [one for one in PAGES if one.has_commands() and not one.needs_a_cluster], ids=by_name)
def test_what_a_page_says_to_type_does_what_it_says(page: Page, tmp_path: Path) -> None:
    Place(tmp_path).follow(page)


_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
DOCUMENTS = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("charts/*/*.md"), *CHECKOUT.glob("docs/**/*.md")]


def by_path(document: Path) -> str:
    return str(document.relative_to(CHECKOUT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_the_rows_of_a_table_have_the_cells_of_its_head(document: Path) -> None:
    """Where a bar is not escaped, in code too, the cell ends on GitHub, and the cells beyond the head are dropped."""
    outside = re.sub(r"^( *)```.*?^\1```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^ *\|.*\n)+", outside, re.MULTILINE):
        head, *rows = table.splitlines()
        cells = len(_BETWEEN_CELLS.findall(head))
        assert [line for line in rows if len(_BETWEEN_CELLS.findall(line)) != cells] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_no_line_of_a_list_is_said_twice(document: Path) -> None:
    for part in re.findall(r"(?:^- .*\n)+", document.read_text(), re.MULTILINE):
        lines = part.splitlines()
        assert sorted({*lines}) == sorted(lines)


def policies(page: Page) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for block in page.blocks():
        if block.language == "yaml" and "kind: SchedulerExtenderPolicy" in block.text and "{{" not in block.text:
            documents = [one for one in yaml.safe_load_all(block.text) if isinstance(one, dict)]
            found += [one for one in documents if one.get("kind") == "SchedulerExtenderPolicy" and not block.not_run]
    return found


@pytest.mark.parametrize("page", [one for one in PAGES if policies(one)], ids=by_name)
def test_the_policies_of_a_page_are_sound(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in page.blocks():
        if block.language == "python" and block.title:
            (tmp_path / block.title).write_text(block.text)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    custom = custom_strategies()
    mistaken = {one["metadata"]["name"] for one in policies(page)} & {"misspelt"}  # named so to show what is said of it
    for one in policies(page):
        findings = report_of(yaml.safe_dump(one), custom=custom).findings
        errors = [finding.message for finding in findings if finding.severity == "error"]
        assert bool(errors) == (one["metadata"]["name"] in mistaken), errors


PAGE = """
<!-- commands run in a cluster -->

```yaml title="a/file.txt"
hello
```

```console
$ cat a/file.txt
h...o
$ printf 'a   b\\nc\\nd\\n' \\
    && true
a b
...
```

<!-- not run: it would fail -->
```sh
false
```

```sh
test -d "$HOME" && test "$WHERE" = here
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr("support.docs.pages.CHECKOUT", tmp_path)
    (tmp_path / "page.md").write_text(PAGE)
    return Page(tmp_path / "page.md")


def test_a_page_is_followed(page: Page, tmp_path: Path) -> None:
    assert page.needs_a_cluster
    assert [block.not_run for block in page.blocks()] == ["", "", "it would fail", ""]
    place = Place(tmp_path / "place", {"WHERE": "here"})
    place.follow(page)
    for old, new in (
        ("h...o", "h...a"),
        ("= here", "= there"),
        ("...\n```", "```"),
        ("<!-- not run: it would fail -->", ""),
    ):
        page.path.write_text(PAGE.replace(old, new))
        with pytest.raises(PageError, match=r"page.md:\d+"):
            place.follow(page)


@pytest.mark.parametrize(
    ("expected", "printed", "want"),
    [
        ("a", "a\n", True),
        ("a", "a\nb", False),
        ("a\n...", "a\nb\nc", True),
        ("...\nc", "a\nb\nc", True),
        ("a ... c", "a b\nc", False),
        ("  a b", "  a    b  ", True),
        ("a.c", "abc", False),
    ],
)
def test_what_matches(expected: str, printed: str, *, want: bool) -> None:
    assert matches(expected, printed) is want


def test_commands_and_what_they_print() -> None:
    assert [*exchanges("$ a \\\n  b\nc\nd\n$ e <<X\n> f\n> X\n")] == [("a \\\n  b\n", "c\nd"), ("e <<X\nf\nX\n", "")]
