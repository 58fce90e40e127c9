"""Results of all rounds: medians, ratios of medians with an interval, and the section of the page."""

import random
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from bench import page

_DRAWN: Final = 10_000


class Measured(NamedTuple):
    """One round of one extender."""

    pods_per_s: float
    algorithm_ms: float

    def __str__(self) -> str:
        return f"{self.pods_per_s:.1f} pods/s, algorithm {self.algorithm_ms:.2f} ms"


class Target(NamedTuple):
    """The least ratio to a peer that Fairlead has to reach."""

    least: float


class Ratio(NamedTuple):
    """Ratio of two medians, with its interval."""

    value: float
    low: float
    high: float

    def verdict(self, target: Target | None) -> str:
        """Return `short` if all of the interval is below the target, `open` if only the value is."""
        if target is None:
            return "-"
        return "ok" if self.value >= target.least else "short" if self.high < target.least else "open"


Rounds = Mapping[str, Sequence[Measured]]
Targets = Mapping[str, Target | None]


def ratio(one: Sequence[float], other: Sequence[float]) -> Ratio:
    """Return the ratio of the medians, with an interval bootstrapped from the rounds."""
    draw = random.Random(0)  # noqa: S311  the same rounds give the same interval
    drawn = sorted(
        median(draw.choices(one, k=len(one))) / median(draw.choices(other, k=len(other))) for _ in range(_DRAWN)
    )
    return Ratio(median(one) / median(other), drawn[_DRAWN // 40], drawn[-_DRAWN // 40])


def said(name: str, rounds: Rounds, targets: Targets, own: str, nobody: str) -> Iterator[str]:
    """Yield the lines of the report."""
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
    lines = [f"{title[0].upper()}{title[1:]}. {page.when_and_where()}", ""]
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
    page.put(heading, lines)


def _rates(found: Sequence[Measured]) -> list[float]:
    return [one.pods_per_s for one in found]


def _above(rounds: Rounds, who: str, nobody: str) -> float:
    """Return how much longer the scheduler's algorithm takes than with no extender."""
    own, without = ([one.algorithm_ms for one in rounds[name]] for name in (who, nobody))
    return median(own) - median(without)
