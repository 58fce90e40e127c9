"""Names the project's places and version, and runs the programs that make what is published."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import fairlead

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
REPOSITORY = "https://github.com/fairlead-dev/fairlead"
IMAGE = "ghcr.io/fairlead-dev/fairlead"
_STAGES = {"a": "alpha", "b": "beta", "rc": "rc", "dev": "dev"}
_PYTHON_VERSION = re.compile(r"(\d+\.\d+\.\d+)(?:\.?(a|b|rc|dev)(\d+))?")
_SEMVER = re.compile(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc|dev)\.(\d+))?")


class ReleaseError(Exception):
    """Fault that a person has to correct first; its text says how."""


def semver(version: str = fairlead.__version__) -> str:
    """Return the version of chart and image for one of Python: `0.2.0rc1` is `0.2.0-rc.1`."""
    found = _PYTHON_VERSION.fullmatch(version)
    if not found:
        raise ReleaseError(f"{version} is no version of this project: write one such as 0.2.0, 0.2.0rc1 or 0.2.0.dev0")
    number, stage, count = found.groups()
    return f"{number}-{_STAGES[stage]}.{count}" if stage else number


def python_version(version: str) -> str:
    """Return the version of Python for one of chart and image: `0.2.0-rc.1` is `0.2.0rc1`."""
    found = _SEMVER.fullmatch(version)
    if not found:
        raise ReleaseError(f"{version} is no version of this project: write one such as 0.2.0 or 0.2.0-rc.1")
    number, stage, count = found.groups()
    stages = {long: short for short, long in _STAGES.items()}
    return number if not stage else f"{number}{'.' if stage == 'dev' else ''}{stages[stage]}{count}"


def commit(checkout: Path = ROOT) -> str:
    """Return the commit of the checkout; nothing outside of one."""
    asked = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def commit_time(checkout: Path = ROOT) -> int:
    """Return the commit's time in seconds, which stands in all that is built from it; 0 outside of a checkout."""
    asked = ["git", "-C", str(checkout), "log", "-1", "--format=%ct"]
    return int(subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or 0)


def run(command: Sequence[str | Path], *, where: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    """Run a program, whose output is shown; its failure is one line that names it."""
    words = [str(word) for word in command]
    if subprocess.run(words, cwd=where, env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
        raise ReleaseError(f"`{shlex.join(words)}` failed")


def output_of(command: Sequence[str | Path]) -> str:
    """Run a program and return what it prints, without the line's end; its failure is one line with what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"`{shlex.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def tool(name: str) -> Path:
    """Return a program of the environment that runs this."""
    return Path(sys.executable).with_name(name)


def reproducible() -> dict[str, str]:
    """Return the environment in which two builds of one commit give the same bytes."""
    return {**os.environ, "SOURCE_DATE_EPOCH": str(commit_time()), "PYTHONHASHSEED": "0"}


def say(text: str) -> None:
    """Tell the person who waits what happens."""
    print(text, file=sys.stderr, flush=True)
