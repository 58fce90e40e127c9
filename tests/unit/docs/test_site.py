"""The documents are a site whose links lead somewhere, and say what is there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from site_links import rewritten

from fairlead.control.status.conditions import _STALLED, Reason
from fairlead.render.operator_settings import parse_settings
from support.docs.pages import CHECKOUT, Page, pages

_NOT_OURS = {".venv", ".pytest_cache", "build", "node_modules"}
_PAGES = sorted(path for path in CHECKOUT.rglob("*.md") if not _NOT_OURS & {*path.relative_to(CHECKOUT).parts})
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_GUIDE = CHECKOUT / "docs" / "guide"


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text: str) -> Iterator[str]:
    """As GitHub and the site make them of headings."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        yield slug + (f"-{seen[slug]}" if seen[slug] else "")


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in _LINK.findall(without_code(page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if re.match(r"[a-z]+:", link) or (target.exists() and not anchor):
            continue
        if not target.is_file() or anchor not in anchors(target.read_text()):
            lost.append(link)
    assert lost == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.parent.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("index.html")}
    assert {"guide/install", "guide/troubleshooting", "reference/serve", "scope", "."} <= made
    home = (tmp_path / "site" / "guide" / "install" / "index.html").read_text()
    assert "/blob/main/Dockerfile" in home


@pytest.mark.parametrize(
    ("page", "link", "want"),
    [
        ("guide/install.md", "../../Dockerfile", "https://host/it/blob/main/Dockerfile"),
        ("guide/install.md", "../benchmarks.md", "../benchmarks.md"),
        ("index.md", "../README.md", "https://host/it/blob/main/README.md"),
        ("guide/install.md", "../decisions", "https://host/it/blob/main/docs/decisions"),
        ("guide/install.md", "first-policy.md", "first-policy.md"),
    ],
)
def test_what_is_not_in_the_site_is_read_in_the_repository(page: str, link: str, want: str) -> None:
    assert rewritten(f"see [it]({link}#there)", page, "https://host/it/") == f"see [it]({want}#there)"


def test_troubleshooting_knows_whatever_does_not_pass_by_itself_and_no_reason_that_there_is_not() -> None:
    text = (_GUIDE / "troubleshooting.md").read_text()
    named = {*re.findall(r"^### (\w+)$", text.partition("\n## By alert\n")[0], re.MULTILINE)}
    assert _STALLED <= named <= {*get_args(Reason)}


def folders(text: str, after: str) -> set[str]:
    table = text[text.index(after) :].split("\n\n")[1]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_the_folders_are_those_of_the_page_about_architecture() -> None:
    text = (_GUIDE / "architecture.md").read_text()
    product = {path.parent.name for path in (CHECKOUT / "operator" / "fairlead").glob("*/__init__.py")}
    assert folders(text, "Within `operator/fairlead`") == product
    tracked = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    top = {line.partition("/")[0] for line in tracked.splitlines() if "/" in line and line[0] != "."}
    assert folders(text, "At the top of the checkout") == top


def settings() -> Iterator[str]:
    for page in pages():
        for block in page.blocks():
            if block.language == "yaml" and re.match(r"schedulers:", block.text):
                yield block.text


@pytest.mark.parametrize("text", [*settings()])
def test_settings_that_a_page_shows_are_such(text: str) -> None:
    assert parse_settings(text).schedulers


_BENCHMARKS = (CHECKOUT / "docs" / "benchmarks.md").read_text()
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1.0, "MiB": 1.0, "ms/1000": 0.001}
_OFF_BY = 1.5


def measured() -> dict[str, float]:
    """What the page of benchmarks says: of calls, and of pods a second in its first case."""
    lines = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| ([\w/]+) \|", _BENCHMARKS, re.MULTILINE)
    rows = re.findall(r"^\| ([\w ]+) \| [\d, ]+ \| (\d+) \|", _BENCHMARKS, re.MULTILINE)
    found = {name: float(value) * _UNITS.get(unit, 1.0) for name, value, unit in lines}
    return found | {name: float(value) for name, value in reversed(rows)}


def stated() -> Iterator[tuple[str, str, float]]:
    """Page, benchmark and figure."""
    for name in ("README.md", "docs/guide/sizing.md"):
        text = " ".join((CHECKOUT / name).read_text().split())
        found = re.search(r"Fairlead placed about (\d+) pods per second; kube-scheduler alone placed (\d+)", text)
        assert found is not None, name
        yield name, "fairlead", float(found[1])
        yield name, "no extender", float(found[2])
        if bare := re.search(r"minimal Go extender without rules placed (\d+)", text):
            yield name, "bare", float(bare[1])
        if limit := re.search(r"one that does not parse the requests (\d+)", text):
            yield name, "limit", float(limit[1])
        for figure, unit, benchmark in re.findall(r"([\d.]+) (ms|s|MiB|us) \(`([\w-]+)`\)", text):
            yield name, benchmark, float(figure) * _UNITS[unit]


@pytest.mark.parametrize(("page", "benchmark", "figure"), [*stated()])
def test_figures_are_about_what_was_measured(page: str, benchmark: str, figure: float) -> None:
    assert measured()[benchmark] / _OFF_BY < figure < measured()[benchmark] * _OFF_BY, f"mend {page}"


def test_the_figures_of_sizing_are_found() -> None:
    assert len([*stated()]) >= 15


def test_the_pages_of_commands_are_all_collected() -> None:
    assert {"README.md", "docs/index.md", "docs/guide/install.md"} <= {page.name for page in pages()}
    assert Page(_GUIDE / "install.md").needs_a_cluster
    yaml.safe_load((CHECKOUT / "docs" / ".nav.yml").read_text())
