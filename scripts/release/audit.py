"""Asks the public database of weaknesses about what is locked; an audit that could not ask fails."""

import re
import subprocess
import sys
from pathlib import Path

from release.project import ROOT, ReleaseError, run, say

_FOUND = re.compile(r"Found \d+ known vulnerabilit")
_LOGGER = re.compile(r"^[A-Z]+:[\w.]+:")


def command(auditor: Path, lock: Path) -> list[str]:
    """Return what asks about a lock file; without --strict, a package that the database lacks would count as safe."""
    return [str(auditor), "--strict", "--disable-pip", "--require-hashes", "--progress-spinner=off", f"-r{lock}"]


def verdict(printed: str, errors: str) -> str:
    """Return why an audit failed, from what it printed."""
    if _FOUND.search(errors):
        return f"packages with known weaknesses are locked; `make lock` takes newer ones\n{printed.strip()}"
    said = [_LOGGER.sub("", line) for line in errors.splitlines() if line.strip()]
    return f"the database of weaknesses could not be asked, so nothing is known: {said[-1] if said else 'no answer'}"


def main() -> None:
    """Install the auditor into an environment of its own, and ask."""
    folder = ROOT / "build" / "audit"
    run([sys.executable, "-m", "venv", "--clear", folder])
    pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "--require-hashes", "--requirement", ROOT / "requirements-audit.lock"])
    asked = command(folder / "bin" / "pip-audit", ROOT / "requirements.lock")
    done = subprocess.run(asked, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(verdict(done.stdout, done.stderr))
    say("no known weaknesses in what requirements.lock names")
