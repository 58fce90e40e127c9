"""Which Pythons the tests run on: those of the machine, and for the others suites of Debian."""

from pathlib import Path

import pytest
from release.dist import SUPPORTED
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


def test_a_python_of_this_machine_is_taken_before_one_of_debian(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pythons, "interpreters", lambda _: {"3.12": Path("/opt/python3.12")})
    monkeypatch.setattr(pythons, "_system", lambda suite: tmp_path / suite)
    found = pythons.find(["3.12", "3.13", "3.14"])
    assert found == [
        Interpreter("3.12", Path("/opt/python3.12")),
        Interpreter("3.13", Path("/usr/bin/python3.13"), tmp_path / "trixie"),
        Interpreter("3.14", Path("/usr/bin/python3.14"), tmp_path / "forky"),
    ]
    assert str(found[2]) == "Python 3.14, of Debian forky"


def test_one_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def no_debian(suite: str) -> Path:
        raise ClusterError(f"there is no {suite}")

    monkeypatch.setattr(pythons, "interpreters", lambda _: {"3.11": Path("/usr/bin/python3.11")})
    monkeypatch.setattr(pythons, "_system", no_debian)
    monkeypatch.setattr(pythons, "test", lambda _, tests: f"1 passed of {tests}")
    pythons.main(["3.11", "3.14"])
    out, err = capsys.readouterr()
    assert out == (
        "Python 3.11, of this machine: /usr/bin/python3.11: 1 passed of ['tests/unit']\n"
        "Python 3.14: not tried, as it cannot be had here\n"
    )
    assert "Python 3.14 of Debian forky cannot be had here: there is no forky" in err


def test_commands_run_in_the_system_of_the_interpreter(tmp_path: Path) -> None:
    assert Interpreter("3.12", Path("/p")).command("/p", "-V") == ["/p", "-V"]
    command = Interpreter("3.14", Path("/p"), tmp_path).command("/p", "-V")
    assert command[-3:] == [tmp_path, "/p", "-V"]
    assert "unshare" in command


def test_suites_are_for_pythons_that_are_supported() -> None:
    assert {*pythons.SUITES} <= {*SUPPORTED}
