"""Evenness with which rules spread a load that requests do not tell: a table and a chart for the guide.

Pods come to kwok nodes whose load a real Prometheus measures, once with each rule, on a cluster of its own:
`python -m bench.spread`. It takes a minute and a half for each rule and round.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import yaml

from bench import page
from bench.programs import fairlead_running
from bench.scheduler import Wiring, scheduler_running
from bench.spread_chart import chart
from bench.stage import NAME, Stage, order, stage_running
from support.spread import CORES, LIFE_S, NODES, RATE, VARIANTS, Flow, Spread, spec, spread
from support.webhook.exporter import exporting
from testbed import prometheus
from testbed.node_template import equal

PAGE: Final = page.PAGE.parent / "guide" / "load-spread.md"
CHART: Final = PAGE.with_suffix(".svg")
_BEGIN: Final = "<!-- figures: written by python -m bench.spread -->"
_END: Final = "<!-- end of the figures -->"
_NAMES: Final = {
    "none": "no rule",
    "telemetry": "`telemetry`",
    "hotSpot": "`telemetry` and `hotSpot`",
    "targetLoad": "`targetLoad`",
    "safe": "`safe`",
}


def main() -> int:
    """Measure, print, and write the page and its chart."""
    given = _parser().parse_args()
    found: dict[str, list[Spread]] = {name: [] for name in VARIANTS}
    with stage_running(NODES, equal(cpu=f"{CORES:g}", memory="64Gi", pods=250)) as stage:
        for number in range(given.rounds):
            for name in order([*VARIANTS], number):
                found[name].append(_run(stage, name, given.seconds))
                print(f"round {number + 1}: {name}: {_row(name, found[name][-1:])}", file=sys.stderr, flush=True)
    about = (
        f"{NODES} nodes, {RATE} pods/s that stay {LIFE_S:g} s, {given.rounds} rounds of {given.seconds:g} s in turn. "
        f"{page.when_and_where()}"
    )
    written = [about, "", *_table(found), "", f"![Load of each node with each rule]({CHART.name})"]
    print("\n".join(written))
    if given.page and PAGE.exists():
        page.put_between(_BEGIN, written, _END, PAGE)
        CHART.write_text(chart({name: rounds[-1].by_node for name, rounds in found.items()}))
    return 0


def _run(stage: Stage, variant: str, seconds: float) -> Spread:
    """Measure one rule, once: from when no pod is left that was placed before the rest had come."""
    stage.delete_pods()
    nodes = [str(node["metadata"]["name"]) for node in stage.api.items("/api/v1/nodes")]
    flow = Flow(api=stage.api, namespace=NAME, scheduler=NAME, nodes=nodes)
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        target = stack.enter_context(exporting(flow.scrape))
        server = stack.enter_context(prometheus.running(folder, [f"127.0.0.1:{target}"]))
        settings = folder / "settings.yaml"
        settings.write_text(
            yaml.safe_dump({"prometheus": [{"name": "default", "url": f"http://127.0.0.1:{server.port}"}]})
        )
        extender = stack.enter_context(fairlead_running(folder, [_policy(variant)], stage.kubeconfig, settings))
        entries = Wiring(scores=True).entries(extender)
        stack.enter_context(scheduler_running(folder, stage.kubeconfig, NAME, entries, stage.nodes))
        stack.enter_context(flow)
        flow.run(2 * LIFE_S)
        return spread(flow.run(seconds))


def _policy(variant: str) -> Mapping[str, Any]:
    about = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "spread"}}
    return {**about, "spec": spec(variant, NAME)}


def _table(found: Mapping[str, Sequence[Spread]]) -> list[str]:
    head = [
        "| rule | mean load | variance between nodes | of `no rule` | hottest node | time above 90 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    without = fmean(one.variance for one in found["none"])
    return [*head, *(_row(name, rounds, without) for name, rounds in found.items())]


def _row(name: str, rounds: Sequence[Spread], without: float = 0.0) -> str:
    mean, variance, highest, hot = (
        fmean(getattr(one, field) for one in rounds) for field in ("mean", "variance", "highest", "hot")
    )
    cells = [
        _NAMES[name],
        f"{mean:.0%}",
        f"{variance:.4f}",
        f"{variance / without:.2f}" if without else "",
        f"{highest:.0%}",
        f"{hot:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.spread", description=__doc__)
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument("--seconds", type=float, default=30.0, help="of each run, after the warm-up (%(default)g)")
    made.add_argument("--no-page", dest="page", action="store_false", help="print, do not write the page")
    return made


if __name__ == "__main__":
    sys.exit(main())
