"""A registry of this machine, in which images and charts are tried."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from testbed import build
from testbed.api import wait_for
from testbed.versions import program


@contextlib.contextmanager
def serve(folder: Path, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve a registry from a folder for as long as the context lasts; its address is `host:port`."""
    crane = build.build([program("crane")])["crane"]
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    if not port:
        with socket.socket() as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
    command = [str(crane), "registry", "serve", "--address", f"{host}:{port}", "--disk", str(folder / "blobs")]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(f"the registry at {host}:{port}", lambda: _answers(host, port) or None, timeout_s=20)
            yield f"{host}:{port}"
        finally:
            process.terminate()


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
