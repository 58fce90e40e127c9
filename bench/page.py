"""The page of the results: a section for each benchmark, replaced when it is measured again."""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.report import Line, machine

PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_HEAD: Final = """# Benchmarks

`python -m bench.calm`, `python -m bench.throughput`, `python -m bench.rest` and `make bench` write this page. `calm`
comes first: it measures what users feel, while no processor is full; `throughput` keeps all processors busy. Everything
runs on one machine, so that all programs share its cores. `limit` reads a request and sends the names back, `bare` is
Go's net/http and encoding/json; neither knows rules, nor has TLS but where it says so. The algorithm's time is the
scheduler's own `scheduling_algorithm_duration`, less that of the rounds without extender. Intervals are bootstrapped
(95 %); `open` says that the value is below the target and the interval reaches it.
"""


def put(heading: str, lines: Sequence[str], page: Path | None = None, *, first: bool = False) -> None:
    """Put a section into the page, in place of the one of that heading: as its last section, or as its first."""
    page = page or PAGE
    sections = re.split(r"(?m)^(?=## )", page.read_text() if page.exists() else "")
    kept = [one.rstrip() for one in sections[1:] if not one.startswith(f"## {heading}\n")]
    kept.insert(0 if first else len(kept), "\n".join([f"## {heading}", "", *lines]))
    page.write_text("\n\n".join([_HEAD.rstrip(), *kept]) + "\n")


def put_between(begin: str, lines: Sequence[str], end: str, page: Path) -> None:
    """Put lines into a page that people write, between two marks. Raises ValueError if it has not both of them."""
    before, found, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"{page} has no {begin} and {end} after it")
    page.write_text("\n".join([before + begin, "", *lines, "", end + after]))


def when_and_where() -> str:
    """Return the machine, the day and the load; a measurement itself keeps some four programs busy."""
    about = "{cpu}, {cores} cores, {python}".format_map(machine())
    return f"{about}; {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[2]:.1f} over the last quarter of an hour."


def rows(lines: Sequence[Line]) -> list[str]:
    """Return the table of what `make bench` measured."""
    head = ["| name | value | unit | target | | best |", "| --- | --- | --- | --- | --- | --- |"]
    return [*head, *(f"| {' | '.join((*line.cells, f'{line.best:.4g}'))} |" for line in lines)]
