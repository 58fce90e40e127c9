"""The interpreter that scripts/setup chooses, among commands that say that they have another version."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "setup"
_FUNCTION = """
eval "$(/bin/sed -n '/^supported=/p;/^say()/p;/^find_python()/,/^}/p' "$0")"
find_python
"""
_CASES = {
    "python3 where it will do": (("python3 3.12", "python3.13 3.13"), "python3"),
    "another where python3 is too new": (("python3 3.15", "python3.14 3.14", "python3.12 3.12"), "python3.14"),
    "another where python3 is too old": (("python3 3.9", "python3.11 3.11"), "python3.11"),
}


def _chosen(folder: Path, *commands: str) -> "subprocess.CompletedProcess[str]":
    for name, version in map(str.split, commands):
        command = folder / name
        pretend = f"import sys; sys.version_info = ({version.replace('.', ', ')}, 1); exec(sys.argv[1])"
        command.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo Python {version}.1; exit 0; fi\n'
            f'exec {sys.executable} -c "{pretend}" "$2"\n'
        )
        command.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON"} | {"PATH": str(folder)}
    command_line = ["/bin/bash", "-c", _FUNCTION, str(_SCRIPT)]
    return subprocess.run(command_line, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("commands", "name"), _CASES.values(), ids=_CASES)
def test_an_interpreter_that_will_do_is_chosen(commands: tuple[str, ...], name: str, tmp_path: Path) -> None:
    assert _chosen(tmp_path, *commands).stdout == f"{tmp_path / name}\n"


def test_an_interpreter_newer_than_the_wheels_is_refused_by_name(tmp_path: Path) -> None:
    done = _chosen(tmp_path, "python3 3.15")
    assert done.returncode == 1
    assert "(python3 is Python 3.15.1)" in done.stderr
    assert "PYTHON=/path/to/python make" in done.stderr
