"""What users read: plain English, and in names the words of the glossary."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import fairlead
from fairlead.control.status.reasons import REASONS
from fairlead.policy.lint.codes import LintCode

ROOT: Final = Path(fairlead.__file__).parent
REPOSITORY: Final = ROOT.parents[1]
PAGES: Final = sorted(
    [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("charts/**/*.md")],
)
FILES: Final = sorted(
    one
    for folder in ("charts", "crds", "templates", "examples")
    for one in (REPOSITORY / folder).rglob("*")
    if one.suffix in (".yaml", ".json", ".txt", ".tpl", ".j2")
)
MODULES: Final = sorted(ROOT.rglob("*.py"))

INSTEAD: Final[Mapping[str, str]] = {
    r"put(s|ting)? (away|back)": "reject, roll back",
    r"turn(s|ed)? away": "refuse",
    r"(can|cannot|could|may|to) be had": "can be managed, is available",
    r"(go|goes|going|went) on \w+ing": "keep",
    r"(some|no)body": "someone, no one, or better: who it is",
    r"who(so)?ever|whom|whosesoever": "the one who ..., as a noun",
    r"he|him|his|himself": "they, or better: who it is",
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"for ever": "forever",
    r"the like": "similar",
    r"what is there": "what exists",
    r"by and by": "gradually",
}
"""Words of the dialect in which this was once written, and what to write."""
_FIELD: Final = """
accepted annotations api autoscalers binds build bytes calls capacity code compiled condition config conflict
conflicts consistent crd data default depth differences disabled duration engine entries eventually evictions
expiration filter forbidden hash identity info invalid kind lookups namespace nodes objects operator outcome part
paused pending pod policy programmed progressing queue ready reason relists request requests resource result rolling
rule samples scheduler score seconds set silent spec state status text timestamp total transitions type unavailable
variable verb version wakeups warnings watch webhook writes
"""
_ENGLISH: Final = """
absent acceptance always as behind compared counts differing effect failed free future has in internal
invisible matches missed name never no not nothing of on other out outdated passes raises range runs same slow the to
too unknown
unit unreadable unused wrong exact installed largest match publishable terms wider
"""
KNOWN: Final = frozenset(re.findall(r"[a-z]+", _FIELD + _ENGLISH))
"""What names may use beside the glossary: words of the API, Prometheus and kube-scheduler, and plain English."""
_DIALECT: Final = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`|<[^>\n]*>|\]\([^)\n]*\)", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: str(one.relative_to(REPOSITORY)))
def test_pages_are_plain_english(page: Path) -> None:
    assert [*_found(_CODE.sub(" ", page.read_text()))] == []


@pytest.mark.parametrize("file", FILES, ids=lambda one: str(one.relative_to(REPOSITORY)))
def test_files_that_users_read_are_plain_english(file: Path) -> None:
    assert [*_found(file.read_text())] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda one: str(one.relative_to(ROOT)))
def test_messages_are_plain_english(module: Path) -> None:
    assert [*_found("\n\n".join(_texts(ast.parse(module.read_text()))))] == []


@pytest.mark.parametrize("name", sorted({*REASONS, *LintCode}))
def test_reasons_have_words_of_the_glossary(name: str) -> None:
    name = name.replace("CRD", "Crd")
    assert {*re.findall(r"[A-Z][a-z]*", name)} == {*re.findall(r"[A-Z]?[a-z]+", name)}, "UpperCamelCase"
    assert _unknown(re.findall(r"[a-z]+", re.sub(r"[A-Z]", lambda found: f" {found[0].lower()}", name))) == []


def test_metrics_have_words_of_the_glossary() -> None:
    page = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text()
    rows = re.findall(r"^\| `fairlead_(\w+)` \| \w+ \| ([^|]*)\|", page, re.MULTILINE)
    assert len(rows) > 30
    found = {name: _unknown(re.findall(r"[a-z]+", f"{name} {labels}")) for name, labels in rows}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_word_that_is_nowhere_explained_is_found() -> None:
    assert _unknown(["rejected", "nodes", "put", "away"]) == ["put", "away"]


def _unknown(words: Iterable[str]) -> list[str]:
    """List the words that are neither the glossary's, in any form, nor the field's, nor plain English."""
    page = (REPOSITORY / "docs" / "glossary.md").read_text().lower()
    terms = {_stem(word) for term in re.findall(r"\*+([^*]+)\*+", page) for word in re.findall(r"[a-z]+", term)}
    return [one for one in words if _stem(one) not in terms and one not in KNOWN]


def _stem(word: str) -> str:
    return re.sub(r"(?<=[a-z]{3})(?:s|ed|d|ing|ion|ions|e|es)$", "", word)


def test_dialect_is_found() -> None:
    text = "The configuration was put away.\nWhoever leads goes on\nserving."
    assert [*_found(text)] == ["put away", "Whoever", "goes on serving"]


def _found(text: str) -> Iterator[str]:
    for match in _DIALECT.finditer(re.sub(r"\s+", " ", text)):
        yield match[0]


def _texts(tree: ast.Module) -> Iterator[str]:
    """Text constants that may be sentences, without docstrings."""
    bare = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and " " in one.value and id(one) not in bare:
            yield one.value
