"""The chart and the image as they were at an earlier commit, taken from git: what an upgrade begins with."""

import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from support.chart.chart import CHART
from testbed import operator_image
from testbed.operator_image import CHECKOUT

_BEFORE = "HEAD~1"


@dataclass(frozen=True, slots=True)
class Earlier:
    """Chart and image of a commit."""

    name: str
    chart: Path
    image: operator_image.Image


def begin_of_upgrade(checkout: Path = CHECKOUT) -> tuple[str, str]:
    """Return a commit that an upgrade is tested from, and its name for people: the last tag, once there is one.

    A tag at HEAD is what is being released, so the one before it counts. Both are empty where there is no history.
    """
    if not (checkout / ".git").exists() or not _git(checkout, "rev-parse", "--verify", "--quiet", _BEFORE):
        return "", ""
    tag = _git(checkout, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", _BEFORE).decode().strip()
    return (tag, tag) if tag else (_BEFORE, "the commit before, because there is no tag yet")


def build(folder: Path, commit: str, name: str, checkout: Path = CHECKOUT) -> Earlier:
    """Unpack a commit into a folder, and build its image unless it is there."""
    with tarfile.open(fileobj=io.BytesIO(_git(checkout, "archive", commit))) as archive:
        archive.extractall(folder, filter="data")
    return Earlier(name, folder / CHART.relative_to(CHECKOUT), operator_image.build(folder))


def _git(checkout: Path, *arguments: str) -> bytes:
    """Print of git; nothing if it fails."""
    return subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, check=False).stdout
