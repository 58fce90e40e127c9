"""Builds the wheel and the source distribution, and tries the wheel in an environment that holds nothing else."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.project import DIST, ROOT, reproducible, run, say, tool

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, slots=True)
class Packages:
    """Files that PyPI gets."""

    wheel: Path
    source: Path


def build(folder: Path = DIST, checkout: Path = ROOT) -> Packages:
    """Build both; those of other versions that lie in the folder are removed."""
    for old in [*folder.glob("fairlead-*.whl"), *folder.glob("fairlead-*.tar.gz")]:
        old.unlink()
    command: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "--directory", folder, "--target"]
    for target in ("sdist", "wheel"):
        run([*command, target], where=checkout, environment=reproducible())
    [wheel], [source] = folder.glob("fairlead-*.whl"), folder.glob("fairlead-*.tar.gz")
    run([tool("twine"), "check", "--strict", wheel, source])
    return Packages(wheel, source)


def interpreters(versions: Iterable[str] = SUPPORTED, homes: Sequence[Path] | None = None) -> dict[str, Path]:
    """Return the Pythons of this machine that the project supports, by version; each has to start."""
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *(_homes() if homes is None else homes)]
    found = {}
    for version in versions:
        candidates = (folder / f"python{version}" for folder in folders)
        if works := next((one for one in candidates if _answers(one, version)), None):
            found[version] = works
    return found


def _homes() -> list[Path]:
    """Return where pyenv, uv and Debian's packages put interpreters that are not on the PATH."""
    home = Path.home()
    return [
        *sorted((home / ".pyenv" / "versions").glob("3.*/bin")),
        home / ".local" / "bin",
        Path("/usr/bin"),
        Path("/usr/local/bin"),
    ]


def _answers(python: Path, version: str) -> bool:
    if not python.exists():
        return False
    command = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == version


def try_wheel(wheel: Path, checkout: Path = ROOT, *, interpreter: Path = Path(sys.executable)) -> None:
    """Install a wheel with what the lock names into an empty environment, and run the tests of the examples there."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        uv = tool("uv")
        run([uv, "venv", "--quiet", "--python", interpreter, folder])
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
        run([*install, "--require-hashes", "--requirement", checkout / "requirements.lock"])
        run([*install, "--no-deps", wheel])
        run([uv, "pip", "check", "--quiet", "--python", python])
        run([python.with_name("fairlead"), "test", "examples/tests"], where=checkout)


def main() -> None:
    """Build and try."""
    made = build()
    there = interpreters()
    for version, interpreter in there.items():
        say(f"the wheel in an empty environment of Python {version} ({interpreter})")
        try_wheel(made.wheel, interpreter=interpreter)
    if missing := [version for version in SUPPORTED if version not in there]:
        say(f"not tried, as this machine has no such Python: {', '.join(missing)}")
    for path in (made.wheel, made.source):
        say(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
