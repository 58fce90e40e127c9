"""The manifest for krew, and what is packed: what needs no bundle, which `make test-release` makes."""

import hashlib
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from release.project import REPOSITORY, ReleaseError

from release import bundle, krew, publish

_PLATFORMS = ("darwin-arm64", "linux-amd64", "linux-arm64")


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for name in _PLATFORMS:
        (tmp_path / f"kubectl-fairlead-0.2.0-{name}.tar.gz").write_text(name)
    for other in (
        "kubectl-fairlead-0.1.0-linux-amd64.tar.gz",
        "fairlead-0.2.0.tar.gz",
        "kubectl-fairlead-0.2.0-rc.1.tar.gz",
    ):
        (tmp_path / other).write_text("of another version, or no bundle")
    return tmp_path


def test_the_manifest_has_each_platform_of_the_version(dist: Path) -> None:
    made = yaml.safe_load(krew.write(dist, "0.2.0").read_text())
    assert (made["kind"], made["metadata"]["name"], made["spec"]["version"]) == ("Plugin", "fairlead", "v0.2.0")
    assert made["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert len(made["spec"]["shortDescription"]) <= 50, "krew's index asks for short ones"
    for name, platform in zip(_PLATFORMS, made["spec"]["platforms"], strict=True):
        system, architecture = name.split("-")
        assert platform["selector"] == {"matchLabels": {"os": system, "arch": architecture}}
        assert platform["sha256"] == hashlib.sha256(name.encode()).hexdigest()
        assert platform["uri"] == f"{REPOSITORY}/releases/download/v0.2.0/kubectl-fairlead-0.2.0-{name}.tar.gz"
        assert (platform["bin"], platform["files"]) == ("kubectl-fairlead", [{"from": "kubectl-fairlead/*", "to": "."}])


def test_without_a_bundle_there_is_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no bundle of 9\.9\.9 is in .*: make binary"):
        krew.write(tmp_path, "9.9.9")


def test_the_release_is_drafted_with_bundles_manifest_and_changes(dist: Path) -> None:
    changelog = (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-01\n\n### Added\n- one\n\n## [0.1.0] - 2026-12-01\n"
    )
    command = [str(word) for word in publish.draft("0.2.0", dist, changelog)]
    assert command[:6] == ["gh", "release", "create", "v0.2.0", "--draft", "--verify-tag"]
    assert "--notes=### Added\n- one" in command
    assert "--prerelease" not in command
    names = [Path(one).name for one in command if one.startswith(str(dist))]
    assert names == [*(f"kubectl-fairlead-0.2.0-{name}.tar.gz" for name in _PLATFORMS), "fairlead.krew.yaml"]
    with pytest.raises(ReleaseError, match=r"no section \[0\.1\.0\]"):
        publish.draft("0.1.0", dist, "# Changelog\n")


def test_a_release_candidate_is_a_prerelease(dist: Path) -> None:
    (dist / "kubectl-fairlead-0.3.0-rc.1-linux-amd64.tar.gz").write_text("")
    assert "--prerelease" in publish.draft("0.3.0-rc.1", dist, "## [0.3.0-rc.1] - 2027-01-01\n")


def test_pypi_gets_no_bundle(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    wheel = "fairlead-0.2.0-py3-none-any.whl"
    (dist / wheel).touch()
    assert [one.name for one in publish.packages_in(dist)] == [wheel, "fairlead-0.2.0.tar.gz"]
    with pytest.raises(ReleaseError, match=r"no packages are in .*: make dist"):
        publish.packages_in(tmp_path_factory.mktemp("empty"))


def test_only_plain_files_are_packed_and_twice_to_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "kubectl-fairlead"
    (folder / "_internal").mkdir(parents=True)
    (folder / "_internal" / "library.so.1").write_text("library")
    (folder / "_internal" / "library.so").symlink_to("library.so.1")
    (folder / "_internal" / "again").hardlink_to(folder / "_internal" / "library.so.1")
    archives = [tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"]
    for archive in archives:
        bundle.pack(folder, archive)
        (folder / "_internal" / "library.so.1").touch()
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as packed:
        assert {member.type for member in packed} == {tarfile.REGTYPE}
        assert [member.size for member in packed] == [7, 7, 7]
        assert packed.getnames()[0] == "kubectl-fairlead/_internal/again"


def test_collected_files_are_found_in_the_table() -> None:
    table = ([("a", "/x/a", "BINARY"), ("b", "/x/b", "DATA")], "kubectl-fairlead", False, ("c", "/x/c", "EXTENSION"))
    assert [name for name, _, _ in bundle.entries(table)] == ["a", "b", "c"]


def test_a_library_of_which_no_licence_is_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "library.so").touch()
    with pytest.raises(ReleaseError, match="no package of the system says under which licence"):
        bundle._of_package(tmp_path / "library.so")


def test_the_glibc_that_is_needed_is_the_highest_that_a_library_names(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"\x7fELF\0GLIBC_2.9\0GLIBC_2.34\0")
    (tmp_path / "b.so").write_bytes(b"\x7fELF\0GLIBC_2.17\0")
    (tmp_path / "page.txt").write_text("GLIBC_2.99")
    assert bundle.glibc_of(tmp_path) == "2.34"


def test_strategies_may_import_the_standard_library() -> None:
    names = bundle.standard_library()
    assert {"graphlib", "statistics", "zoneinfo"} <= {*names} <= sys.stdlib_module_names
    assert not {"tkinter", "winreg", "antigravity"} & {*names}
