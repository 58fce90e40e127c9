"""Calls of a scheduler while sources of values attack that policies of another scheduler ask, against no attack.

The hostile servers run on other cores than the first, if there are any, so that they take no time of the process that
is attacked; whatever else runs on the machine does. Times are those of the caller.
"""

import os
from collections.abc import Mapping
from functools import cache
from statistics import median
from typing import Final

from bench.measure import Benchmark, Benchmarks, Size
from bench.report import main
from support.hostile_sources.drill import ATTACKS, CallsMade, drill

_QUIET: Final = "quiet"


@cache
def _measured(size: Size) -> Mapping[str, CallsMade]:
    """Return the calls without an attack, and in each."""
    least, (_, *others) = 2 * size.rounds, sorted(os.sched_getaffinity(0))
    with drill(others) as running:
        made = {_QUIET: running.calls(least)}
        for name, attack in ATTACKS.items():
            with running.under(attack) as is_carried_out:
                made[name] = running.calls(least, is_carried_out)
    return made


def _benchmarks(name: str) -> Benchmarks:
    title = f"hostile-{name.replace(' ', '-')}"
    return {
        f"{title}-p50": Benchmark("ms", lambda size: _measured(size)[name].took_ms),
        f"{title}-max": Benchmark("ms", lambda size: [max(_measured(size)[name].took_ms)]),
        **(
            {f"{title}-p50-to-quiet": Benchmark("ratio", lambda size: [_ratio(_measured(size), name)])}
            if name != _QUIET
            else {}
        ),
    }


def _ratio(measured: Mapping[str, CallsMade], name: str) -> float:
    return median(measured[name].took_ms) / median(measured[_QUIET].took_ms)


BENCHMARKS: Final[Benchmarks] = {title: one for name in (_QUIET, *ATTACKS) for title, one in _benchmarks(name).items()}

if __name__ == "__main__":
    main(BENCHMARKS)
