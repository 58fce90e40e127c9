"""The programs that are compared: `fairlead serve`, and the peers, which are built from Go into the testbed's cache."""

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

from testbed import build
from testbed.layout import free_ports
from testbed.versions import Program

PEERS: Final = Path(__file__).with_name("peers")
_READY_S: Final = 600.0
_END_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Extender:
    """An extender that runs."""

    url: str
    pid: int
    certificates: Path | None = None
    """The folder with the files of its callers, if it has TLS."""
    probes: str = ""

    def metrics(self) -> str:
        """Return its page of metrics, which may be a second old."""
        with urllib.request.urlopen(f"{self.probes}/metrics", timeout=5) as answer:  # noqa: S310  our own
            return str(answer.read().decode())


@dataclass(frozen=True, slots=True)
class Target:
    """A URL to call, and the files of the bodies to send, one after the other."""

    url: str
    bodies: Sequence[Path]


def peer(name: str) -> Path:
    """Return the path of the program, built if it is missing."""
    return build.build([Program(name, "1", PEERS, f"./{name}")])[name]


@contextmanager
def peer_running(name: str, *options: str) -> Iterator[Extender]:
    """Run a peer that answers."""
    (port,) = free_ports(1)
    with running([peer(name), *options, f"127.0.0.1:{port}"]) as process:
        url = f"http://127.0.0.1:{port}"
        _wait(f"{url}/", process)
        yield Extender(url, process.pid)


@contextmanager
def peer_running_over_tls(name: str, folder: Path, *options: str) -> Iterator[Extender]:
    """Run a peer that can answer over TLS; the folder is for its certificates."""
    (port,) = free_ports(1)
    certificates = _certificates(folder)
    with running([peer(name), *options, f"127.0.0.1:{port}", certificates]) as process:
        url = f"https://127.0.0.1:{port}"
        _wait(f"{url}/", process, client_context(certificates))
        yield Extender(url, process.pid, certificates)


@contextmanager
def fairlead_running(
    folder: Path,
    policies: Sequence[Mapping[str, Any]],
    kubeconfig: Path,
    settings: Path | None = None,
    *,
    options: Sequence[str] = (),
    python: str = sys.executable,
) -> Iterator[Extender]:
    """Run the server, and yield it when it is ready; the folder is for its files."""
    certificates, written = _certificates(folder), folder / "policies"
    written.mkdir()
    for number, policy in enumerate(policies):
        (written / f"{number}.yaml").write_text(yaml.safe_dump(dict(policy)))
    port, probes = free_ports(2)
    files = [f"--{name}={certificates}/{file}" for name, file in _FILES.items()]
    files += [] if settings is None else [f"--settings={settings}"]
    files += options
    address, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{probes}"
    command = [
        python,
        "-m",
        "fairlead",
        "serve",
        f"--policies={written}",
        f"--listen={address}",
        f"--probes=127.0.0.1:{probes}",
    ]
    with (
        (folder / "log").open("w") as log,
        running([*command, *files, f"--kubeconfig={kubeconfig}", "--drain=0s"], log) as process,
    ):
        _wait(f"{url}/readyz", process)
        yield Extender(f"https://{address}", process.pid, certificates, url)


@contextmanager
def running(
    command: Sequence[object], log: Any = subprocess.DEVNULL, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that ends with the block."""
    process = subprocess.Popen(
        [str(word) for word in command], stdout=log, stderr=log, env={**os.environ, **(environment or {})}
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def call(targets: Sequence[Target], calls: int, certificates: Path, pause_ms: int = 0) -> list[list[int]]:
    """Call each target in turn, and return how many nanoseconds each call took, by target."""
    pair = [f"-{name}={certificates}/{file}" for name, file in _CLIENT.items()]
    asked = [json.dumps({"URL": one.url, "Bodies": [str(file) for file in one.bodies]}) for one in targets]
    command = [str(peer("caller")), *pair, f"-calls={calls}", "-warm=20", f"-pause={pause_ms}ms", *asked]
    found: list[list[int]] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def ask(extender: Extender, verb: str, body: bytes) -> bytes:
    """Call an extender over TLS, once, and return its reply."""
    if extender.certificates is None:
        raise ValueError(f"{extender.url} has no TLS")
    request = urllib.request.Request(  # noqa: S310  our own
        f"{extender.url}/{verb}", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, context=client_context(extender.certificates)) as answer:  # noqa: S310
        reply: bytes = answer.read()
    return reply


def record(own: Extender, pod: Mapping[str, Any], names: Sequence[str], verbs: Sequence[str], folder: Path) -> None:
    """Ask Fairlead about nodes, once; its replies come into the folder, a file for each verb."""
    for verb in verbs:
        reply = ask(own, verb, json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode())
        (folder / verb).write_bytes(reply)
        if verb == "filter":
            names = json.loads(reply)["NodeNames"]
    (folder / "prioritize").touch()


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a program."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def client_context(certificates: Path) -> ssl.SSLContext:
    """Return the TLS context of a caller in Python."""
    made = ssl.create_default_context(cafile=str(certificates / _CLIENT["ca"]))
    made.load_cert_chain(certificates / _CLIENT["cert"], certificates / _CLIENT["key"])
    return made


_FAIRLEAD: Final = (sys.executable, "-m", "fairlead")
_FILES: Final = {"tls-cert": "server.crt", "tls-key": "server.key", "client-ca": "ca.crt"}
_CLIENT: Final = {"ca": "ca.crt", "cert": "scheduler.crt", "key": "scheduler.key"}


def _certificates(folder: Path) -> Path:
    made = folder / "certificates"
    subprocess.run([*_FAIRLEAD, "certs", "--out", str(made)], check=True, stdout=subprocess.DEVNULL)
    return made


def _wait(url: str, process: subprocess.Popen[bytes], context: ssl.SSLContext | None = None) -> None:
    """Return when the URL answers, and not that the program is not ready."""
    end = time.monotonic() + _READY_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5, context=context):  # noqa: S310  our own
                return
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{process.args!r} is not ready: {url}")
        time.sleep(0.05)
