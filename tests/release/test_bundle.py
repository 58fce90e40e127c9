"""The command line in a folder with its own Python: alone, as a plugin that krew installs, and with its licences."""

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from release.project import ROOT

import fairlead
from release import bundle, krew

_LOCKED = re.findall(r"^([a-z0-9-]+)==(?!.* ; )", (ROOT / "requirements.lock").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as packed:
        assert {member.type for member in packed} == {tarfile.REGTYPE}, "krew unpacks nothing else"
        packed.extractall(folder, filter="data")
    return folder / bundle.NAME


def _run(unpacked: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [unpacked / bundle.NAME, *arguments],
        cwd=ROOT,
        env={"HOME": str(unpacked), "PATH": "/nowhere", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_examples_pass_without_any_python_of_the_machine(archive: Path) -> None:
    assert bundle.try_archive(archive).startswith(fairlead.__version__)


def test_krew_installs_it_and_kubectl_runs_it(archive: Path) -> None:
    krew.try_plugin(krew.write(archive.parent), archive)


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "examples/gpu-class.yaml"],
        ["render", "examples/gpu-class.yaml"],
        ["crd", "-o", "jsonschema"],
        ["completion", "bash"],
        [
            "explain",
            "--pending",
            "-A",
            "--policies",
            "examples/gpu-class.yaml",
            "--snapshot",
            "examples/clusters/gpus.yaml",
        ],
    ],
    ids=lambda one: one[0],
)
def test_commands_find_their_files(arguments: list[str], unpacked: Path) -> None:
    done = _run(unpacked, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [("operate", 1, "no cluster"), ("serve", 2, "the following arguments are required"), ("status", 2, "no cluster")],
)
def test_no_package_is_missing(command: str, code: int, says: str, unpacked: Path) -> None:
    done = _run(unpacked, command)
    assert done.returncode == code
    assert says in done.stderr


def test_a_strategy_of_the_users_own_may_use_the_standard_library(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        "import graphlib, statistics, wave, zoneinfo\nraise SystemExit(str(statistics.mean([1, 3])))\n"
    )
    done = _run(unpacked, "lint", "examples/gpu-class.yaml", FAIRLEAD_STRATEGIES=str(tmp_path))
    assert "No module named" not in done.stdout + done.stderr
    assert "SystemExit: 2" in done.stderr


def test_all_that_it_holds_has_its_licence(unpacked: Path) -> None:
    text = (unpacked / "THIRD_PARTY_LICENCES").read_text()
    headed = {one.lower().replace("_", "-") for one in re.findall(r"^={100}\n(\S+) \S+ \(", text, re.MULTILINE)}
    assert {*_LOCKED} - {"colorama", "tzdata"} <= headed | {"pywin32"}
    assert "pyinstaller" in headed
    assert "setuptools" not in headed
    assert re.search(
        r"^={100}\nPython 3\.\d+\.\d+\n={100}\n\n.*PYTHON SOFTWARE FOUNDATION", text, re.MULTILINE | re.DOTALL
    )
    assert (unpacked / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
