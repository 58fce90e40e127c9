"""Report of the wake-ups: a row for each cause, and the table of the guide's page."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

from bench.report import Target

OF_MEDIAN: Final = Target("s", below=3)
OF_P99: Final = Target("s", below=10)


@dataclass(frozen=True, slots=True)
class CauseResult:
    """Result of one cause: the seconds that each repetition took."""

    cause: str
    took: Sequence[float]

    @property
    def median(self) -> float:
        """Return the median."""
        return median(self.took)

    @property
    def p99(self) -> float:
        """Return the 99th percentile; with fewer than a hundred values it is near the greatest of them."""
        return quantiles(self.took, n=100, method="inclusive")[98] if len(self.took) > 1 else self.took[0]

    def __str__(self) -> str:
        verdict = "ok" if OF_MEDIAN.is_met(self.median) and OF_P99.is_met(self.p99) else "short"
        return f"{self.cause}: {len(self.took)} times, p50 {self.median:.2f} s, p99 {self.p99:.2f} s {verdict}"


def table(results: Iterable[CauseResult]) -> Iterator[str]:
    """Yield the lines of the table. What misses its target is bold, and says the target."""
    yield "| what helps the pod | times | p50 | p99 |"
    yield "| --- | --- | --- | --- |"
    for one in results:
        yield f"| {one.cause} | {len(one.took)} | {_cell(one.median, OF_MEDIAN)} | {_cell(one.p99, OF_P99)} |"


def _cell(seconds: float, target: Target) -> str:
    return f"{seconds:.1f} s" if target.is_met(seconds) else f"**{seconds:.1f} s**, aim {target} s"
