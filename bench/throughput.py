"""How many pods a real kube-scheduler places each second with Fairlead, with its peers, and with no extender.

Takes many minutes and raises a cluster of its own: `python -m bench.throughput --nodes 1000 --rounds 7`. The pods are
there before the scheduler is started. Each round has all who are compared, in another order.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench import cluster, programs
from bench.scheduler import Wiring, scheduler_running
from bench.throughput_report import Measured, Target, said, write
from testbed import node_template, nodes
from testbed.api import Api, wait_for
from testbed.node_template import Alternative, Pool, Template
from testbed.providers import Local

NAME: Final = cluster.SCHEDULER
"""Of the scheduler, of the namespace and of the cluster."""
CLUSTER: Final = "bench"
NOBODY: Final = "no extender"
OWN: Final = "fairlead"
OVER_TLS: Final = " over TLS"
"""After the name of a peer: what is left between us is not TLS."""
_POD: Final = re.compile(rb'"name":"web-\d+"')
_PODS: Final = f"/api/v1/namespaces/{NAME}/pods"
_WARM: Final = 20
"""One in so many pods is placed before the time is taken: who begins has to fetch everything first."""
_PLACED_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Case:
    """What is compared."""

    title: str
    filters: tuple[str, ...]
    scores: tuple[str, ...] = ()
    targets: Mapping[str, Target | None] = field(default_factory=dict)
    """By the peer."""
    whole_nodes: bool = False
    """Whether the peers are sent them; Fairlead never is."""


PASSING: Final = ("variables.wants != ''", "allocatable['cpu'] >= 2.0 && pod.spec.priority >= 0", cluster.FILTERS[2])
REFUSING: Final = (cluster.FILTERS[0], *PASSING[1:])
SCORES: Final = (
    "100.0 * (1.0 - requested['cpu'] / allocatable['cpu'])",
    "node.metadata.labels['zone'] == 'z1' ? 50.0 : 0.0",
)
CASES: Final[Mapping[str, Case]] = {
    "a": Case(
        "three filters refuse nobody",
        PASSING,
        targets={"limit": Target(0.87), f"limit{OVER_TLS}": None, "bare": Target(1.1)},
    ),
    "b": Case(
        "one of three filters refuses a quarter of the nodes, and two scores",
        REFUSING,
        SCORES,
        {"limit": Target(0.78), "bare": Target(1.0)},
    ),
    "c": Case("as a; the peer is sent whole nodes", PASSING, targets={"bare": None}, whole_nodes=True),
}


def main() -> int:
    """Measure, print and write."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster goes then, too
    provider = Local(CLUSTER, node=False)
    try:
        provider.up()
        kubeconfig = provider.kubeconfig()
        folder = kubeconfig.parent
        with closing(Api(kubeconfig)) as api:
            wanted = node_template.make(given.nodes, _template(), seed=1)
            nodes.ensure(folder, kubeconfig, wanted)
            _prepare(api)
            for letter in given.cases.split(","):
                case = CASES[letter]
                found = _rounds(_Stage(api, kubeconfig, case, given.nodes, given.pods), given.rounds)
                for line in said(f"throughput-{given.nodes}-{letter}", found, case.targets, OWN, NOBODY):
                    print(line, flush=True)
                heading = f"Case {letter}: {given.nodes} nodes, {given.pods} pods, {given.rounds} rounds"
                write(heading, case.title, found, case.targets, OWN, NOBODY)
    finally:
        provider.down()
    return 0


@dataclass(frozen=True, slots=True)
class _Stage:
    api: Api
    kubeconfig: Path
    case: Case
    nodes: int
    pods: int


def _rounds(stage: _Stage, many: int) -> Mapping[str, list[Measured]]:
    """What each came to, round by round."""
    found: dict[str, list[Measured]] = {name: [] for name in (NOBODY, *stage.case.targets, OWN)}
    for number in range(many):
        order = [*found]
        random.Random(number).shuffle(order)  # noqa: S311  an order
        for name in order:
            found[name].append(_run(stage, name))
            print(f"round {number + 1}: {name} {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def _run(stage: _Stage, name: str) -> Measured:
    """One of those who are compared, once."""
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        case, entries = stage.case, list[dict[str, Any]]()
        wiring = Wiring(scores=bool(case.scores), whole_nodes=case.whole_nodes and name != OWN)
        _make_pods(stage)
        if name == OWN:
            running = programs.fairlead_running(folder, [_policy(case)], stage.kubeconfig)
            entries = wiring.entries(stack.enter_context(running))
        elif name != NOBODY:
            entries = wiring.entries(stack.enter_context(_peer(name, folder)))
        watch = stack.enter_context(_placements(stage))
        scheduler = stack.enter_context(scheduler_running(folder, stage.kubeconfig, NAME, entries, stage.nodes))
        wait_for("all pods to be placed", lambda: len(watch) >= stage.pods, timeout_s=_PLACED_S)
        first = stage.pods // _WARM
        rate = (stage.pods - first) / (watch[stage.pods - 1] - watch[first - 1])
        return Measured(rate, scheduler.algorithm_ms())


def _peer(name: str, folder: Path) -> AbstractContextManager[programs.Extender]:
    bare = name.removesuffix(OVER_TLS)
    return programs.peer_running(name) if bare == name else programs.peer_running_over_tls(bare, folder)


def _policy(case: Case) -> dict[str, Any]:
    plain = cluster.plain(case.filters, case.scores)
    return {**plain, "spec": {**plain["spec"], "schedulerName": NAME}}


def _template() -> Template:
    """A quarter of the nodes has another GPU."""
    gpus = [Alternative({"metadata": {"labels": {"gpu": kind}}}, weight) for kind, weight in (("a", 3), ("b", 1))]
    zones = [Alternative({"metadata": {"labels": {"zone": f"z{at}"}}}) for at in range(3)]
    labels = {f"example.org/label-{number}": str(number) for number in range(20)}
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    node = {"metadata": {"labels": labels}, "status": {"capacity": capacity}}
    return Template([Pool("bench", node, (gpus, zones))], "ip-10-0-eu-central-1-compute-internal")


def _prepare(api: Api) -> None:
    if not api.exists(f"/api/v1/namespaces/{NAME}"):
        api.create("/api/v1/namespaces", {"metadata": {"name": NAME}})
    account = f"/api/v1/namespaces/{NAME}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(account))


def _make_pods(stage: _Stage) -> None:
    api = stage.api
    api.delete(_PODS, gracePeriodSeconds="0")
    wait_for("the pods to be gone", lambda: not api.get(_PODS, limit="1")["items"], timeout_s=_PLACED_S)
    requests = {"cpu": "100m", "memory": "64Mi"}
    spec = {
        "schedulerName": NAME,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}],
    }
    labels = {"app": "web", "gpu": "a"}
    pods = ({"metadata": {"name": f"web-{at}", "labels": labels}, "spec": spec} for at in range(stage.pods))
    api.create_all(_PODS, pods)


@contextmanager
def _placements(stage: _Stage) -> Iterator[list[float]]:
    """When pods were seen to have a node, one moment each; it grows."""
    moments: list[float] = []

    def read() -> None:
        seen = set[bytes]()
        while len(seen) < stage.pods:  # a watch whose reader is slow is ended, and begun again
            lines = stage.api.lines(_PODS, fieldSelector="spec.nodeName!=", watch="true", resourceVersion="0")
            with closing(lines):
                for line in lines:
                    if (found := _POD.search(line)) and found[0] not in seen:
                        seen.add(found[0])
                        moments.append(time.monotonic())
                    if len(seen) == stage.pods:
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
