"""Which Pythons the tests run on: those of the machine, and for the others suites of Debian."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from release.dist import SUPPORTED
from release.project import ROOT, ReleaseError
from release.pythons import Interpreter

from release import pythons
from testbed import rootfs
from testbed.errors import ClusterError

_LISTED = """Debian deb http://mirror.example/debian bookworm main
Debian deb http://mirror.example/debian bookworm-updates main
Debian deb http://mirror.example/debian-security bookworm-security main
Docker deb http://other.example/debian bookworm stable
"""


def test_another_suite_comes_from_where_this_machine_has_packages() -> None:
    assert rootfs.sources_of_suite(_LISTED, "forky") == "deb http://mirror.example/debian forky main\n"
    assert rootfs.sources_of_suite("Ubuntu deb http://mirror.example/ubuntu noble main\n", "forky") == ""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with 3.11 and 3.12 that has Debian's trixie and gets no other; each passes but 3.12."""

    def system(suite: str) -> Path:
        if suite != "trixie":
            raise ClusterError(f"there is no {suite}")
        return tmp_path / suite

    def passed(of: Interpreter, tests: Sequence[str]) -> str:
        if of.version == "3.12":
            raise ReleaseError("tests failed")
        return f"{of.version}.9, tests: 1 passed of {tests}"

    there = {"3.11": Path("/usr/bin/python3.11"), "3.12": Path("/opt/python3.12")}
    monkeypatch.setattr(pythons, "interpreters", lambda wanted: {one: there[one] for one in wanted if one in there})
    monkeypatch.setattr(pythons, "_system", system)
    monkeypatch.setattr(pythons, "test", passed)


@pytest.mark.usefixtures("machine")
def test_a_python_of_this_machine_is_taken_before_one_of_debian(tmp_path: Path) -> None:
    found, missing = pythons.find(["3.12", "3.13"])
    assert found == [
        Interpreter("3.12", Path("/opt/python3.12")),
        Interpreter("3.13", Path("/usr/bin/python3.13"), tmp_path / "trixie"),
    ]
    assert missing == []


@pytest.mark.usefixtures("machine")
def test_all_that_are_supported_are_tried_and_it_says_which_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ReleaseError, match="2 of 4 Pythons were tried and pass"):
        pythons.main()
    assert capsys.readouterr().out == (
        "Python 3.11 of this machine (/usr/bin/python3.11): 3.11.9, tests: 1 passed of ['tests/unit']\n"
        "Python 3.13 of Debian trixie: 3.13.9, tests: 1 passed of ['tests/unit']\n"
        "Python 3.12 of this machine (/opt/python3.12): tests failed\n"
        "Python 3.14 is not on this machine: install it, for example with `.venv/bin/uv python install 3.14`."
        " That of Debian forky cannot be had: there is no forky\n"
    )


@pytest.mark.usefixtures("machine")
def test_only_those_that_are_named_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    pythons.main(["3.13"], ["tests/unit/cel"])
    assert capsys.readouterr().out == "Python 3.13 of Debian trixie: 3.13.9, tests: 1 passed of ['tests/unit/cel']\n"


@pytest.mark.usefixtures("machine")
def test_one_that_cannot_be_had_is_an_error_that_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ReleaseError, match="0 of 1 Pythons"):
        pythons.main(["3.14"])
    assert "`.venv/bin/uv python install 3.14`" in capsys.readouterr().out


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("version", ["3.10", "3.15", "python3.12"])
def test_one_that_is_not_supported_is_refused_before_any_is_tried(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ReleaseError, match=rf"PYTHONS='{version}': those that are supported are 3\.11, "):
        pythons.main(["3.11", version])
    assert capsys.readouterr().out == ""


def test_what_a_run_prints_is_shown_and_its_result_found(capfd: pytest.CaptureFixture[str]) -> None:
    passes = "print('....'); print('2 passed, 1 warning in 3s')"
    assert pythons._last("tests", [sys.executable, "-c", passes], r"\d+ passed.*") == "2 passed, 1 warning in 3s"
    assert capfd.readouterr().err == "....\n2 passed, 1 warning in 3s\n"
    for fails in (f"{passes}; exit(1)", "print('1 failed, 2 passed')", "print('no tests ran')"):
        with pytest.raises(ReleaseError, match=r"^tests failed$"):
            pythons._last("tests", [sys.executable, "-c", fails], r"\d+ passed.*")


def test_the_system_of_another_suite_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="only root on Linux"):
        pythons._system("forky")


def test_the_python_of_the_image_is_one_that_is_supported() -> None:
    [runtime] = re.findall(r"^ARG RUNTIME=\S+/python:(3\.\d+)-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert runtime in SUPPORTED


def test_commands_run_in_the_system_of_the_interpreter(tmp_path: Path) -> None:
    assert Interpreter("3.12", Path("/p")).command("/p", "-V") == ["/p", "-V"]
    command = Interpreter("3.14", Path("/p"), tmp_path).command("/p", "-V")
    assert command[-3:] == [tmp_path, "/p", "-V"]
    assert "unshare" in command


def test_the_history_of_a_linked_worktree_is_that_of_its_checkout(tmp_path: Path) -> None:
    checkout, linked, plain = tmp_path / "checkout", tmp_path / "linked", tmp_path / "plain"
    plain.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (
        ("init", "--quiet", str(checkout)),
        ("-C", str(checkout), *identity, "commit", "--quiet", "--allow-empty", "--message=a"),
        ("-C", str(checkout), "worktree", "add", "--quiet", str(linked)),
    ):
        subprocess.run(["git", *words], check=True, capture_output=True)
    assert pythons._history(linked) == pythons._history(checkout) == checkout / ".git"
    assert pythons._history(plain) == plain


def test_suites_are_for_pythons_that_are_supported() -> None:
    assert {*pythons.SUITES} <= {*SUPPORTED}
