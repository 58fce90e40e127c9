"""A registry of this machine, in which images and charts are tried."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from testbed import build
from testbed.api import wait_for
from testbed.layout import free_ports
from testbed.versions import program

_HOST = "127.0.0.1"


def crane() -> Path:
    """Return the client of registries, which also serves one; built on the first call."""
    return build.build([program("crane")])["crane"]


@contextlib.contextmanager
def serve(folder: Path, *, port: int = 0) -> Iterator[str]:
    """Serve a registry from a folder for as long as the context lasts; its address is `host:port`."""
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    port = port or free_ports(1)[0]
    address = f"{_HOST}:{port}"
    command = [str(crane()), "registry", "serve", "--address", address, "--disk", str(folder / "blobs")]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(f"the registry at {address}", lambda: _answers(port) or None, timeout_s=20)
            yield address
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), timeout=1):
            return True
    except OSError:
        return False
