"""Packages the chart as it is published."""

from pathlib import Path

import yaml

from release.project import DIST, ROOT, run, say
from testbed import build
from testbed.versions import program

CHART = ROOT / "charts" / "fairlead"


def helm() -> Path:
    """Return Helm of the version that is tested, built on the first call."""
    return build.build([program("helm")])["helm"]


def package(folder: Path = DIST) -> Path:
    """Lint the chart strictly and package it."""
    folder.mkdir(exist_ok=True)
    run([helm(), "lint", "--strict", "--quiet", CHART])
    run([helm(), "package", CHART, "--destination", folder])
    return folder / f"fairlead-{yaml.safe_load((CHART / 'Chart.yaml').read_text())['version']}.tgz"


def main() -> None:
    """Package, and say where."""
    made = package()
    say(f"{made.relative_to(ROOT)}: {made.stat().st_size:,} bytes")
