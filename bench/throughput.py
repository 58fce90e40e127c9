"""Pods that a real kube-scheduler places each second with Fairlead, with its peers, and with no extender.

Takes many minutes and runs a cluster of its own: `python -m bench.throughput --nodes 1000 --rounds 7`. The pods are
created before the scheduler starts. Each round runs all that are compared, in another order.
"""

import argparse
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from bench.scheduler import scheduler_running
from bench.stage import (
    CASES,
    NAME,
    NONE,
    OWN,
    PODS,
    Case,
    Stage,
    entries,
    extender_running,
    order,
    pod,
    stage_running,
)
from bench.throughput_report import Measured, said, write
from testbed.api import wait_for

_POD: Final = re.compile(rb'"name":"web-\d+"')
_WARM: Final = 20
"""One in so many pods is placed before the time is taken: at first the scheduler has to fetch everything."""
_PLACED_S: Final = 300.0


def main() -> int:
    """Measure, print and write."""
    given = _parser().parse_args()
    with stage_running(given.nodes) as stage:
        for letter in given.cases.split(","):
            case = CASES[letter]
            found = _rounds(stage, case, given.pods, given.rounds)
            for line in said(f"throughput-{given.nodes}-{letter}", found, case.targets, OWN, NONE):
                print(line, flush=True)
            heading = f"Case {letter}: {given.nodes} nodes, {given.pods} pods, {given.rounds} rounds"
            write(heading, case.title, found, case.targets, OWN, NONE)
    return 0


def _rounds(stage: Stage, case: Case, pods: int, many: int) -> Mapping[str, list[Measured]]:
    """Return what each came to, round by round."""
    found: dict[str, list[Measured]] = {name: [] for name in (NONE, *case.targets, OWN)}
    for number in range(many):
        for name in order([*found], number):
            found[name].append(_run(stage, case, pods, name))
            print(f"round {number + 1}: {name} {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def _run(stage: Stage, case: Case, pods: int, name: str) -> Measured:
    """Measure one of those that are compared, once."""
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        stage.delete_pods()
        stage.api.create_all(PODS, map(pod, range(pods)))
        extender = stack.enter_context(extender_running(name, case, stage, folder))
        watch = stack.enter_context(_placements(stage, pods))
        wired = entries(name, case, extender)
        scheduler = stack.enter_context(scheduler_running(folder, stage.kubeconfig, NAME, wired, stage.nodes))
        wait_for("all pods to be placed", lambda: len(watch) >= pods, timeout_s=_PLACED_S)
        first = pods // _WARM
        rate = (pods - first) / (watch[pods - 1] - watch[first - 1])
        return Measured(rate, scheduler.algorithm().mean_ms)


@contextmanager
def _placements(stage: Stage, pods: int) -> Iterator[list[float]]:
    """Yield a list that grows: the moments at which pods were seen to have a node."""
    moments: list[float] = []

    def read() -> None:
        seen = set[bytes]()
        while len(seen) < pods:  # the API server ends a watch whose reader is slow; then it begins again
            lines = stage.api.lines(PODS, fieldSelector="spec.nodeName!=", watch="true", resourceVersion="0")
            with closing(lines):
                for line in lines:
                    if (found := _POD.search(line)) and found[0] not in seen:
                        seen.add(found[0])
                        moments.append(time.monotonic())
                    if len(seen) == pods:
                        break

    threading.Thread(target=read, daemon=True).start()
    yield moments


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.throughput", description=__doc__)
    made.add_argument("--nodes", type=int, default=1000)
    made.add_argument("--pods", type=int, default=2000)
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--cases", default=",".join(CASES), help="(%(default)s)")
    return made


if __name__ == "__main__":
    sys.exit(main())
