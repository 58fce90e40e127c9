"""Staleness of the server at 500 events a second, and what calls take meanwhile."""

import http.client
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

import msgspec

from bench import cluster, objects, programs, webhook
from bench.apiserver import ApiServer
from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.mirror import PODS_OF_A_NODE
from bench.report import main
from bench.single import policy

EVENTS_S: Final = 500
_FLAGGED: Final = "flagged"
_TURN_S: Final = 0.01
_EVENTS: Final = 2000
_LONG_S: Final = 30.0
POLICIES: Final = (
    policy(cluster.SCHEDULER, ("allocatable['cpu'] >= 2.0", "requested['cpu'] < 1000.0", "!node.spec.unschedulable")),
    policy(_FLAGGED, ("node.metadata.labels[?'flag'].orValue('off') == 'on'",)),
)


class _Found(NamedTuple):
    staleness: list[float]
    calls: list[float]


@cache
def _measured(size: Size) -> _Found:
    """Milliseconds of each look, and of each call."""
    api = ApiServer()
    api.have("nodes", objects.nodes(size.nodes))
    api.have("pods", objects.pods(size.nodes * PODS_OF_A_NODE, size.nodes))
    with tempfile.TemporaryDirectory() as name, api.serving():
        folder = Path(name)
        kubeconfig = api.kubeconfig(folder / "kubeconfig")
        with programs.fairlead_running(folder, POLICIES, kubeconfig) as own, _events(api, size):
            bodies = [folder / "body.json"]
            bodies[0].write_bytes(
                webhook.body(b"null", msgspec.json.encode(list(map(cluster.name, range(size.nodes)))))
            )
            calls: list[list[int]] = []
            many = 20 * size.rounds
            target = programs.Target(f"{own.url}/filter", bodies)
            caller = threading.Thread(
                target=lambda: calls.extend(programs.call([target], many, folder / "certificates", pause_ms=10))
            )
            caller.start()
            staleness = [_seen(api, own, folder, number) for number in range(4 * size.rounds)]
            caller.join()
    return _Found(staleness, [took / 1e6 for took in calls[0]])


@contextmanager
def _events(api: ApiServer, size: Size) -> Iterator[None]:
    """Pods that become different, and one heartbeat for every four of them."""
    pods = (("pods", text) for text in islice(objects.pods(_EVENTS, size.nodes, version=2), _EVENTS))
    beats = (("nodes", text) for text in objects.nodes(size.nodes, version=2))
    told = [one for number, pod in enumerate(pods) for one in ((pod,) if number % 4 else (pod, next(beats, pod)))]
    texts = cycle(told)
    done = threading.Event()

    def tell() -> None:
        due, version = time.monotonic(), 10_000_000
        while not done.wait(max(0.0, due - time.monotonic())):
            due += _TURN_S
            for kind, text in islice(texts, round(EVENTS_S * _TURN_S)):
                version += 1
                moment = f"2027-{1 + version % 12:02}".encode()
                api.tell(kind, b'{"type":"MODIFIED","object":%b}\n' % text.replace(b"2026-05", moment))

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _seen(api: ApiServer, own: programs.Extender, folder: Path, number: int) -> float:
    """Time until a changed label changes the answer."""
    want = "off" if number % 2 else "on"
    node = json.loads(next(objects.nodes(1)))
    node["metadata"]["labels"]["flag"] = want
    node["metadata"]["resourceVersion"] = str(50_000_000 + number)
    line = b'{"type":"MODIFIED","object":%b}\n' % msgspec.json.encode(node)
    body = webhook.body(b"null", msgspec.json.encode([cluster.name(0)]), _FLAGGED)
    with _connected(own, folder) as ask:
        ask(body)
        begun = time.monotonic()
        api.tell("nodes", line)
        while bool(ask(body)["NodeNames"]) is not (want == "on"):
            if time.monotonic() - begun > _LONG_S:
                raise RuntimeError("the server does not follow")
        return (time.monotonic() - begun) * MILLI


@contextmanager
def _connected(own: programs.Extender, folder: Path) -> Iterator[Callable[[bytes], Any]]:
    context = programs.client_context(folder / "certificates")
    connection = http.client.HTTPSConnection(own.url.removeprefix("https://"), context=context)

    def ask(body: bytes) -> Any:
        connection.request("POST", "/filter", body)
        return json.loads(connection.getresponse().read())

    try:
        yield ask
    finally:
        connection.close()


def _p99(values: list[float]) -> list[float]:
    return [quantiles(values, n=100, method="inclusive")[98]]


BENCHMARKS: Final[Benchmarks] = {
    "follow-staleness-p99": Benchmark("ms", lambda size: _p99(_measured(size).staleness)),
    "follow-filter-p99": Benchmark("ms", lambda size: _p99(_measured(size).calls)),
    "follow-filter-longest": Benchmark("ms", lambda size: [max(_measured(size).calls)]),
}

if __name__ == "__main__":
    main(BENCHMARKS)
