"""Builds the wheel and the source distribution, and tries the wheel in an environment that holds nothing else."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.project import DIST, ROOT, reproducible, run, say, tool


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


def try_wheel(wheel: Path, checkout: Path = ROOT) -> None:
    """Install a wheel with what the lock names into an empty environment, and run the tests of the examples there."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        uv = tool("uv")
        run([uv, "venv", "--quiet", "--python", sys.executable, folder])
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
        run([*install, "--require-hashes", "--requirement", checkout / "requirements.lock"])
        run([*install, "--no-deps", wheel])
        run([uv, "pip", "check", "--quiet", "--python", python])
        run([python.with_name("fairlead"), "test", "examples/tests"], where=checkout)


def main() -> None:
    """Build and try."""
    made = build()
    try_wheel(made.wheel)
    for path in (made.wheel, made.source):
        say(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
