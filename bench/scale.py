"""Large clusters, in a real API server: what a replica of the operator needs in them, and what a scheduler does.

At each size: time until `fairlead serve` is ready, its memory, calls with pods that no earlier one was like, and the
memory of a kube-scheduler by how often it collects garbage; in the largest cluster heartbeats, too. Takes a quarter of
an hour on two cores, and 12 GiB: `python -m bench.scale`.
"""

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import psutil

from bench import cluster, objects, page, programs
from bench.large_cluster import NODES, LargeCluster, large_cluster_running
from bench.measure import MILLI, Measured
from bench.mirror import HEARTBEATS_S
from bench.report import Line, Target, judged
from bench.scheduler import Wiring, scheduler_running
from bench.stage import NAME, PODS, pod
from testbed.api import wait_for

_FILTERS: Final = (
    "node.metadata.labels[?'example.org/label-3'].orValue('') != variables.avoids",
    "allocatable['cpu'] >= 2.0 && pod.spec.priority >= 0",
    "requested['cpu'] < 1000.0 && !node.spec.unschedulable",
)
_SCORES: Final = ("100.0 * (1.0 - requested['cpu'] / allocatable['cpu'])",)
_SIZES: Final = "1000:30000,5000:150000,15000:150000"
_CLASSES: Final = 20
_PAUSE_S: Final = 0.2
_TURN_S: Final = 0.02
_PLACED_S: Final = 120.0
_MIB: Final = 1 / (1 << 20)
_FIRST_CALL: Final = Target("ms", below=100)
_HEARTBEATS: Final = Target("%", below=10)


def main() -> int:
    """Measure, print and write."""
    given = _parser().parse_args()
    sizes = [(int(nodes), int(pods)) for nodes, _, pods in (one.partition(":") for one in given.sizes.split(","))]
    lines = []
    with large_cluster_running("bench-scale") as large:
        large.api.create("/api/v1/namespaces", {"metadata": {"name": NAME}})
        large.api.create(f"/api/v1/namespaces/{NAME}/serviceaccounts", {"metadata": {"name": "default"}})
        for at, (nodes, pods) in enumerate(sizes):
            large.grow(nodes, pods)
            for line in _measured(large, given, is_largest=at == len(sizes) - 1):
                print(line, flush=True)
                lines.append(line)
    if given.page:
        clusters = ", ".join(f"{nodes} with {pods} pods" for nodes, pods in sizes)
        about = "A real API server, `bench.scale`; where nodes send heartbeats, as many as it passes on."
        page.put("At scale", [about, f"Nodes: {clusters}.", page.when_and_where(), "", *page.rows(lines)])
    return 0


def _measured(large: LargeCluster, given: argparse.Namespace, *, is_largest: bool) -> Iterator[Line]:
    prefix = f"scale-{large.nodes}"
    if given.base and is_largest:
        with _replica(large, given.base) as (own, _):
            yield from _started(f"{prefix}-base", own)
            yield from _heartbeats(f"{prefix}-base", large, own, given.seconds)
    with _replica(large) as (own, folder):
        yield from _started(prefix, own)
        yield from _first_calls(prefix, own, folder, large.nodes)
        if is_largest:
            yield from _heartbeats(prefix, large, own, given.seconds)
        else:
            for gogc in map(int, filter(None, given.gogc.split(","))):
                yield from _scheduler(prefix, large, own, folder, given.seconds, gogc)
        yield _line(f"{prefix}-resident-at-the-end", "MiB", [psutil.Process(own.pid).memory_info().rss * _MIB])


@contextmanager
def _replica(large: LargeCluster, python: str = sys.executable) -> Iterator[tuple[programs.Extender, Path]]:
    """Run `fairlead serve`, and provide it and a folder once it is ready."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with programs.fairlead_running(folder, [_policy()], large.kubeconfig, python=python) as own:
            yield own, folder


def _started(prefix: str, own: programs.Extender) -> Iterator[Line]:
    process = psutil.Process(own.pid)
    yield _line(f"{prefix}-ready", "s", [time.time() - process.create_time()])
    yield _line(f"{prefix}-ready-processor", "s", [programs.processor_s(own.pid)])
    yield _line(f"{prefix}-resident", "MiB", [process.memory_info().rss * _MIB])


def _policy() -> dict[str, Any]:
    plain = cluster.plain(_FILTERS, _SCORES)
    variables = [{"name": "avoids", "expression": "pod.metadata.labels[?'avoids'].orValue('nothing')"}]
    return {**plain, "spec": {**plain["spec"], "schedulerName": NAME, "variables": variables}}


def _first_calls(prefix: str, own: programs.Extender, folder: Path, nodes: int) -> Iterator[Line]:
    """Call as a scheduler does that asks about all nodes, and as one that asks about a sample."""
    address, numbers = own.url.removeprefix("https://"), count()
    context = programs.client_context(folder / "certificates")

    def call(connection: http.client.HTTPSConnection, names: bytes, many: int) -> float:
        metadata = {"name": "pod", "namespace": NAME, "uid": "uid", "labels": {"avoids": f"value-{next(numbers)}"}}
        asked = msgspec.json.encode({"metadata": metadata, "spec": {"schedulerName": NAME, "priority": 0}})
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (asked, names)
        begun = time.perf_counter()
        connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
        reply = connection.getresponse().read()
        took = (time.perf_counter() - begun) * MILLI
        if len(json.loads(reply)["NodeNames"]) != many:
            raise RuntimeError(f"not all of {many} nodes passed: {reply[:300]!r}")
        return took

    with closing(http.client.HTTPSConnection(address, context=context)) as connection:
        for name, many in (("", nodes), ("-sampled", max(1, nodes // 20))):
            names = msgspec.json.encode(list(map(cluster.name, range(many))))
            if not name:
                yield _line(f"{prefix}-first-call", "ms", [call(connection, names, many)])
            took = []
            before = programs.processor_s(own.pid)
            for _ in range(_CLASSES):
                took.append(call(connection, names, many))
                time.sleep(_PAUSE_S)
            yield _line(f"{prefix}-new-class{name}", "ms", took, _FIRST_CALL)
            yield _line(f"{prefix}-new-class{name}-longest", "ms", [max(took)], _FIRST_CALL)
            spent = (programs.processor_s(own.pid) - before) / _CLASSES * MILLI
            yield _line(f"{prefix}-new-class{name}-processor", "ms", [spent])


def _heartbeats(prefix: str, large: LargeCluster, own: programs.Extender, seconds: float) -> Iterator[Line]:
    """Have nodes send heartbeats in their order, as often as they do or as it goes; the share is that of the former."""
    time.sleep(seconds / 4)
    begun, before = time.monotonic(), programs.processor_s(own.pid)
    time.sleep(seconds / 2)
    yield _line(f"{prefix}-idle", "%", [100 * (programs.processor_s(own.pid) - before) / (time.monotonic() - begun)])
    nodes = (node for version in count(2) for node in objects.nodes(large.nodes, version))
    turns = round(seconds / _TURN_S)
    revision = written = 0
    begun, before, of_api = time.monotonic(), programs.processor_s(own.pid), programs.processor_s(large.apiserver_pid)
    due = begun
    while turns and time.monotonic() - begun < 2 * seconds:
        turns -= 1
        time.sleep(max(0.0, due - time.monotonic()))
        due += _TURN_S
        some = [*islice(nodes, round(HEARTBEATS_S * _TURN_S))]
        revision = large.write_at_once(NODES, some)
        written += len(some)
    large.wait_until_known(NODES, revision)
    lasted = time.monotonic() - begun
    time.sleep(1)  # the last ones come
    each = (programs.processor_s(own.pid) - before) / written
    yield _line(f"{prefix}-heartbeats-sent", "/s", [written / lasted])
    yield _line(f"{prefix}-heartbeats", "%", [100 * each * HEARTBEATS_S], _HEARTBEATS)
    yield _line(
        f"{prefix}-heartbeat-in-the-api-server",
        "us",
        [(programs.processor_s(large.apiserver_pid) - of_api) / written * 1e6],
    )


def _scheduler(
    prefix: str, large: LargeCluster, own: programs.Extender, folder: Path, seconds: float, gogc: int
) -> Iterator[Line]:
    """Have a scheduler place 20 pods a second."""
    at = folder / str(gogc)
    at.mkdir()
    wired = Wiring(scores=True).entries(own)
    with (
        scheduler_running(at, large.kubeconfig, NAME, wired, large.nodes, gogc=gogc) as scheduler,
        _peak(scheduler.pid) as peak,
    ):
        large.api.create(PODS, pod(0))
        wait_for("the first pod to be placed", lambda: scheduler.algorithm().count >= 1, timeout_s=_PLACED_S)
        started = peak[0]
        before = programs.processor_s(scheduler.pid)
        many = round(20 * seconds)
        due = time.monotonic()
        for number in range(1, many + 1):
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - 0.05) + 0.05
            large.api.create(PODS, pod(number))
        wait_for("all pods to be placed", lambda: scheduler.algorithm().count >= many, timeout_s=_PLACED_S)
        spent = (programs.processor_s(scheduler.pid) - before) / many * MILLI
        name = f"{prefix}-scheduler-gogc-{gogc}"
        yield _line(f"{name}-started", "MiB", [started * _MIB])
        yield _line(f"{name}-peak", "MiB", [peak[0] * _MIB])
        yield _line(f"{name}-at-the-end", "MiB", [psutil.Process(scheduler.pid).memory_info().rss * _MIB])
        yield _line(f"{name}-processor", "ms/pod", [spent])
    large.api.delete(PODS, gracePeriodSeconds="0")
    wait_for("the pods to be gone", lambda: not large.api.get(PODS, limit="1")["items"])


@contextmanager
def _peak(pid: int) -> Iterator[list[int]]:
    """Provide the most memory that a process has had resident, in the only item."""
    found, ended, process = [0], threading.Event(), psutil.Process(pid)

    def look() -> None:
        while not ended.wait(0.1):
            found[0] = max(found[0], process.memory_info().rss)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _line(name: str, unit: str, values: Sequence[float], target: Target | None = None) -> Line:
    return judged(Measured(name, unit, median(values), min(values)), target)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.scale", description=__doc__)
    made.add_argument("--sizes", default=_SIZES, help="nodes:pods of each cluster, in growing order (%(default)s)")
    made.add_argument("--seconds", type=float, default=30.0, help="of pods and of heartbeats (%(default)g)")
    made.add_argument("--gogc", default="100,400", help="settings of schedulers (%(default)s)")
    made.add_argument("--base", metavar="PYTHON", help="that of another checkout, whose replica is measured, too")
    made.add_argument("--no-page", dest="page", action="store_false")
    return made


if __name__ == "__main__":
    sys.exit(main())
