"""A real Prometheus: the package of Debian or Ubuntu, unpacked and not installed.

`FAIRLEAD_PROMETHEUS=3.5.1` has that version built from Go modules instead, which takes minutes: the package of Debian
12 is older than 2.43, the first version that honours `lookback_delta`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed import build, packages
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.layout import free_ports
from testbed.process import Component
from testbed.versions import PROMETHEUS
from testbed.versions import program as built_from

PACKAGE = "prometheus"
_READY = "Server is ready to receive web requests"
_READY_S = 60
_ENDS_S = 30


def obstacle() -> str:
    """Reason why none can be started on this machine; empty when one can."""
    if _wanted() or shutil.which(PACKAGE) or all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return ""
    return "there is neither a prometheus here nor apt-get and dpkg-deb to fetch one"


def program() -> Path:
    """The cached program, fetched or built on the first call; the machine's own where there are no packages."""
    if _wanted():
        return build.build([built_from(PACKAGE)])[PACKAGE]
    if not shutil.which("apt-get"):
        return Path(shutil.which(PACKAGE) or PACKAGE)
    return packages.unpacked(PACKAGE) / "usr" / "bin" / PACKAGE


def _wanted() -> str:
    """The version to build; empty for the package."""
    wanted = os.environ.get("FAIRLEAD_PROMETHEUS", "")
    if wanted not in ("", PROMETHEUS):
        raise ClusterError(
            f"Prometheus {wanted} cannot be built", cure=f"set FAIRLEAD_PROMETHEUS to {PROMETHEUS}, or leave it out"
        )
    return wanted


@dataclass(frozen=True, slots=True)
class Running:
    """A server on loopback, which scrapes every second."""

    port: int
    log: Path


@contextmanager
def running(
    folder: Path,
    targets: Sequence[str],
    *,
    web: Any = None,
    port: int | None = None,
    jobs: Sequence[Any] = (),
    enter: Sequence[str] = (),
) -> Iterator[Running]:
    """A server that scrapes these addresses; `web` is its web configuration, for TLS and logins.

    `jobs` are more configurations of scrapes, and `enter` is the beginning of a command that runs elsewhere, such as
    where pods can be reached.

    One in the folder and on the port of another that has ended goes on from its data.
    """
    port = port or free_ports(1)[0]
    command = [*enter, *_command(folder, targets, f"127.0.0.1:{port}", jobs=jobs)]
    if web is not None:
        (folder / "web.yml").write_text(yaml.safe_dump(web))
        command.append(f"--web.config.file={folder}/web.yml")
    log = folder / "prometheus.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=folder) as process:
        try:
            wait_for("Prometheus to be ready", lambda: _is_ready(process, log), timeout_s=_READY_S)
            yield Running(port, log)
        finally:
            process.kill()
            process.wait(_ENDS_S)


def component(folder: Path, target: str, listen: str, *, path: str) -> Component:
    """A server that outlives this process and scrapes a page of one address."""
    folder.mkdir(parents=True, exist_ok=True)
    return Component(PACKAGE, _command(folder, [target], listen, path))


def _command(
    folder: Path, targets: Sequence[str], listen: str, path: str = "/metrics", jobs: Sequence[Any] = ()
) -> list[str]:
    scrape = {"job_name": "some", "metrics_path": path, "static_configs": [{"targets": [*targets]}]}
    document = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [scrape, *jobs]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    return [
        str(program()),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=1h",
        f"--web.listen-address={listen}",
    ]


def _is_ready(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    if process.poll() is not None:
        raise ClusterError("Prometheus ended", log=log)
    return _READY in log.read_text(errors="replace")
