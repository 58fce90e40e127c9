"""What a project says about itself: the files are there, link to each other, and agree with each other and the code."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from release.project import REPOSITORY, ROOT, tool

from testbed.versions import HELM, HELM_3

_PAGES = (
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "MAINTAINERS.md",
    "RELEASING.md",
    "ROADMAP.md",
    "SECURITY.md",
    "SUPPORT.md",
)
_FORMS = [ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "change")]
_ADVISORY = f"{REPOSITORY}/security/advisories/new"


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def _chart() -> dict[str, Any]:
    chart: dict[str, Any] = yaml.safe_load(_text("charts/fairlead/Chart.yaml"))
    return chart


@pytest.mark.parametrize(
    ("page", "others"),
    {
        "CODE_OF_CONDUCT.md": ["MAINTAINERS.md"],
        "CONTRIBUTING.md": ["CODE_OF_CONDUCT.md"],
        "MAINTAINERS.md": [".github/CODEOWNERS", "CODE_OF_CONDUCT.md", "RELEASING.md", "SECURITY.md"],
        "RELEASING.md": ["CHANGELOG.md", "SUPPORT.md"],
        "ROADMAP.md": ["docs/scope.md", "RELEASING.md"],
        "SECURITY.md": ["MAINTAINERS.md", "SUPPORT.md", "docs/guide/security.md"],
        "SUPPORT.md": ["ROADMAP.md", "SECURITY.md", "docs/guide/troubleshooting.md", "docs/guide/upgrade.md"],
        "docs/scope.md": ["../ROADMAP.md"],
    }.items(),
)
def test_pages_link_to_each_other(page: str, others: list[str]) -> None:
    """That each link leads somewhere is tested with all pages."""
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", _text(page))}
    assert {*others} <= links


def test_every_page_can_be_found() -> None:
    from_others = "".join(_text(one) for one in (*_PAGES, "README.md", "docs/scope.md") if (ROOT / one).exists())
    assert [page for page in _PAGES if f"({page}" not in from_others and f"/{page}" not in from_others] == []


def test_reviews_are_asked_of_the_team_that_maintains() -> None:
    [owners] = re.findall(r"^\* (@\S+)$", _text(".github/CODEOWNERS"), re.MULTILINE)
    assert owners in _text("MAINTAINERS.md")
    organization, team = owners.removeprefix("@").split("/")
    assert f"https://github.com/orgs/{organization}/teams/{team}" in _text("MAINTAINERS.md")
    assert f"https://github.com/{organization}/" in REPOSITORY


@pytest.mark.parametrize("form", _FORMS, ids=lambda one: one.name)
def test_forms_are_valid(form: Path) -> None:
    command = [str(tool("check-jsonschema")), "--builtin-schema", "vendor.github-issue-forms", str(form)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("form", _FORMS, ids=lambda one: one.name)
def test_forms_ask_for_what_tells_most(form: Path) -> None:
    fields = {one["id"]: one for one in yaml.safe_load(form.read_text())["body"] if "id" in one}
    assert fields["status"]["attributes"]["label"] == "fairlead status -o json"
    assert fields["status"].get("validations", {}).get("required", False) is (form.stem == "bug")


def test_a_vulnerability_has_one_way_and_it_is_private() -> None:
    config = yaml.safe_load(_text(".github/ISSUE_TEMPLATE/config.yml"))
    assert config["blank_issues_enabled"] is False
    assert _ADVISORY in [link["url"] for link in config["contact_links"]]
    assert _ADVISORY in _text("SECURITY.md")
    assert _ADVISORY in _text("CODE_OF_CONDUCT.md")
    assert _ADVISORY in _text(".github/ISSUE_TEMPLATE/bug.yml")


def _row(name: str) -> list[str]:
    [line] = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", _text("SUPPORT.md"), re.MULTILINE)
    return [cell.strip() for cell in line.split(" | ")]


def test_what_is_said_to_be_tested_is() -> None:
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    pythons = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert _row("Python of the command line")[0].split(", ") == pythons
    assert project["requires-python"] == f">={pythons[0]}"
    assert _row("Helm")[0] == f"{HELM.partition('.')[0]}, {HELM_3.rpartition('.')[0]} (renders the same)"


def test_the_chart_says_whose_it_is_and_where_to_read_on() -> None:
    chart = _chart()
    assert chart["home"] == REPOSITORY
    assert REPOSITORY in chart["sources"]
    [maintainer] = chart["maintainers"]
    links = yaml.safe_load(chart["annotations"]["artifacthub.io/links"])
    changes = yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])
    assert {one["kind"] for one in changes} <= {"added", "changed", "deprecated", "removed", "fixed", "security"}
    urls = [maintainer["url"], *(one["url"] for one in links), *(one["url"] for it in changes for one in it["links"])]
    page, picture = f"{REPOSITORY}/blob/main/", "https://raw.githubusercontent.com/fairlead-dev/fairlead/main/"
    assert [url for url in urls if not url.startswith(page) or not (ROOT / url.removeprefix(page)).exists()] == []
    assert chart["icon"].startswith(picture)
    assert "<svg" in _text(chart["icon"].removeprefix(picture))
    assert all(isinstance(yaml.safe_load(one), list | bool | str) for one in chart["annotations"].values())


def test_artifact_hub_lists_no_version_that_is_not_released() -> None:
    [ignored] = yaml.safe_load(_text("artifacthub-repo.yml"))["ignore"]
    assert ignored["name"] == _chart()["name"]
    assert re.fullmatch(ignored["version"], "0.2.0-dev.0")
    assert not re.fullmatch(ignored["version"], "0.2.0-rc.1")


def test_urls_of_the_package_lead_to_files() -> None:
    urls = tomllib.loads(_text("pyproject.toml"))["project"]["urls"].values()
    paths = [url.removeprefix(f"{REPOSITORY}/").partition("/main/")[2] for url in urls if "/main/" in url]
    assert len(paths) == 3
    assert [path for path in paths if not (ROOT / path).exists()] == []


_SUPPORTED = re.findall(
    r"^\| ([\w ]+) \| (.+) \|$",
    _text("SUPPORT.md").partition("## What it runs on")[2].partition("\n## ")[0],
    re.MULTILINE,
)


@pytest.mark.parametrize(("name", "cells"), _SUPPORTED)
def test_the_page_of_compatibility_says_what_support_says(name: str, cells: str) -> None:
    assert f"| {name} | {cells} |\n" in _text("docs/compatibility.md")


def test_pages_name_the_pythons_that_are_supported() -> None:
    tested = _row("Python of the command line")[0].split(", ")
    ends = f"{tested[0]} to {tested[-1]}"
    assert f"Python {ends}" in " ".join(_text("README.md").split())
    assert f"Python {ends}" in " ".join(_text("docs/guide/install.md").split())
