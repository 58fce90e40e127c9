"""Report of wake-ups: a table for the guide's page."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.report import Target


class Row(NamedTuple):
    """Result of one cause."""

    cause: str
    times: int
    median_s: float
    p99_s: float


def table(rows: Iterable[Row], of_median: Target, of_p99: Target) -> Iterator[str]:
    """Yield the lines of the table; what misses its target is marked."""
    yield "| cause | times | median | slowest of a hundred |"
    yield "| --- | --- | --- | --- |"
    for one in rows:
        cells = (_cell(one.median_s, of_median), _cell(one.p99_s, of_p99))
        yield f"| {one.cause} | {one.times} | {' | '.join(cells)} |"


def _cell(seconds: float, target: Target) -> str:
    return f"{seconds:.1f} s" if target.is_met(seconds) else f"**{seconds:.1f} s** (aim {target})"
