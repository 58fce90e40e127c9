"""Cost of the operator while nothing happens, and the time until an edit of a policy serves everywhere.

Two replicas beside a control plane with 100 nodes that live, as nodes do; their scheduler is one that others run, so
that no node has to. Takes three minutes: `python -m bench.rest`. Processor time is that of the whole process.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from bench import page
from bench.measure import MILLI, Measured
from bench.operating import POLICIES, Asked, Replica, asking, leader_of, replicas_running, wait_until_served
from bench.report import Line, Target, judged
from testbed import node_template, nodes
from testbed.api import Api, Object
from testbed.node_template_file import default_template
from testbed.providers import Local

TARGETS: Final = {
    "rest-leader-processor": Target("%", below=2),
    "rest-leader-resident": Target("MiB", below=150),
    "rest-other-processor": Target("%", below=2),
    "rest-other-resident": Target("MiB", below=150),
    "edit-served-everywhere-p99": Target("ms", below=1000),
}
_SETTLED_S: Final = 30.0


def main() -> int:
    """Measure, print and write."""
    given = _parser().parse_args()
    provider = Local("bench-rest", node=False)
    try:
        provider.up()
        kubeconfig = provider.kubeconfig()
        made = node_template.make(given.nodes, default_template(), seed=1)
        nodes.ensure(kubeconfig.parent, kubeconfig, made)
        with closing(Api(kubeconfig)) as api, replicas_running(api, kubeconfig, 2) as both:
            lines = [*_measured(api, kubeconfig, both, given)]
    finally:
        provider.down()
    for line in lines:
        print(line, flush=True)
    about = f"Two replicas and {given.nodes} nodes; at rest over {given.seconds:g} s, {given.edits} edits of a policy."
    page.put("At rest", [about, page.when_and_where(), "", *page.rows(lines)])
    return 0


def _measured(api: Api, kubeconfig: Path, both: Sequence[Replica], given: argparse.Namespace) -> Iterator[Line]:
    _put(api, 0)
    asked = asking(kubeconfig, both)
    wait_until_served(asked, api.get(f"{POLICIES}/bench"))
    time.sleep(_SETTLED_S)
    leader = leader_of(api)
    before = [_processor_s(one) for one in both]
    begun = time.monotonic()
    time.sleep(given.seconds)
    lasted = time.monotonic() - begun
    for one, spent in zip(both, before, strict=True):
        role = "leader" if one.name == leader else "other"
        yield _line(f"rest-{role}-processor", "%", [100 * (_processor_s(one) - spent) / lasted])
        yield _line(f"rest-{role}-resident", "MiB", [one.process.memory_info().rss / 2**20])
    for connection in asked:  # idle for so long they are closed by now, or soon; they are opened again
        connection.close()
    took = [_edit(api, asked, number) for number in range(1, given.edits + 1)]
    yield _line("edit-served-everywhere-p50", "ms", [median(took)])
    yield _line("edit-served-everywhere-p99", "ms", [quantiles(took, n=100, method="inclusive")[98]])


def _line(name: str, unit: str, values: Sequence[float]) -> Line:
    return judged(Measured(name, unit, median(values), min(values)), TARGETS.get(name))


def _processor_s(one: Replica) -> float:
    times = one.process.cpu_times()
    return float(times.user + times.system)


def _put(api: Api, number: int) -> Object:
    rules = [
        {"name": "pool", "expression": f"node.metadata.labels[?'pool'].orValue('') != 'none-{number}'"},
        {"name": "room", "expression": "allocatable['cpu'] - requested['cpu'] >= 0.0"},
    ]
    spec = {"schedulerName": "fairlead", "filters": rules, "scores": [{"name": "even", "expression": "1.0"}]}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "bench"}}
    return api.apply(f"{POLICIES}/bench", {**kind, "spec": spec})


def _edit(api: Api, both: Sequence[Asked], number: int) -> float:
    """Milliseconds from the moment at which somebody sends it."""
    begun = time.monotonic()
    made = _put(api, number)
    wait_until_served(both, made)
    took = (time.monotonic() - begun) * MILLI
    time.sleep(0.3)  # what the leader writes about it is none of the next one's time
    return took


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.rest", description=__doc__)
    made.add_argument("--nodes", type=int, default=100)
    made.add_argument("--seconds", type=float, default=120.0)
    made.add_argument("--edits", type=int, default=50)
    return made


if __name__ == "__main__":
    sys.exit(main())
