"""Generator of what the chart and the pages say about versions of Kubernetes, from the versions that tests run on."""

import re
from collections.abc import Mapping
from pathlib import Path

from generate.tables import row
from testbed.versions import KUBERNETES

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "fairlead" / "Chart.yaml"
PAGE = ROOT / "docs" / "compatibility.md"
SUPPORT = ROOT / "SUPPORT.md"
BEGIN, END = "<!-- kubernetes: written by make crds -->\n", "<!-- end of kubernetes -->\n"
TESTED = "fairlead.dev/tested-on-kubernetes"
"""Annotation of the chart that its notes read."""


def minors() -> list[str]:
    """Return the minor versions that are tested, oldest first."""
    return sorted((version.rpartition(".")[0] for version in KUBERNETES), key=lambda one: int(one.split(".")[1]))


def table() -> str:
    """Return the table that tells tested versions from others."""
    oldest, newest = minors()[0], minors()[-1]
    lines = [row("Kubernetes", "tested", "with"), row("---", "---", "---")]
    lines.append(
        row(
            f"newer than {newest}",
            "no",
            "nothing that we know of prevents it; the chart installs, and its notes say so",
        )
    )
    for version in KUBERNETES:
        tests = (
            "every test, at each change"
            if version == KUBERNETES[0]
            else "`make test-matrix`, each night and before a release"
        )
        lines.append(row(version.rpartition(".")[0], "yes", f"{version}: {tests}"))
    lines.append(row(f"older than {oldest}", "no", "the chart refuses to install"))
    return "\n".join(lines) + "\n"


def files() -> Mapping[Path, str]:
    """Return what has to stand in each file."""
    oldest = minors()[0]
    chart = _with_line(CHART.read_text(), "kubeVersion: ", f'kubeVersion: ">={oldest}.0-0"')
    chart = _with_line(chart, f"  {TESTED}: ", f'  {TESTED}: "{", ".join(minors())}"')
    tested = row("Kubernetes", ", ".join(minors()), "newer minor versions", "older ones, which the chart refuses")
    page = _with_line(PAGE.read_text(), "| Kubernetes | 1.", tested)
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return {
        CHART: chart,
        PAGE: f"{before}{BEGIN}\n{table()}\n{END}{after}",
        SUPPORT: _with_line(SUPPORT.read_text(), "| Kubernetes | 1.", tested),
    }


def _with_line(text: str, begin: str, line: str) -> str:
    """Return a text whose only line that begins so is another."""
    made, count = re.subn(rf"(?m)^{re.escape(begin)}.*$", line.replace("\\", r"\\"), text)
    if count != 1:
        raise ValueError(f"{count} lines begin with {begin!r}, not 1")
    return made


def write() -> None:
    """Write the files."""
    for file, text in files().items():
        file.write_text(text)
