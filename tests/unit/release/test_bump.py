"""A release, rehearsed on a clone: every place has the version, and nothing else has changed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from release.project import ROOT, ReleaseError

from release import bump

_IDENTITY = {"user.name": "A maintainer", "user.email": "maintainers@fairlead.invalid", "commit.gpgsign": "false"}
_FILES = sorted({place.file for place in bump.PLACES} | {"CHANGELOG.md"})


def _git(clone: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that have a version, committed."""
    for name in _FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    _git(tmp_path, "init", "--quiet")
    for name, value in _IDENTITY.items():
        _git(tmp_path, "config", name, value)
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "before")
    return tmp_path


def _release(clone: Path, version: str, check: str = "true") -> None:
    bump.main(version, clone, checks=[[check]], generate=["true"])


def test_every_place_gets_the_version(clone: Path) -> None:
    _release(clone, "0.2.0-rc.1")
    chart = yaml.safe_load((clone / "charts/fairlead/Chart.yaml").read_text())
    assert '__version__ = "0.2.0rc1"' in (clone / "operator/fairlead/__init__.py").read_text()
    assert (chart["version"], chart["appVersion"]) == ("0.2.0-rc.1", "0.2.0-rc.1")
    assert chart["annotations"]["artifacthub.io/prerelease"] == "true"
    assert "image: ghcr.io/fairlead-dev/fairlead:0.2.0-rc.1" in chart["annotations"]["artifacthub.io/images"]
    assert re.search(
        r"\n## \[Unreleased\]\n\n## \[0\.2\.0-rc\.1\] - 20\d\d-\d\d-\d\d\n", (clone / "CHANGELOG.md").read_text()
    )
    assert _git(clone, "describe") == "v0.2.0-rc.1"
    assert _git(clone, "log", "-1", "--format=%s") == "release: 0.2.0-rc.1"
    assert _git(clone, "status", "--porcelain") == ""


def test_then_the_final_one_and_the_next_in_development(clone: Path) -> None:
    for version in ("0.2.0", "0.3.0-dev.0"):
        _release(clone, version)
    assert '__version__ = "0.3.0.dev0"' in (clone / "operator/fairlead/__init__.py").read_text()
    headings = re.findall(r"^## \[(.+?)\]", (clone / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", "0.2.0"]
    assert _git(clone, "tag") == "v0.2.0"
    released = yaml.safe_load(_git(clone, "show", "v0.2.0:charts/fairlead/Chart.yaml"))
    assert released["annotations"]["artifacthub.io/prerelease"] == "false"


def test_a_tree_that_is_not_clean_is_refused(clone: Path) -> None:
    (clone / "notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"the tree is not clean: .*\n\?\? notes.txt"):
        _release(clone, "0.2.0")
    assert _git(clone, "tag") == ""


def test_a_tree_that_fails_is_refused_and_left_as_it_was(clone: Path) -> None:
    with pytest.raises(ReleaseError, match="`false` failed"):
        _release(clone, "0.2.0", check="false")
    assert (_git(clone, "status", "--porcelain"), _git(clone, "tag")) == ("", "")


def test_a_version_is_released_once(clone: Path) -> None:
    _release(clone, "0.2.0")
    with pytest.raises(ReleaseError, match=r"v0\.2\.0 is there"):
        _release(clone, "0.2.0")


@pytest.mark.parametrize("version", ["", "0.2", "v0.2.0", "0.2.0rc1", "0.2.0-1"])
def test_what_is_no_version_is_refused(clone: Path, version: str) -> None:
    with pytest.raises(ReleaseError):
        _release(clone, version)


def test_a_place_that_has_moved_is_said(clone: Path) -> None:
    path = clone / "docs/guide/extender-in-one-pod.md"
    path.write_text(path.read_text().replace("ghcr.io/fairlead-dev", "elsewhere.example"))
    with pytest.raises(ReleaseError, match=r"extender-in-one-pod\.md has 0 lines like"):
        bump.bump("0.2.0", clone)


def test_the_versions_of_this_checkout_are_one(clone: Path) -> None:
    """Setting the version that it has changes nothing."""
    chart = yaml.safe_load((ROOT / "charts/fairlead/Chart.yaml").read_text())
    bump.bump(chart["version"], clone)
    assert _git(clone, "status", "--porcelain") == ""
