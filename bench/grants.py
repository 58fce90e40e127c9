"""Cost of a bind whose pod gets a share of a device, against one whose pod asks for none.

A real etcd, API server and `fairlead serve`; a caller with one kept connection, as kube-scheduler has. Both kinds are
called in turn, in random order and with pauses, so that no call pays for what the one before it left to do. The first
binds of each node, which create its ledger, are not counted.
"""

import http.client
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import programs
from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.report import main
from bench.stage import NAME, PODS, Stage, pod, stage_running
from testbed.api import Object
from testbed.node_template import equal

_MEM, _COUNT, _COPY = "example.org/gpu-mem", "example.org/gpu-count", "fairlead.dev/devices"
_NODES, _CARDS, _SIZE, _AMOUNT = 10, 8, 40, 10
LEDGERS: Final = "fairlead-system"
"""The namespace that has the ledgers of a server that is told of none."""
PAUSE_S: Final = 0.02
POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "SchedulerExtenderPolicy",
    "metadata": {"name": "gpu"},
    "spec": {
        "schedulerName": NAME,
        "binding": {"deviceShare": [{"name": "gpu", "shares": [{"resource": _MEM}], "layout": {"count": _COUNT}}]},
    },
}


@cache
def _measured(size: Size) -> Mapping[bool, Sequence[float]]:
    """Return how many milliseconds each bind took, by whether its pod asks for a device."""
    of_each = 4 * size.rounds
    nodes = equal(pods=250, extended={_MEM: str(_CARDS * _SIZE), _COUNT: str(_CARDS)})
    with stage_running(_NODES, nodes, name="bench-grants") as stage, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stage.api.create("/api/v1/namespaces", {"metadata": {"name": LEDGERS}})
        args = [*_made(stage, of_each + _NODES)]
        with programs.fairlead_running(folder, [POLICY], stage.kubeconfig) as own, binding(own, folder) as bind:
            for _, one in args[: 2 * _NODES]:
                bind(one)
            taken: dict[bool, list[float]] = {False: [], True: []}
            for asks, one in shuffled(args[2 * _NODES :]):
                time.sleep(PAUSE_S)
                taken[asks].append(bind(one))
        _check(stage, of_each + _NODES)
    return taken


def _made(stage: Stage, of_each: int) -> Iterator[tuple[bool, Object]]:
    """Create pods of both kinds, and yield whether each asks for a device, and the body of its bind."""
    names = [str(one["metadata"]["name"]) for one in stage.api.items("/api/v1/nodes")]
    for number in range(2 * of_each):
        body, asks = pod(number), bool(number % 2)
        if asks:
            resources = body["spec"]["containers"][0]["resources"]
            resources["requests"][_MEM] = str(_AMOUNT)
            resources["limits"] = {_MEM: str(_AMOUNT)}
        meta = stage.api.create(PODS, body)["metadata"]
        node = names[number // 2 % len(names)]
        yield asks, {"PodName": meta["name"], "PodNamespace": NAME, "PodUID": meta["uid"], "Node": node}


def shuffled(args: Sequence[tuple[bool, Object]]) -> Sequence[tuple[bool, Object]]:
    """Return them in an order that is the same each time."""
    return random.Random(1).sample(args, len(args))  # noqa: S311  an order


@contextmanager
def binding(own: programs.Extender, folder: Path) -> Iterator[Callable[[Object], float]]:
    """Keep a connection, and yield what binds a pod over it and returns how many milliseconds that took."""
    context = programs.client_context(folder / "certificates")
    address = own.url.removeprefix("https://")
    with closing(http.client.HTTPSConnection(address, context=context)) as connection:
        yield partial(_bind, connection)


def _bind(connection: http.client.HTTPSConnection, args: Object) -> float:
    """Bind a pod, and return how many milliseconds the caller waited. Raises RuntimeError if it is refused."""
    body = json.dumps(args).encode()
    begun = time.perf_counter()
    connection.request("POST", "/bind", body, {"Content-Type": "application/json"})
    reply = connection.getresponse().read()
    took = (time.perf_counter() - begun) * MILLI
    if why := json.loads(reply).get("Error"):
        raise RuntimeError(f"{args['PodName']} is not bound: {why}")
    return took


def _check(stage: Stage, granted: int) -> None:
    """Raise RuntimeError unless so many pods were bound with a grant, and as many without."""
    placed = [one["metadata"] for one in stage.api.items(PODS) if one["spec"].get("nodeName")]
    found = sum(_COPY in one.get("annotations", {}) for one in placed)
    if (found, len(placed)) != (granted, 2 * granted):
        raise RuntimeError(f"{len(placed)} pods are bound, {found} with a grant: {granted} of each kind were called")


def _ratio(size: Size) -> Sequence[float]:
    taken = _measured(size)
    return [median(taken[True]) / median(taken[False])]


BENCHMARKS: Final[Benchmarks] = {
    "bind-with-grant": Benchmark("ms", lambda size: _measured(size)[True]),
    "bind-without-grant": Benchmark("ms", lambda size: _measured(size)[False]),
    "bind-with-grant-to-without": Benchmark("ratio", _ratio),
}

if __name__ == "__main__":
    main(BENCHMARKS)
