"""Time that an extender adds to kube-scheduler's search for a node, while no processor is full.

This is what users feel: most clusters place a few pods a second. Takes a quarter of an hour and runs a cluster of its
own: `python -m bench.calm`. Pods come one by one at an even pace, and the scheduler's own histogram says how long its
algorithm took for each. Each round runs all that are compared, in another order.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench import page
from bench.calm_report import Measured, Part, lines, section
from bench.histogram import Totals, totals
from bench.programs import Extender, processor_s
from bench.scheduler import Scheduler, scheduler_running
from bench.stage import (
    CASES,
    KEPT,
    NAME,
    NONE,
    OWN,
    PODS,
    RECORDED,
    Stage,
    Variant,
    entries,
    extender_running,
    order,
    pod,
    stage_running,
)
from testbed.api import wait_for

HEADING: Final = "Calm: what a pod waits for"
NAMES: Final = (NONE, f"limit{KEPT}", "bare", RECORDED, OWN)
EXPLAINED: Final = """\
A few pods a second are what most clusters place, and what an extender adds to each is what users feel. `added` is the
median of the scheduler's `scheduling_algorithm_duration` (the mean of each round), less that with no extender.
Processor times are those of the programs, for each pod."""
_CALLS: Final = "fairlead_webhook_request_duration_seconds"
_WARM_S: Final = 3.0
"""For so long pods come before the time is taken: at first the scheduler connects, and caches are empty."""
_SETTLED_S: Final = 10.0
"""For so long the control plane is left alone with its new nodes."""
_PLACED_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace at which pods are created."""

    per_s: float
    seconds: float

    def pods(self, seconds: float) -> int:
        """Return how many pods come in that time."""
        return max(1, round(self.per_s * seconds))


def main() -> int:
    """Measure, print and write the page."""
    given = _parser().parse_args()
    pace = Pace(given.pace, given.seconds)
    names = [*dict.fromkeys((*NAMES, *(Variant(name).without_extender for name in given.also), *given.also))]
    parts: dict[str, dict[str, list[Measured]]] = {
        letter: {name: [] for name in names} for letter in given.cases.split(",")
    }
    with stage_running(given.nodes) as stage:
        time.sleep(_SETTLED_S)
        for number in range(given.rounds):
            for letter, found in parts.items():
                for name in order(names, number):
                    found[name].append(_run(stage, letter, name, pace))
                    print(f"round {number + 1}, case {letter}: {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return _report(given, parts)


def _report(given: argparse.Namespace, found: Mapping[str, Mapping[str, list[Measured]]]) -> int:
    parts = [Part(letter, CASES[letter].title, rounds) for letter, rounds in found.items()]
    for part in parts:
        for line in lines(part):
            print(line, flush=True)
    about = f"{given.nodes} nodes, {given.pace:g} pods/s, {given.rounds} rounds of {given.seconds:g} s in turn."
    written = [about, page.when_and_where(), EXPLAINED, *(line for part in parts for line in section(part))]
    if given.page:
        page.put(HEADING, written, first=True)
    else:
        print("\n".join(written))
    return 0


def _run(stage: Stage, letter: str, name: str, pace: Pace) -> Measured:
    """Measure one of those that are compared, once."""
    case = CASES[letter]
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        stage.delete_pods()
        variant = Variant(name)
        extender = stack.enter_context(extender_running(variant.extender, case, stage, folder))
        wired = entries(variant.extender, case, extender)
        scheduler = stack.enter_context(
            scheduler_running(
                folder,
                stage.kubeconfig,
                NAME,
                wired,
                stage.nodes,
                gogc=variant.gogc,
                node_sample=variant.node_sample,
            )
        )
        warm, many = pace.pods(_WARM_S), pace.pods(pace.seconds)
        _place(stage, scheduler, range(warm), pace)
        before = _look(scheduler, extender)
        _place(stage, scheduler, range(warm, warm + many), pace)
        return _look(scheduler, extender).since(before)


def _place(stage: Stage, scheduler: Scheduler, numbers: range, pace: Pace) -> None:
    """Create pods at an even pace, and return when all have a node. A pod that is late delays those after it."""
    due = time.monotonic()
    for number in numbers:
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic() - 1 / pace.per_s) + 1 / pace.per_s
        stage.api.create(PODS, pod(number))
    wait_for("all pods to be placed", lambda: scheduler.algorithm().count >= numbers.stop, timeout_s=_PLACED_S)


@dataclass(frozen=True, slots=True)
class _Look:
    """Counters at a moment."""

    algorithm: Totals
    calls: Totals
    scheduler_s: float
    extender_s: float
    processors: tuple[tuple[float, float], ...]
    """Seconds idle, and in all, of each processor."""

    def since(self, before: "_Look") -> Measured:
        algorithm = self.algorithm.since(before.algorithm)
        each = 1000 / algorithm.count
        spent = zip(self.processors, before.processors, strict=True)
        idle = (min(1.0, (one[0] - was[0]) / max(one[1] - was[1], 0.01)) for one, was in spent)
        return Measured(
            algorithm_ms=algorithm.mean_ms,
            calls_ms=each * self.calls.since(before.calls).seconds,
            scheduler_ms=each * (self.scheduler_s - before.scheduler_s),
            extender_ms=each * (self.extender_s - before.extender_s),
            busy=100 * (1 - min(idle)),
        )


def _look(scheduler: Scheduler, extender: Extender | None) -> _Look:
    return _Look(
        scheduler.algorithm(),
        _calls(extender),
        processor_s(scheduler.pid),
        0.0 if extender is None else processor_s(extender.pid),
        tuple((times.idle + times.iowait, sum(times)) for times in psutil.cpu_times(percpu=True)),
    )


def _calls(extender: Extender | None) -> Totals:
    """Return how long calls took by Fairlead's own metric; the peers have none."""
    if extender is None or not extender.probes:
        return Totals()
    return totals(extender.metrics(), _CALLS)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.calm", description=__doc__)
    made.add_argument("--nodes", type=int, default=1000)
    made.add_argument("--pace", type=float, default=20.0, help="pods a second (%(default)g)")
    made.add_argument("--seconds", type=float, default=20.0, help="of each run, after the warm-up (%(default)g)")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--cases", default="a,b", help="(%(default)s)")
    made.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME",
        help="such as 'limit over TLS', 'bare, GOGC=100' or 'fairlead, nodeSample=42%%'; with the same settings of the "
        "scheduler no extender is measured, too",
    )
    made.add_argument("--no-page", dest="page", action="store_false", help="print the section, do not write the page")
    return made


if __name__ == "__main__":
    sys.exit(main())
