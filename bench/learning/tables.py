"""Tables of the experiments, as the guide shows them. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from bench.learning import demo, trials
from bench.learning.bursts import Burst
from bench.learning.demo import Seen
from bench.learning.intervals import mean
from bench.learning.packing import Packing
from bench.learning.trials import Trial

NAMES: Final[Mapping[str, str]] = {
    "LeastAllocated": "`LeastAllocated`, no rule",
    "MostAllocated": "`MostAllocated`, no rule",
    "pigeon": "`pigeon`, `LeastAllocated`",
    "pigeon, hotSpot": "`pigeon` and `hotSpot`, `LeastAllocated`",
}
_TYPES: Final = {"fails": "fails on two kinds", "steady": "fails nowhere"}
_RULES: Final = {demo.WITHOUT: "no rule", demo.WITH: "`kubeRL`"}


def placements(seen: Seen, windows: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the table of where pods went, in these times, and how often containers failed."""
    head = ["| type | rule | pods that came | 10 s | 1 min | never |", "| --- | --- | --- | --- | --- | --- |"]
    rows = [
        _row([text, rule, when, *(f"{share:.0%}" for share in seen.shares(scheduler, kind, *window).values())])
        for kind, text in _TYPES.items()
        for scheduler, rule in _RULES.items()
        for when, window in windows.items()
    ]
    failed = [f"{seen.failed(scheduler)} times with {rule}" for scheduler, rule in _RULES.items()]
    return [*head, *rows, "", f"Containers failed {', and '.join(failed)}."]


def returns(found: Sequence[Trial]) -> list[str]:
    """Return the table of how long nodes were avoided that no longer fail."""
    head = [
        "| rule | failures | pods there, hours 1 and 2 | tried again: 1 min | tried again: 10 s | their part again |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    without = [one for one in found if not one.half_life_h]
    rows = [_row(["no rule", *_failing(without), "", "", ""])]
    for half_life_h in trials.HALF_LIVES_H:
        each = [one for one in found if one.half_life_h == half_life_h]
        tried = [_hours([one.tried.get(kind) for one in each]) for kind in ("1 min", "10 s")]
        cells = [f"`halfLife: {half_life_h}h`", *_failing(each), *tried, _hours([one.shared_again for one in each])]
        rows.append(_row(cells))
    return [*head, *rows]


def packings(found: Mapping[str, Sequence[Packing]]) -> list[str]:
    """Return the table of one kind of arrivals, by rule."""
    head = [
        "| rule | large pods that still fit | pods that waited | large pods that waited | deviation | fullest node |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    forms = {"room": ".1f", "waited": ".1%", "large_waited": ".1%", "deviation": ".3f", "fullest": ".0%"}
    rows = [
        _row([NAMES[name], *(mean([getattr(one, field) for one in each]).text(form) for field, form in forms.items())])
        for name, each in found.items()
    ]
    return [*head, *rows]


def bursts(found: Mapping[str, Sequence[Burst]], simulated: Mapping[str, Sequence[Burst]]) -> list[str]:
    """Return the table of one kind of bursts, by rule, each beside the one in which placements are seen at once."""
    head = [
        (
            "| rule | large pods that still fit | if seen at once | deviation | if seen at once"
            " | pods on the node with most | if seen at once | seconds |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    forms = {"room": ".1f", "deviation": ".3f", "most": ".1f"}
    rows = []
    for name, each in found.items():
        cells = [NAMES[name]]
        for field, form in forms.items():
            cells.append(mean([getattr(one, field) for one in each]).text(form))
            at_once = simulated.get(name)
            cells.append(f"{mean([getattr(one, field) for one in at_once]).value:{form}}" if at_once else "")
        rows.append(_row([*cells, f"{mean([one.took_s for one in each]).value:.1f}"]))
    return [*head, *rows]


def _failing(each: Sequence[Trial]) -> list[str]:
    failures = f"{median(one.failures for one in each):.0f}"
    shares = " and ".join(f"{median(one.share(hour, hour + 1) for one in each):.0%}" for hour in (0, 1))
    return [failures, shares]


def _hours(values: Sequence[float | None]) -> str:
    """Return the median, and the least and the most; `later` counts runs that ended before."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"later, in {len(values) - len(known)} of {len(values)} runs"
    return f"{median(known):.0f} h ({min(known):.0f} to {max(known):.0f})"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
