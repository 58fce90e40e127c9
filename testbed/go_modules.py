"""Sources of Go modules that are read, not built."""

import json
import subprocess
from pathlib import Path

from testbed import build, toolchain
from testbed.errors import ClusterError


def download(name: str, *, of: Path) -> Path:
    """The folder of a module in the version that the go.mod in the folder `of` names."""
    command = [str(toolchain.go()), "mod", "download", "-json", name]
    answer = subprocess.run(command, cwd=of, env=build.environment(), capture_output=True, text=True, check=False)
    if answer.returncode:
        why = answer.stderr.strip() or answer.stdout.strip()
        raise ClusterError(
            f"the Go module {name} could not be fetched: {why}",
            cure="see that the Go module proxy answers, and call this again",
        )
    return Path(json.loads(answer.stdout)["Dir"])
