"""What rounds come to: medians, ratios of medians with an interval, and the page that holds them."""

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.report import machine

PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_DRAWN: Final = 10_000
_HEAD: Final = """# Benchmarks

How many pods a real kube-scheduler places each second: `python -m bench.throughput` writes this page. Everything runs
on one machine, so that all share its cores. `limit` reads a request and sends the names back, `bare` is Go's net/http
and encoding/json; neither knows rules, and neither has TLS. The algorithm's time is the scheduler's own
`scheduling_algorithm_duration`, less that of the rounds without extender. Intervals are bootstrapped (95 %).
"""


class Measured(NamedTuple):
    """One round of one of them."""

    pods_per_s: float
    algorithm_ms: float

    def __str__(self) -> str:
        return f"{self.pods_per_s:.1f} pods/s, algorithm {self.algorithm_ms:.2f} ms"


class Target(NamedTuple):
    """What the ratio to a peer has to reach."""

    least: float


class Ratio(NamedTuple):
    """Of two medians."""

    value: float
    low: float
    high: float

    def verdict(self, target: Target | None) -> str:
        """Short when all of the interval is."""
        return "-" if target is None else "short" if self.high < target.least else "ok"


Rounds = Mapping[str, Sequence[Measured]]
Targets = Mapping[str, Target | None]


def ratio(one: Sequence[float], other: Sequence[float]) -> Ratio:
    """How the medians relate, and between what that lies if the rounds had been others."""
    draw = random.Random(0)  # noqa: S311  the same rounds give the same interval
    drawn = sorted(
        median(draw.choices(one, k=len(one))) / median(draw.choices(other, k=len(other))) for _ in range(_DRAWN)
    )
    return Ratio(median(one) / median(other), drawn[_DRAWN // 40], drawn[-_DRAWN // 40])


def said(name: str, rounds: Rounds, targets: Targets, own: str, nobody: str) -> Iterator[str]:
    """The lines of the report."""
    for peer, target in targets.items():
        found = ratio(_rates(rounds[own]), _rates(rounds[peer]))
        goal = "-" if target is None else f">={target.least:g}"
        interval = f"[{found.low:.3f}, {found.high:.3f}]"
        yield f"{name}-to-{peer} {found.value:.3f} ratio {goal} {found.verdict(target)} {interval}"
    for who in rounds:
        if who != nobody:
            yield f"{name}-algorithm-{who} {_above(rounds, who, nobody):.3f} ms - -"


def write(heading: str, title: str, rounds: Rounds, targets: Targets, own: str, nobody: str) -> None:
    """Put a section into the page, in place of the one of that heading."""
    about = "{cpu}, {cores} cores, {python}".format_map(machine())
    lines = [
        f"## {heading}",
        "",
        f"{title[0].upper()}{title[1:]}. {about}; {datetime.now(UTC):%Y-%m-%d}, {_load()}.",
        "",
    ]
    lines += ["| with | pods/s, round by round | median | algorithm, ms |", "| --- | --- | --- | --- |"]
    for who, found in rounds.items():
        each = ", ".join(f"{rate:.0f}" for rate in _rates(found))
        above = "" if who == nobody else f"{_above(rounds, who, nobody):+.2f}"
        lines.append(f"| {who} | {each} | {median(_rates(found)):.0f} | {above} |")
    lines += ["", "| ratio to | value | interval | target | |", "| --- | --- | --- | --- | --- |"]
    for peer, target in targets.items():
        to = ratio(_rates(rounds[own]), _rates(rounds[peer]))
        goal = "" if target is None else f"at least {target.least:g}"
        lines.append(f"| {peer} | {to.value:.2f} | {to.low:.2f} to {to.high:.2f} | {goal} | {to.verdict(target)} |")
    text = PAGE.read_text() if PAGE.exists() else _HEAD
    sections = re.split(r"(?m)^(?=## )", text)
    kept = [sections[0].rstrip(), *(one.rstrip() for one in sections[1:] if not one.startswith(f"## {heading}\n"))]
    PAGE.write_text("\n\n".join([*kept, "\n".join(lines)]) + "\n")


def _load() -> str:
    """How busy the machine was: what is measured keeps some four programs busy, anything above that is others."""
    return f"load {os.getloadavg()[2]:.1f} over the last quarter of an hour"


def _rates(found: Sequence[Measured]) -> list[float]:
    return [one.pods_per_s for one in found]


def _above(rounds: Rounds, who: str, nobody: str) -> float:
    """The time of the scheduler's algorithm less that without extender."""
    own, without = ([one.algorithm_ms for one in rounds[name]] for name in (who, nobody))
    return median(own) - median(without)
