"""From what was measured to what is printed: `name value unit target ok|short`."""

import argparse
import json
import os
import platform
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from bench.measure import Benchmarks, Measured, Size, run

TARGETS: Final = Path(__file__).with_name("targets.toml")


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a value."""

    unit: str
    below: float | None = None
    above: float | None = None

    def is_met(self, value: float) -> bool:
        """Tell whether this value will do."""
        return (self.below is None or value < self.below) and (self.above is None or value >= self.above)

    def __str__(self) -> str:
        return f"<{self.below:g}" if self.below is not None else f">={self.above:g}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report."""

    name: str
    value: float
    unit: str
    target: str
    verdict: Literal["ok", "short", "-"]
    best: float

    def __str__(self) -> str:
        return " ".join(self.cells)

    @property
    def cells(self) -> tuple[str, ...]:
        """As it is printed."""
        return self.name, f"{self.value:.4g}", self.unit, self.target, self.verdict


def targets(file: Path = TARGETS) -> Mapping[str, Target]:
    """The targets by the name of the benchmark."""
    return {name: Target(**target) for name, target in tomllib.loads(file.read_text()).items()}


def judged(measured: Measured, target: Target | None) -> Line:
    """Results with their targets."""
    value, best = measured.value, measured.best
    if target is None:
        return Line(measured.name, value, measured.unit, "-", "-", best)
    return Line(measured.name, value, measured.unit, str(target), "ok" if target.is_met(value) else "short", best)


def table(lines: Sequence[Line]) -> str:
    """All lines with the best sample of each, in columns."""
    rows: list[tuple[str, ...]] = [("name", "value", "unit", "target", "", "best")]
    rows += [(*line.cells, f"{line.best:.4g}") for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at in (1, 5) else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def machine() -> dict[str, str | int]:
    """Machine that it was measured on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"cpu": _cpu(), "cores": os.cpu_count() or 1, "python": python}


def main(benchmarks: Benchmarks) -> None:
    """A subject as a program of its own."""
    arguments = parser().parse_args()
    goals = targets()
    for measured in run(benchmarks, arguments.name, Size()):
        line = judged(measured, goals.get(measured.name))
        print(json.dumps(asdict(line)) if arguments.json else line, flush=True)


def parser() -> argparse.ArgumentParser:
    """Options of a subject and of the collector."""
    made = argparse.ArgumentParser(
        prog="bench", description="Print how fast the product is, and where that falls short."
    )
    made.add_argument("name", nargs="?", default="", help="measure only what has this text in its name")
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return found[0] if found else platform.machine()
