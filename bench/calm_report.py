"""Report of the calm rounds: medians, the time that each extender adds, and the section of the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from bench.stage import KEPT, NONE, OWN, RECORDED, Variant

AIMS: Final[Mapping[str, float]] = {"a": 1.25, "b": 1.45}
"""By case, the most that Fairlead should add, as a multiple of what its recorded replies add."""
BARE: Final = "bare"
LIMIT: Final = f"limit{KEPT}"
FULL: Final = 90.0
"""A processor that is busy for so many percent of the time makes programs wait for each other."""
_COLUMNS: Final = (
    "with",
    "algorithm, ms, round by round",
    "median",
    "added",
    "of `bare`",
    "scheduler's processor time, ms",
    "extender's",
    "busiest processor, %",
)


class Measured(NamedTuple):
    """One round of one extender; times are for each pod."""

    algorithm_ms: float
    calls_ms: float
    """Time of the calls by Fairlead's own metric; 0 for the others."""
    scheduler_ms: float
    extender_ms: float
    """Processor time of the programs."""
    busy: float
    """Use of the busiest processor, in percent."""

    def __str__(self) -> str:
        return (
            f"algorithm {self.algorithm_ms:.2f} ms, calls {self.calls_ms:.2f} ms; processor: scheduler "
            f"{self.scheduler_ms:.2f} ms, extender {self.extender_ms:.2f} ms, busiest {self.busy:.0f} %"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """All rounds of one case, by extender."""

    letter: str
    title: str
    rounds: Mapping[str, Sequence[Measured]]

    def median(self, name: str, field: str = "algorithm_ms") -> float:
        """Return the median of the rounds."""
        return float(median(getattr(one, field) for one in self.rounds[name]))

    def added(self, name: str) -> float:
        """Return how much longer the algorithm takes than with no extender, in milliseconds."""
        return self.median(name) - self.median(Variant(name).without_extender)

    def to_bare(self, name: str) -> float:
        """Return what an extender adds as a part of what `bare` adds; NaN if that is nothing."""
        return self._to(BARE, name)

    @property
    def to_recorded(self) -> float:
        """Return what Fairlead adds as a multiple of what its recorded replies add; NaN if that is nothing."""
        return self._to(RECORDED, OWN)

    @property
    def verdict(self) -> str:
        """Return `ok` or `short`."""
        return "ok" if self.to_recorded <= AIMS[self.letter] else "short"

    def _to(self, other: str, name: str) -> float:
        added = self.added(other) if other in self.rounds else 0.0
        return self.added(name) / added if added > 0 else float("nan")


def lines(part: Part) -> Iterator[str]:
    """Yield the lines of the report: `name value unit target ok|short`."""
    aim = AIMS[part.letter]
    yield f"calm-{part.letter}-to-recorded {part.to_recorded:.3f} ratio <={aim:g} {part.verdict}"
    yield f"calm-{part.letter}-to-bare {part.to_bare(OWN):.3f} ratio - -"
    for name in part.rounds:
        if Variant(name).extender != NONE:
            yield f"calm-{part.letter}-added-{name.replace(',', '').replace(' ', '-')} {part.added(name):.3f} ms - -"


def section(part: Part) -> Iterator[str]:
    """Yield the lines of the page about one case."""
    yield from ("", f"### Case {part.letter}: {part.title}", "")
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"| {' | '.join('---' for _ in _COLUMNS)} |"
    for name, rounds in part.rounds.items():
        each = ", ".join(f"{one.algorithm_ms:.2f}" for one in rounds)
        is_alone = Variant(name).extender == NONE
        added, ratio = ("", "") if is_alone else (f"{part.added(name):+.2f}", f"{part.to_bare(name):.2f}")
        processor = (f"{part.median(name, field):.2f}" for field in ("scheduler_ms", "extender_ms"))
        cells = (name, each, f"{part.median(name):.2f}", added, ratio, *processor, f"{part.median(name, 'busy'):.0f}")
        yield f"| {' | '.join(cells)} |"
    yield from ("", f"Fairlead adds {part.to_bare(OWN):.2f} of what `bare` adds.")
    yield from _what_limits(part)
    if (busiest := max(part.median(name, "busy") for name in part.rounds)) >= FULL:
        yield f"A processor was {busiest:.0f} % busy, so that programs waited: these are no figures of a calm machine."


def _what_limits(part: Part) -> Iterator[str]:
    """Say what each part of the added time is."""
    own, limit, calls = part.added(OWN), part.added(LIMIT), part.median(OWN, "calls_ms")
    yield (
        f"`limit` parses nothing and adds {limit:+.2f} ms, {part.to_bare(LIMIT):.2f} of `bare`: in that time the "
        "scheduler encodes the names, sends them and decodes them again."
    )
    if RECORDED in part.rounds:
        floor = part.added(RECORDED)
        yield (
            f"`{RECORDED}` sends what Fairlead replied once, over TLS, computes nothing and adds {floor:+.2f} ms, "
            f"{part.to_bare(RECORDED):.2f} of `bare`: no server that sends these over TLS can be faster. Fairlead is "
            f"{own - floor:.2f} ms above it, and adds {part.to_recorded:.2f} times as much; the aim of "
            f"{AIMS[part.letter]:g} is {'reached' if part.verdict == 'ok' else 'missed'}."
        )
    yield (
        f"Of the {own:+.2f} ms of Fairlead, {calls:.2f} ms pass in its server "
        "(`fairlead_webhook_request_duration_seconds`, from the head of a call to the reply) and "
        f"{own - calls:.2f} ms in the scheduler, in TLS and in the kernel."
    )
