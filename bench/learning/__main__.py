"""Experiments of the guide's page about rules that learn: tables and charts, written into that page.

`python -m bench.learning` runs all. What is simulated takes minutes of a processor and no cluster; the demo and the
bursts take a real API server and scheduler, with kwok nodes, about twenty minutes.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import page
from bench.learning import bursts, demo, packing, tables, trials
from bench.learning.bursts import Burst
from bench.learning.line_chart import Line, chart
from bench.learning.operator import operator_running
from bench.learning.packing import Packing
from bench.stage import stage_running
from testbed.node_template import equal

PAGE: Final = page.PAGE.parent / "guide" / "learning-experiments.md"
CLUSTER: Final = "bench-learning"
SIMULATED: Final = ("trials", "packing")
REAL: Final = ("demo", "bursts")
_KINDS: Final = {"10s": "10 s", "60s": "1 min", "never": "never"}
_FAILING: Final = {"10 s": "failed after 10 s", "1 min": "failed each min.", "never": "never failed"}
_CORES, _MEMORY_GIB = packing.CAPACITY.cpu // 1000, packing.CAPACITY.memory >> 30


def main() -> int:
    """Run the experiments that are chosen, print, and write the page and its charts."""
    given = _parser().parse_args()
    chosen = given.only or [*SIMULATED, *REAL]
    if "trials" in chosen:
        _write(given, "trials", _trials(given))
    if "packing" in chosen:
        _write(given, "packing", _packing(given))
    if not {*REAL} & {*chosen}:
        return 0
    template = equal(cpu=str(_CORES), memory=f"{_MEMORY_GIB}Gi", pods=250)
    with (
        stage_running(packing.NODES, template, CLUSTER) as stage,
        operator_running(stage) as operator,
        tempfile.TemporaryDirectory() as text,
    ):
        folder = Path(text)
        nodes = sorted(str(one["metadata"]["name"]) for one in stage.api.items("/api/v1/nodes"))
        if "demo" in chosen:
            _write(given, "demo", _demo(given, demo.run(stage, operator, nodes, given.seconds, folder)))
        if "bursts" in chosen:
            found = defaultdict[str, dict[str, list[Burst]]](dict)
            for kind, name, one in bursts.runs(stage, operator, nodes, given.rounds, folder):
                found[kind].setdefault(name, []).append(one)
                print(f"{kind}: {name}: {one}", file=sys.stderr, flush=True)
            _write(given, "bursts", _bursts(given, found))
    return 0


def _trials(given: argparse.Namespace) -> list[str]:
    found = []
    for one in trials.runs():
        found.append(one)
        print(f"half-life {one.half_life_h} h: {one.tried}, {one.shared_again}", file=sys.stderr, flush=True)
    usual = next(one for one in found if one.half_life_h == trials.USUAL_H)
    lines = {names: usual.scores[kind] for kind, names in _FAILING.items()}
    _draw(given, "trials", "Score of nodes that no longer fail", "hours since the repair", lines)
    about = (
        f"Virtual time, {trials.OF_EACH * len(trials.KINDS)} nodes, {trials.SEEDS} runs of each half-life; median, and"
        f" least to most. The nodes are repaired after two hours. The chart is of halfLife {trials.USUAL_H}h."
    )
    return [about, "", *tables.returns(found), "", f"![Score of nodes that no longer fail]({_picture('trials').name})"]


def _packing(given: argparse.Namespace) -> list[str]:
    found = defaultdict[str, dict[str, list[Packing]]](dict)
    for kind, name, one in packing.runs(given.seeds):
        found[kind].setdefault(name, []).append(one)
    about = (
        f"Simulated: {packing.NODES} nodes of {_CORES} cores, {packing.PODS} pods, of which the last {packing.COUNTED}"
        f" are counted, {given.seeds} seeds; means, with 95 % intervals."
    )
    return [about, "", *_by_arrivals(lambda kind: tables.packings(found[kind]))]


def _demo(given: argparse.Namespace, seen: demo.Seen) -> list[str]:
    windows = {
        "in the first minute": (0.0, 60.0),
        "in the last two minutes": (given.seconds - 120.0, float("inf")),
    }
    lines = {f"{kind} ({_KINDS[node]})": line for (kind, node), line in seen.scores.items() if kind == "fails"}
    lines["fails nowhere"] = seen.scores["steady", "10s"]
    _draw(given, "demo", "Mean score of the nodes of each kind", "seconds", lines)
    about = (
        f"A real scheduler with the rule and one without, each with {demo.OF_EACH * len(demo.KINDS)} kwok nodes; a pod"
        f" of each type every {demo.EVERY_S:g} s, which stays {demo.LASTS_S:g} s; {given.seconds:g} s."
        f" {page.when_and_where()}"
    )
    picture = f"![Mean score of the nodes of each kind]({_picture('demo').name})"
    return [about, "", *tables.placements(seen, windows), "", picture]


def _bursts(given: argparse.Namespace, found: Mapping[str, Mapping[str, Sequence[Burst]]]) -> list[str]:
    simulated = {
        kind: {
            name: [bursts.simulated(name, kind, seed) for seed in range(given.rounds)]
            for name in bursts.RULES
            if name in packing.RULES
        }
        for kind in packing.ARRIVALS
    }
    about = (
        f"A real scheduler, {packing.NODES} kwok nodes, {bursts.MANY} pods at once, {given.rounds} bursts of each;"
        f" means, with 95 % intervals. {page.when_and_where()}"
    )
    return [about, "", *_by_arrivals(lambda kind: tables.bursts(found[kind], simulated[kind]))]


def _by_arrivals(table: Callable[[str], list[str]]) -> list[str]:
    heads = {"mixed": "Small and large pods:", "equal": "Equal pods:"}
    return [line for kind in packing.ARRIVALS for line in (heads[kind], "", *table(kind), "")][:-1]


def _write(given: argparse.Namespace, name: str, lines: Sequence[str]) -> None:
    print("\n".join(lines), flush=True)
    if given.page:
        page.put_between(begin_of(name), lines, end_of(name), PAGE)


def _draw(given: argparse.Namespace, name: str, title: str, unit: str, lines: Mapping[str, Line]) -> None:
    if given.page:
        _picture(name).write_text(chart(title, unit, lines))


def begin_of(name: str) -> str:
    """Return the mark before the figures of an experiment."""
    return f"<!-- figures of {name}: written by python -m bench.learning -->"


def end_of(name: str) -> str:
    """Return the mark after them."""
    return f"<!-- end of the figures of {name} -->"


def _picture(name: str) -> Path:
    return PAGE.with_name(f"{PAGE.stem}-{name}.svg")


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.learning", description=__doc__)
    made.add_argument("--only", action="append", choices=(*SIMULATED, *REAL), help="run one experiment; repeatable")
    made.add_argument("--seeds", type=int, default=20, help="of what is simulated (%(default)s)")
    made.add_argument("--seconds", type=float, default=360.0, help="that the demo takes (%(default)g)")
    made.add_argument("--rounds", type=int, default=5, help="of bursts (%(default)s)")
    made.add_argument("--no-page", dest="page", action="store_false", help="print, do not write the page")
    return made


if __name__ == "__main__":
    sys.exit(main())
