"""Pods of a burst that follow a score to one node, before rules see where the first ones went.

1000 equal pods come at once to 100 equal nodes, of which one is 20 points better: `python -m bench.burst`.
It runs once with that score alone, and once with `hotSpot` beside it. No rule sees placements that the watch has not
told of yet, so most pods of a burst go to that node; the guide says what to do.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench import page
from bench.programs import fairlead_running
from bench.scheduler import Wiring, scheduler_running
from bench.stage import NAME, PODS, Stage, pod, stage_running
from testbed.api import wait_for
from testbed.node_template import equal

NODES: Final = 100
MANY: Final = 1000
LOAD: Final = "example.org/load"
_WINDOWS: Final = [{"within": "1m", "count": 2, "points": 10}]
_LEAST_LOADED: Final = {"name": "least-loaded", "weight": 5, "expression": "100.0 * (1.0 - data.load)"}
_HOT_SPOT: Final = {"name": "hot-spot", "weight": 20, "hotSpot": {"windows": _WINDOWS}}
VARIANTS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "a score by load": [_LEAST_LOADED],
    "and `hotSpot` beside it": [_LEAST_LOADED, _HOT_SPOT],
}


def main() -> int:
    """Measure, and print a table."""
    argparse.ArgumentParser(prog="bench.burst", description=__doc__).parse_args()
    print(page.when_and_where())
    print("| rules | pods on the best node | in the first second | pods/s |\n| --- | --- | --- | --- |")
    with stage_running(NODES, equal(cpu="2000", memory="4000Gi", pods=2 * MANY), name="bench-burst") as stage:
        best = _load(stage)
        for name, scores in VARIANTS.items():
            found, first, rate = _run(stage, best, scores)
            print(f"| {name} | {found} of {MANY} | {first} | {rate:.0f} |", flush=True)
            stage.delete_pods()
    return 0


def _load(stage: Stage) -> str:
    """Give each node its load, and return the name of the one that has less."""
    names = [str(one["metadata"]["name"]) for one in stage.api.items("/api/v1/nodes")]
    for name in names:
        load = "0.3" if name == names[0] else "0.5"
        stage.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {LOAD: load}}})
    return names[0]


def _run(stage: Stage, best: str, scores: Sequence[Mapping[str, Any]]) -> tuple[int, int, float]:
    """Return how many pods came to the best node, how many of those in the first second, and how many a second."""
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "burst"},
        "spec": {
            "schedulerName": NAME,
            "data": [{"name": "load", "nodeAnnotation": {"key": LOAD}}],
            "scores": list(scores),
        },
    }
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        extender = stack.enter_context(fairlead_running(folder, [policy], stage.kubeconfig))
        entries = Wiring(scores=True).entries(extender)
        stage.api.create_all(PODS, [pod(number) for number in range(MANY)])  # the scheduler finds all of them at once
        begun = time.monotonic()
        stack.enter_context(scheduler_running(folder, stage.kubeconfig, NAME, entries, stage.nodes))

        def placed() -> list[dict[str, Any]] | None:
            found = [one for one in stage.api.items(PODS) if one["spec"].get("nodeName")]
            return found if len(found) == MANY else None

        pods = wait_for("all pods to be placed", placed, timeout_s=180)
        took = time.monotonic() - begun
    times = sorted(
        (condition["lastTransitionTime"], one["spec"]["nodeName"])
        for one in pods
        for condition in one["status"]["conditions"]
        if condition["type"] == "PodScheduled"
    )
    by_node = Counter(node for _, node in times)
    return by_node[best], sum(node == best for at, node in times if at == times[0][0]), MANY / took


if __name__ == "__main__":
    sys.exit(main())
