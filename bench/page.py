"""The page that holds what was measured: a section for each thing, replaced when it is measured again."""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.report import Line, machine

PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_HEAD: Final = """# Benchmarks

`make bench` and `python -m bench.throughput` write this page. Everything runs on one machine, so that all share its
cores. `limit` reads a request and sends the names back, `bare` is Go's net/http and encoding/json; neither knows rules,
nor has TLS but where it says so. The algorithm's time is the scheduler's own `scheduling_algorithm_duration`, less that
of the rounds without extender. Intervals are bootstrapped (95 %); `open` says that the value is below the target and
the interval reaches it.
"""


def put(heading: str, lines: Sequence[str], page: Path | None = None) -> None:
    """Put a section into the page, in place of the one of that heading."""
    page = page or PAGE
    sections = re.split(r"(?m)^(?=## )", page.read_text() if page.exists() else "")
    kept = [_HEAD.rstrip(), *(one.rstrip() for one in sections[1:] if not one.startswith(f"## {heading}\n"))]
    page.write_text("\n\n".join([*kept, "\n".join([f"## {heading}", "", *lines])]) + "\n")


def when_and_where() -> str:
    """The machine and the day, and how busy it was: what is measured keeps some four programs busy."""
    about = "{cpu}, {cores} cores, {python}".format_map(machine())
    return f"{about}; {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[2]:.1f} over the last quarter of an hour."


def rows(lines: Sequence[Line]) -> list[str]:
    """What `make bench` measured."""
    head = ["| name | value | unit | target | | best |", "| --- | --- | --- | --- | --- | --- |"]
    return [*head, *(f"| {' | '.join((*line.cells, f'{line.best:.4g}'))} |" for line in lines)]
