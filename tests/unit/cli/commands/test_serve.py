"""`fairlead serve` and `fairlead certs`: exit codes, and messages without a traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from cryptography import x509

from fairlead.cli.main import main

KUBECONFIG = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("LOG_LEVEL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "policies").mkdir()
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    assert main(["certs", "--out", str(tmp_path / "tls")]) == 0
    return tmp_path


def arguments(folder: Path, **other: str) -> list[str]:
    given = {
        "policies": folder / "policies",
        "kubeconfig": folder / "kubeconfig",
        "tls-cert": folder / "tls" / "server.crt",
        "tls-key": folder / "tls" / "server.key",
        "client-ca": folder / "tls" / "ca.crt",
        "listen": "127.0.0.1:0",
        "probes": "127.0.0.1:0",
    } | {key.replace("_", "-"): value for key, value in other.items()}
    return ["serve", *(f"--{key}={value}" for key, value in given.items() if value)]


USAGE: dict[str, tuple[dict[str, str], str]] = {
    "no port": ({"listen": "here"}, "'here' is not HOST:PORT"),
    "no time": ({"timeout": "soon"}, "--timeout 'soon' is not a duration such as"),
    "no time at all": ({"timeout": "0s"}, "--timeout 0s is less than 50ms"),
    "no body": ({"max_body": "0"}, "--max-body 0 is not between"),
    "nobody": ({"allow": "x"}, "--allow 'x' is not NAME=SCHEDULER"),
    "no verb": ({"allow": "x=y:bind,delete"}, "'delete' is not one of bind, filter"),
    "decisions for the network": ({"decisions": "0.0.0.0:8081"}, "--decisions 0.0.0.0:8081: must be 127.0.0.1:PORT"),
    "decisions for all": ({"decisions": ":8081"}, "--decisions :8081: must be 127.0.0.1:PORT"),
    "no level": ({}, "LOG_LEVEL is 'LOUD'; it must be one of TRACE"),
}


@pytest.mark.parametrize("case", USAGE)
def test_what_is_no_use_is_2(
    ground: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, want = USAGE[case]
    if case == "no level":
        monkeypatch.setenv("LOG_LEVEL", "loud")
    assert main(arguments(ground, **other)) == 2
    assert want in capsys.readouterr().err


FAILS: dict[str, tuple[Callable[[Path], Any], dict[str, str], str]] = {
    "no authority": (lambda at: (at / "tls/ca.crt").unlink(), {}, "ca.crt cannot be read: No such file"),
    "no certificate": (lambda at: (at / "tls/server.crt").write_text(""), {}, "server.crt holds no certificate"),
    "no policies": (lambda at: (at / "policies").rmdir(), {}, "policies: No such file or directory"),
    "no kubeconfig": (lambda at: (at / "kubeconfig").unlink(), {}, "kubeconfig"),
    "no cluster": (lambda _: None, {"kubeconfig": ""}, "give --kubeconfig FILE, or set KUBECONFIG"),
    "no settings": (lambda _: None, {"settings": "none.yaml"}, "none.yaml: cannot be read: No such file or directory"),
    "settings that say nothing": (
        lambda at: (at / "settings.yaml").write_text("prometheus: [{name: a}]"),
        {"settings": "settings.yaml"},
        "settings.yaml: prometheus[0].url: is missing; URL without /api/v1",
    ),
    "no host": (lambda _: None, {"listen": "192.0.2.1:0"}, "cannot listen on 192.0.2.1:0: "),
}


@pytest.mark.parametrize("case", FAILS)
def test_what_cannot_be_is_1_and_one_line(
    ground: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil, other, want = FAILS[case]
    monkeypatch.chdir(ground)
    spoil(ground)
    capsys.readouterr()
    assert main(arguments(ground, **other)) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fairlead serve: ")]
    assert len(said) == 1
    assert want in said[0]


def test_a_signal_ends_it_well(ground: Path) -> None:
    environment = {**os.environ, "LOG_LEVEL": "TRACE", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "fairlead", *arguments(ground, drain="0s", log_format="json")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr
        too_long = Timer(120, process.kill)
        too_long.start()
        for line in process.stderr:
            if '"message": "server.listening"' in line:
                process.send_signal(signal.SIGTERM)
                break
        rest = process.stderr.read()
        too_long.cancel()
    assert (process.returncode, "Traceback" in rest) == (0, False), rest
    assert '"message": "server.stopping"' in rest


def test_keys_are_for_nobody_else_and_the_authority_is_kept(tmp_path: Path) -> None:
    assert main(["certs", "--out", str(tmp_path), "--host", "sched.example", "--host", "10.1.2.3"]) == 0
    (tmp_path / ".server.key").write_text("left behind")
    (tmp_path / ".server.key").chmod(0o644)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["certs", "--out", str(tmp_path)]) == 0
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name for name in after if before.get(name) == after[name]} == {"ca.crt", "ca.key"}
    assert {(tmp_path / f"{name}.key").stat().st_mode & 0o777 for name in ("ca", "server", "scheduler")} == {0o600}
    names = x509.load_pem_x509_certificate(before["server.crt"]).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert "sched.example" in names.value.get_values_for_type(x509.DNSName)


CERTS: dict[str, tuple[Callable[[Path], Any], list[str], int, str]] = {
    "half an authority": (lambda at: (at / "ca.key").unlink(), [], 1, "ca.crt exists but ca.key does not: restore it"),
    "another's key": (lambda at: (at / "server.key").rename(at / "ca.key"), [], 1, "the key does not belong to"),
    "no authority": (lambda at: (at / "ca.crt").write_text("x"), [], 1, "ca.crt and ca.key are not a CA"),
    "no host": (lambda _: None, ["--host", "a b"], 2, "--host 'a b' is not a host name or an IP address"),
}


@pytest.mark.parametrize("case", CERTS)
def test_certificates_that_cannot_be_made(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, more, code, want = CERTS[case]
    assert main(["certs", "--out", str(tmp_path)]) == 0
    spoil(tmp_path)
    assert main(["certs", "--out", str(tmp_path), *more]) == code
    assert want in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["certs", "--out", str(tmp_path / "file")]) == 1
    assert "file: File exists" in capsys.readouterr().err
