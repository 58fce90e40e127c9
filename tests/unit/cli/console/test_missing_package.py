"""An installation that lacks a package of others, as that of a distribution may: each command as a process."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path

import pytest

import fairlead
from fairlead.cli.console.missing_package import missing_package
from support.cli.status import SCENES
from support.cli.status_api import api_server

_ROOT = Path(__file__).parents[4]
_WITHOUT = """
import runpy, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in without:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

without = sys.argv.pop(1).split(",")
sys.meta_path.insert(0, Without())
runpy.run_module("fairlead", run_name="__main__", alter_sys=True)
"""
_OF_OPERATOR = ("kopf", "prometheus_client", "click", "iso8601", "jsonpatch", "jsonpointer", "pythonjsonlogger")
"""Modules that only the operator needs: kopf with what it brings, and prometheus-client."""


def _run(without: Sequence[str], *arguments: str, home: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT, ",".join(without), *arguments],
        cwd=_ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(fairlead.__file__).parents[1]), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


_GPU = ["--policies", "examples/gpu-class.yaml", "--snapshot", "examples/clusters/gpus.yaml"]
WORKING: dict[str, Sequence[str]] = {
    "lint": ["lint", "examples/gpu-class.yaml"],
    "test": ["test", "examples/tests/gpu-class.test.yaml"],
    "explain": ["explain", "pod/new-model", "-n", "demo", *_GPU],
    "explain --pending": ["explain", "--pending", "-A", *_GPU],
    "simulate": ["simulate", *_GPU],
    "diff": ["diff", "--from", "examples/gpu-class.yaml", "--to", "examples/gpu-class.yaml", *_GPU[2:]],
    "render": ["render", "examples/gpu-class.yaml"],
    "crd": ["crd"],
    "version": ["version"],
}


@pytest.mark.parametrize("case", WORKING)
def test_the_command_line_needs_no_package_of_the_operator(case: str, tmp_path: Path) -> None:
    done = _run(_OF_OPERATOR, *WORKING[case], home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_status_needs_no_package_of_the_operator(tmp_path: Path) -> None:
    with api_server(SCENES["well"][0], tmp_path) as file:
        done = _run(_OF_OPERATOR, "status", "--kubeconfig", str(file), home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("READY: ")


_TLS = ["--tls-cert", "x", "--tls-key", "x", "--client-ca", "x"]
LACKING: dict[str, tuple[Sequence[str], str, str]] = {
    "operate": (["operate"], "kopf", "kopf"),
    "operate, its metrics": (["operate"], "prometheus_client", "prometheus-client"),
    "serve": (["serve", "--policies", "examples", *_TLS], "prometheus_client", "prometheus-client"),
    "lint, the engine": (["lint", "examples/gpu-class.yaml"], "cel_expr_python", "cel-expr-python"),
    "lint, YAML": (["lint", "examples/gpu-class.yaml"], "yaml", "pyyaml"),
    "status": (["status"], "msgspec", "msgspec"),
    "status, the client": (["status"], "aiohttp", "aiohttp"),
    "render": (["render", "examples/gpu-class.yaml"], "jinja2", "jinja2"),
    "certs": (["certs", "--out", "tls"], "cryptography", "cryptography"),
    "a package that one of ours needs": (["status"], "multidict", "multidict"),
}


@pytest.mark.parametrize("case", LACKING)
def test_a_package_that_is_missing_is_one_line_that_says_how_to_install_it(case: str, tmp_path: Path) -> None:
    arguments, module, package = LACKING[case]
    done = _run([module], *arguments, home=tmp_path)
    [wanted] = [one for one in requires("fairlead") or [] if re.split(r"[<>=]", one)[0] == package] or [package]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"fairlead {arguments[0]}: the package {wanted} is not installed: "
        f"install it, as with `{sys.executable} -m pip install '{wanted}'`\n"
    )


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'fairlead.other'", name="fairlead.other"),
        ModuleNotFoundError("No module named '_sqlite3'", name="_sqlite3"),
        ModuleNotFoundError("said by hand"),
        ImportError("cannot import name 'x' from 'kopf'", name="kopf"),
        ValueError("kopf"),
    ],
    ids=repr,
)
def test_other_errors_are_none(error: Exception) -> None:
    assert missing_package(error) is None


def test_an_installation_without_metadata_names_the_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: None)
    said = missing_package(ModuleNotFoundError("no", name="prometheus_client.core"))
    assert said is not None
    assert said.startswith("the package prometheus-client is not installed: ")
