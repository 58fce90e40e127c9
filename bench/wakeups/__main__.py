"""Time from what may help a rejected pod until it has its node: a table for the guide's page about such pods.

`python -m bench.wakeups` provokes each cause many times, one pod or one group at a time, with a real kube-scheduler,
two replicas and 100 kwok nodes. It takes some two minutes for each repetition of all causes.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from bench import page
from bench.wakeups.causes import CAUSES
from bench.wakeups.report import CauseResult, table
from bench.wakeups.scene import Scene, scene_running

PAGE: Final = page.PAGE.parent / "guide" / "refused-pods.md"
BEGIN: Final = "<!-- figures: written by python -m bench.wakeups -->"
END: Final = "<!-- end of the figures -->"
NODES: Final = 100


def main() -> int:
    """Measure, print, and write the page if all causes were measured."""
    given = _parser().parse_args()
    with scene_running(NODES, given.folder) as scene:
        chosen = [cause for cause in CAUSES if given.only in cause]
        results = [_measured(scene, cause, given.times) for cause in chosen]
    about = f"{NODES} nodes, two replicas, {given.times} times each. {page.when_and_where()}"
    written = [*table(results), "", about]
    print("\n".join(written))
    if given.page and len(chosen) == len(CAUSES):
        page.put_between(BEGIN, written, END, PAGE)
    return 0


def _measured(scene: Scene, cause: str, times: int) -> CauseResult:
    took = []
    for _ in range(times):
        took.append(CAUSES[cause](scene))
        print(f"{cause}: {took[-1]:.2f} s", file=sys.stderr, flush=True)
        scene.clear()
    result = CauseResult(cause, took)
    print(result, file=sys.stderr, flush=True)
    return result


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.wakeups", description=__doc__)
    made.add_argument("--times", type=int, default=50, help="that each cause is provoked (default: %(default)s)")
    made.add_argument("--only", default="", help="measure only causes with this text")
    made.add_argument("--folder", type=Path, help="for the scheduler's files and log; a temporary one is deleted")
    made.add_argument("--no-page", dest="page", action="store_false", help="print, do not write the page")
    return made


if __name__ == "__main__":
    sys.exit(main())
