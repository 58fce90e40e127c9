"""First list of a process that begins to learn outcomes: what it takes, and what calls take meanwhile."""

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from bench import cluster, objects, programs, webhook
from bench.apiserver import OF_A_SCHEDULER, ApiServer
from bench.measure import Benchmark, Benchmarks, Size
from bench.report import main
from bench.single import policy

PODS_OF_A_NODE: Final = 30
_BATCH: Final = 100
_PAUSE_MS: Final = 10
_STATUS: Final = {
    "phase": "Running",
    "startTime": "2026-05-01T00:00:00Z",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T00:00:09Z"}],
    "containerStatuses": [
        {
            "name": "main",
            "ready": True,
            "restartCount": 0,
            "image": "registry.example.org/team/app:v1.2.3",
            "imageID": "registry.example.org/team/app@sha256:" + 64 * "0",
            "containerID": "containerd://" + 64 * "0",
            "state": {"running": {"startedAt": "2026-05-01T00:00:05Z"}},
        }
    ],
}


class _Found(NamedTuple):
    processor_s: float
    bytes_a_pod: float
    calls_ms: list[float]


def _policy() -> dict[str, Any]:
    made = policy(cluster.SCHEDULER, webhook.KEEPING)
    made["spec"]["scores"] = [{"name": "works", "kubeRL": {}}]
    return made


def _pods(size: Size) -> Iterator[bytes]:
    """All of them settled long ago, so that each is an outcome."""
    for text in objects.pods(PODS_OF_A_NODE * size.nodes, size.nodes):
        pod = json.loads(text)
        pod["spec"]["schedulerName"] = cluster.SCHEDULER
        yield msgspec.json.encode({**pod, "status": _STATUS})


@cache
def _measured(size: Size) -> _Found:
    """Call while all pods of the scheduler are listed. The base is the same process without a rule that learns."""
    api = ApiServer()
    api.have("nodes", objects.nodes(size.nodes))
    api.have(OF_A_SCHEDULER, _pods(size))
    with tempfile.TemporaryDirectory() as name, api.serving():
        folder = Path(name)
        body = folder / "body.json"
        body.write_bytes(webhook.body(b"null", msgspec.json.encode(list(map(cluster.name, range(size.nodes))))))
        before = policy(cluster.SCHEDULER, webhook.KEEPING)
        with programs.fairlead_running(folder, [before], api.kubeconfig(folder / "kubeconfig")) as own:
            target, certificates = programs.Target(f"{own.url}/filter", [body]), folder / "certificates"
            programs.call([target], _BATCH, certificates, _PAUSE_MS)
            memory, used = _memory(own), programs.processor_s(own.pid)
            (folder / "policies" / "0.yaml").write_bytes(msgspec.json.encode(_policy()))
            calls: list[int] = []
            done = f"outcomes: {cluster.SCHEDULER}: {PODS_OF_A_NODE * size.nodes} pods"
            while done not in _readyz(own):
                calls += programs.call([target], _BATCH, certificates, _PAUSE_MS)[0]
            used = programs.processor_s(own.pid) - used
            grown = _memory(own) - memory
    return _Found(used, grown / (PODS_OF_A_NODE * size.nodes), [took / 1e6 for took in calls])


def _memory(own: programs.Extender) -> int:
    return int(psutil.Process(own.pid).memory_info().rss)


def _readyz(own: programs.Extender) -> str:
    with urllib.request.urlopen(f"{own.probes}/readyz", timeout=5) as answer:  # noqa: S310  our own
        return str(answer.read().decode())


def processor(size: Size) -> list[float]:
    """Processor time of the process until all are listed, with the calls that it answers meanwhile."""
    return [_measured(size).processor_s]


def memory(size: Size) -> list[float]:
    """Growth of the process for each pod."""
    return [_measured(size).bytes_a_pod]


def p99(size: Size) -> list[float]:
    """Slowest of a hundred calls about all nodes meanwhile, with 10 ms between two of them."""
    return [quantiles(_measured(size).calls_ms, n=100, method="inclusive")[98]]


BENCHMARKS: Final[Benchmarks] = {
    "outcomes-list-processor": Benchmark("s", processor),
    "outcomes-list-memory": Benchmark("bytes", memory),
    "outcomes-list-filter-p99": Benchmark("ms", p99),
}

if __name__ == "__main__":
    main(BENCHMARKS)
