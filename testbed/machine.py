"""What this machine can do, which decides the provider."""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed import build, images
from testbed.versions import program

_PROBE = "fairlead.dev/testbed/probe:1"
_TIMEOUT_S = 60


@functools.cache
def docker_obstacle() -> str:
    """Why Docker cannot start a privileged container, which kind's nodes are; empty when it can."""
    if not shutil.which("docker"):
        return "there is no docker command"
    try:
        answer = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        if answer.returncode:
            return f"no Docker engine answers: {_last_line(answer.stderr)}"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "probe.tar")
            file.write_bytes(images.archive(_PROBE, build.build([program("pod")])["pod"]))
            subprocess.run(
                ["docker", "load", "--quiet", "--input", str(file)],
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        answer = subprocess.run(
            ["docker", "run", "--rm", "--privileged", "--network=none", _PROBE, "exit", "0"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        subprocess.run(["docker", "image", "rm", _PROBE], capture_output=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "Docker does not answer within a minute"
    return "" if answer.returncode == 0 else f"Docker cannot start a privileged container: {_last_line(answer.stderr)}"


def _last_line(text: str) -> str:
    return next(reversed([line for line in text.splitlines() if line.strip()]), "no message")
