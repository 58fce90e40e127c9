"""Histograms in the text format of Prometheus: what a program measured of itself between two scrapes."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """Sum and count of a histogram of seconds, over all its label sets."""

    seconds: float = 0.0
    count: float = 0.0

    @property
    def mean_ms(self) -> float:
        """Return the mean in milliseconds; NaN if nothing was observed."""
        return 1000 * self.seconds / self.count if self.count else float("nan")

    def since(self, before: "Totals") -> "Totals":
        """Return what was observed after an earlier scrape."""
        return Totals(self.seconds - before.seconds, self.count - before.count)


def totals(text: str, name: str) -> Totals:
    """Return the totals of the histogram of that name; 0 if it has no samples yet."""
    lines = text.splitlines()
    return Totals(_sum(lines, f"{name}_sum"), _sum(lines, f"{name}_count"))


def _sum(lines: Sequence[str], series: str) -> float:
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{series} ", f"{series}{{")))
