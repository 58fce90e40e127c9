"""The documents are a site whose links lead somewhere, and say what is there."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from website.build import SiteError, build, prepare
from website.links import absolute
from website.navigation import Entry, entries, paths

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site; a page with a problem is an error."""
    return build(tmp_path_factory.mktemp("site"))


def test_every_page_is_in_the_site_and_its_search(site: Path) -> None:
    made = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    for path in (CHECKOUT / "docs").rglob("*.md"):
        page = path.relative_to(CHECKOUT / "docs").with_suffix("")
        assert (page.parent if page.name == "index" else page).as_posix() in made
    found = {one["location"].partition("#")[0] for one in json.loads((site / "search.json").read_text())["items"]}
    assert {f"{page}/" for page in made - {"."}} <= found


_FROM_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link(?![^>]*rel=["']?canonical)[^>]*\shref=["']?(?:https?:)?//"""
)


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    html = {path: path.read_text() for path in site.rglob("*.html")}
    assert [path for path, text in html.items() if _FROM_ELSEWHERE.search(text)] == []
    # the one thing that the theme's script would fetch
    assert [path for path, text in html.items() if 'class="mermaid"' in text] == []
    assert [path for path in site.rglob("*.css") if re.search(r"url\([\"']?(?:https?:)?//", path.read_text())] == []


def test_a_diagram_is_drawn_in_the_colours_of_the_site(site: Path) -> None:
    (svg,) = re.findall(
        r"<svg[^>]* aria-label=\"Diagram: .*?</svg>", (site / "guide/architecture/index.html").read_text()
    )
    assert "a replica of the operator" in svg
    assert "var(--md-default-fg-color)" in svg
    assert re.findall(r"#0[01]0[12]0\d", svg) == []


def test_a_link_out_of_the_pages_leads_to_the_repository(site: Path) -> None:
    assert "/blob/main/Dockerfile" in (site / "guide" / "install" / "index.html").read_text()


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[there](gone.md)\n")
    with pytest.raises(SiteError, match=r"index.md:3:9(.|\n)*page does not exist"):
        build(tmp_path / "site", docs=docs)


def test_a_site_without_pages_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zensical makes none, and ends with success, if other programs of the user watch as much as may be watched."""
    said = "\x1b[1mthread 'zrx/monitor' panicked:\x1b[0m Too many open files\nBuild finished in 0.59s\n"
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, said))
    with pytest.raises(SiteError, match=r"made no page(.|\n)*fs.inotify.max_user_instances(.|\n)*\nthread 'zrx"):
        build(tmp_path)


def listed(folder: str = "") -> list[Any]:
    return entries(CHECKOUT / "docs", folder)


def test_the_order_of_pages_is_written_down_for_all_of_them() -> None:
    """A page that no .nav.yml names comes last under its folder, where it is hard to find."""
    for folder in ("guide", "reference"):
        written = (CHECKOUT / "docs" / folder / ".nav.yml").read_text()
        names = {path.name for path in (CHECKOUT / "docs" / folder).glob("*.md")}
        assert {name for name in names if f"- {name}\n" not in written} == set()


def test_order_of_pages(tmp_path: Path) -> None:
    for name in ("index", "b", "a", "more/y", "more/index"):
        path = tmp_path / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / ".nav.yml").write_text("nav: [index.md, {Group: [b.md, {More: more}]}]")
    want: list[Entry] = ["index.md", {"Group": ["b.md", {"More": ["more/index.md", "more/y.md"]}]}, "a.md"]
    assert entries(tmp_path) == want
    prepare(tmp_path / "copy", docs=tmp_path)
    assert tomllib.loads((tmp_path / "copy" / "zensical.toml").read_text())["project"]["nav"] == want


@pytest.mark.parametrize("folder", ["guide", "reference"])
def test_an_index_page_has_the_groups_and_the_order_of_the_site(folder: str) -> None:
    text = (CHECKOUT / "docs" / folder / "index.md").read_text()
    links = [link.partition("#")[0] for link in re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, re.MULTILINE)]
    groups: list[str] = []
    order: list[str] = []
    for entry in listed(folder):
        if isinstance(entry, str):
            order.append(entry)
            continue
        ((title, of_group),) = entry.items()
        groups.append(title)
        order += [paths(one)[0] for one in of_group]  # of a folder its index
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == groups
    assert [f"{folder}/{link}" for link in links] == [path for path in order if path != f"{folder}/index.md"]


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
    assert absolute(f"see [it]({link}#there)", page, "https://host/it/") == f"see [it]({want}#there)"


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
