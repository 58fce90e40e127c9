"""However a command ends, it is with the right exit code and one line at most: each of them as a process."""

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import fairlead
from fairlead.cli.commands import crd
from fairlead.cli.main import main, parser
from support.cli.status_api import kubeconfig
from support.policy.lint import GOOD

_COMMAND = [sys.executable, "-m", "fairlead"]
_NOWHERE = "http://127.0.0.1:1"
_HANGS_AFTER_S = 300  # no command takes so long even on a machine that does fifty things at once
_STOPS_AT = """
import os, runpy, signal, sys

class At:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            os.kill(os.getpid(), signal.SIGINT)

where = sys.argv.pop(1)
sys.meta_path.insert(0, At())
runpy.run_module("fairlead", run_name="__main__", alter_sys=True)
"""
"""Ctrl-C as a module is about to be imported."""


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Tests that run in the background of a script have none, and would hand that on to what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "garbage").write_text("a: [")
    (tmp_path / "empty-home").mkdir()
    kubeconfig(_NOWHERE, tmp_path)
    return tmp_path


def _environment(folder: Path) -> dict[str, str]:
    source = str(Path(fairlead.__file__).parents[1])
    return {"PATH": os.environ["PATH"], "PYTHONPATH": source, "HOME": str(folder / "empty-home")}


def _run(
    folder: Path, *arguments: str, stdout: int = subprocess.PIPE, at_once: bool = False
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*_COMMAND, *arguments],
        cwd=folder,
        env={**_environment(folder), **({"PYTHONUNBUFFERED": "1"} if at_once else {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_HANGS_AFTER_S,
        check=False,
    )


PRINTING: dict[str, tuple[list[str], int]] = {
    "--help": (["--help"], 0),
    "--help, written at once": (["--help"], 0),
    "nothing asked": ([], 0),
    "help": (["help", "lint"], 0),
    "--version": (["--version"], 0),
    "lint": (["lint", "a.yaml"], 0),
    "lint with errors": (["lint", "garbage"], 1),
    "render": (["render", "a.yaml"], 0),
    "crd": (["crd"], 0),
    "certs": (["certs", "--out", "tls"], 0),
    "completion": (["completion", "bash"], 0),
    "version": (["version"], 0),
    "version for programs": (["version", "-o", "json"], 0),
}
"""Commands that print something, and their exit code when all of it is read."""


@pytest.mark.parametrize("case", PRINTING)
def test_who_does_not_read_to_the_end_does_not_take_it_for_a_result(case: str, here: Path) -> None:
    arguments, _ = PRINTING[case]
    read, write = os.pipe()
    os.close(read)
    try:
        done = _run(here, *arguments, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("case", PRINTING)
def test_a_full_disk_is_said(case: str, here: Path) -> None:
    arguments, _ = PRINTING[case]
    with Path("/dev/full").open("w") as full:
        done = _run(here, *arguments, stdout=full.fileno(), at_once="at once" in case)
    assert done.returncode == 2
    assert re.fullmatch(r"fairlead\S*.*: No space left on device\n", done.stderr)


def _run_with(redirection: str, here: Path, arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    """As a shell starts it."""
    line = f"exec {' '.join([*_COMMAND, *arguments])} {redirection}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=here,
        env=_environment(here),
        capture_output=True,
        text=True,
        timeout=_HANGS_AFTER_S,
        check=False,
    )


@pytest.mark.parametrize("case", PRINTING)
def test_output_that_is_closed_is_no_fault(case: str, here: Path) -> None:
    arguments, want = PRINTING[case]
    done = _run_with(">&-", here, arguments)
    assert (done.returncode, done.stderr) == (want, "")


STOPPED: dict[str, tuple[str, list[str]]] = {
    "before anything": ("fairlead.cli.main", ["version"]),
    "as arguments are about to be read": ("argparse", ["--help"]),
    "lint, as the models are loaded": ("pydantic", ["lint", "a.yaml"]),
    "lint, as the language is loaded": ("fairlead.cel.check", ["lint", "a.yaml"]),
    "render, as templates are loaded": ("jinja2", ["render", "a.yaml"]),
    "status, as the client is loaded": ("aiohttp", ["status", "--kubeconfig", "kubeconfig"]),
    "crd": ("fairlead.api.crdgen", ["crd"]),
    "certs": ("cryptography", ["certs", "--out", "tls"]),
    "uninstall": ("asyncio", ["uninstall", "--kubeconfig", "kubeconfig"]),
    "serve": ("aiohttp", ["serve", "--policies", ".", "--tls-cert", "x", "--tls-key", "x", "--client-ca", "x"]),
    "operate": ("aiohttp", ["operate", "--kubeconfig", "kubeconfig"]),
}


@pytest.mark.parametrize("case", STOPPED)
def test_who_presses_ctrl_c_while_it_loads_sees_nothing(case: str, here: Path) -> None:
    where, arguments = STOPPED[case]
    done = subprocess.run(
        [sys.executable, "-c", _STOPS_AT, where, *arguments],
        cwd=here,
        env=_environment(here),
        capture_output=True,
        text=True,
        timeout=_HANGS_AFTER_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    assert not (here / "tls").exists()


def test_who_presses_ctrl_c_while_the_cluster_is_silent_sees_nothing(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = kubeconfig(f"http://127.0.0.1:{server.getsockname()[1]}", here)
        asking = subprocess.Popen(
            [*_COMMAND, "status", "--kubeconfig", str(file)],
            env=_environment(here),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=_HANGS_AFTER_S)
    assert (asking.returncode, out, err) == (-signal.SIGINT, b"", b"")


CANNOT: dict[str, tuple[list[str], int, str]] = {
    "lint, no such file": (["lint", "nothing.yaml"], 2, ""),
    "render, no such file": (
        ["render", "nothing.yaml"],
        2,
        r"nothing.yaml:1:1: error: cannot be read: no such file .*",
    ),
    "status, nobody there": (
        ["status", "--kubeconfig", "kubeconfig"],
        2,
        rf"fairlead status: .*{_NOWHERE} cannot be .*",
    ),
    "status, no such kubeconfig": (["status", "--kubeconfig", "nothing"], 2, r"fairlead status: nothing: .*"),
    "status, a kubeconfig that is none": (["status", "--kubeconfig", "garbage"], 2, r"fairlead status: garbage: .*"),
    "status, no kubeconfig at all": (["status"], 2, r"fairlead status: no cluster: .*; give --kubeconfig FILE, or .*"),
    "status, no such context": (
        ["status", "--kubeconfig", "kubeconfig", "--context", "other"],
        2,
        r"fairlead status: kubeconfig: .*other.*",
    ),
    "uninstall, no such kubeconfig": (["uninstall", "--kubeconfig", "nothing"], 2, r"fairlead uninstall: nothing: .*"),
    "uninstall, nobody there": (
        ["uninstall", "--kubeconfig", "kubeconfig", "--within", "1s"],
        2,
        r"fairlead uninstall: .*127.0.0.1.*; check that the cluster is up, and that --kubeconfig and .*",
    ),
    "uninstall, a time that is none": (["uninstall", "--within", "soon"], 2, r"fairlead uninstall: --within 'soon'.*"),
    "certs, a file where a folder is to be": (["certs", "--out", "a.yaml"], 1, r"fairlead certs: a.yaml: File exists"),
    "an argument that there is not": (
        ["lint", "a.yaml", "--nothing"],
        2,
        "fairlead lint: unrecognized arguments: --nothing; see `fairlead lint --help`",
    ),
    "an argument that is missing": (["lint"], 2, r"fairlead lint: the following arguments are required: FILE.*"),
    "a command that there is not": (["lynt"], 2, r"fairlead: there is no command 'lynt': did you mean lint\? See .*"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_done_is_one_line(case: str, here: Path) -> None:
    arguments, want, said = CANNOT[case]
    done = _run(here, *arguments)
    assert done.returncode == want, done
    assert re.fullmatch(said, done.stderr.removesuffix("\n")), done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("case", CANNOT)
def test_what_nobody_hears_ends_all_the_same(case: str, here: Path) -> None:
    """As in `fairlead ... 2>&1 | true`: Python would end with 120 when it cannot say something."""
    arguments, want, _ = CANNOT[case]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*_COMMAND, *arguments],
            cwd=here,
            env=_environment(here),
            stdout=write,
            stderr=write,
            timeout=_HANGS_AFTER_S,
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode in (want, 141)


@pytest.mark.parametrize("case", CANNOT)
def test_where_errors_are_closed_they_are_not_taken_for_results(case: str, here: Path) -> None:
    arguments, want, _ = CANNOT[case]
    done = _run_with("2>&-", here, arguments)
    assert done.returncode == want
    assert case.startswith("lint") or done.stdout == ""


def test_a_fault_of_ours_is_one_line_that_says_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: object) -> int:
        raise ValueError("two\nlines")

    monkeypatch.setattr(crd, "run", fails)
    assert main(["crd"]) == 70
    err = capsys.readouterr().err
    assert re.fullmatch(
        r"fairlead crd: a bug in Fairlead, please report it: ValueError: two\\nlines \(\S+:\d+, \w+\)\n", err
    )


def test_who_raises_what_ctrl_c_raises_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(crd, "run", stops)
    assert main(["crd"]) == 130


def test_a_shell_without_ctrl_c_keeps_it_so(here: Path) -> None:
    """What runs in the background of a script is not ended by Ctrl-C for what runs before it."""
    line = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import fairlead.__main__ as m, sys;"
    ask = f"{line} m._restore_interrupt(); print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env=_environment(here),
        capture_output=True,
        text=True,
        timeout=_HANGS_AFTER_S,
        check=False,
    )
    assert done.stdout == "True\n"


def test_as_a_plugin_it_calls_itself_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-fairlead"])
    with pytest.raises(SystemExit):
        main(["lint", "--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl fairlead lint ")


def test_each_command_says_what_it_is_for() -> None:
    for name, one in parser()._subparsers._group_actions[0].choices.items():  # type: ignore[union-attr]
        assert one.description, name
        assert [action.dest for action in one._actions if not action.help] == [], name


def test_each_program_that_is_installed_is_there() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]
    assert {*project["scripts"]} == {"fairlead", "kubectl-fairlead", "kubectl_complete-fairlead"}
    for where in project["scripts"].values():
        module, _, name = where.partition(":")
        assert callable(getattr(import_module(module), name))
