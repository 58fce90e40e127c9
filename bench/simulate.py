"""Time of `fairlead simulate`: 1000 pods on 5000 nodes with ten rules, from the start of Python to its end."""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from bench import cluster, objects
from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.report import main

_PODS: Final = 10  # a tenth of what other benchmarks take
_CLASSES: Final = 40
_PLACED: Final = 10  # on each node
_FILTERS: Final = (
    "pod.metadata.labels[?'tier'].orValue('') != '' || node.metadata.labels[?'example.org/label-1'].orValue('') != ''",
    "allocatable['cpu'] >= 2.0",
    "node.metadata.labels['example.org/label-2'] != '2-3' && !node.spec.unschedulable",
    "free['cpu'] >= request['cpu']",
    "node.metadata.labels['example.org/label-3'] != pod.metadata.labels['not']",
    "pods.size() < 200",
    "!pods.exists(p, p.metadata.labels[?'alone'].orValue('') == pod.metadata.labels['tier'])",
)
_SCORES: Final = (
    "100.0 * requested['cpu'] / allocatable['cpu']",
    "node.metadata.labels['example.org/label-4'] == pod.metadata.labels['likes'] ? 100.0 : 0.0",
    "100.0 - double(pods.size())",
)


def json_(size: Size) -> list[float]:
    """Every node of every pod, as JSON."""
    return _taken(size, "json")


def table(size: Size) -> list[float]:
    """Time of the table that people read."""
    return _taken(size, "table")


def _taken(size: Size, output: str) -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.yaml").write_text(yaml.safe_dump(cluster.plain(_FILTERS, _SCORES)))
        with (folder / "c.json").open("wb") as file:
            file.writelines(_listed(size))
        (folder / "q.json").write_text(json.dumps({"kind": "List", "items": [*_pods(size.distinct_pods // _PODS)]}))
        given = ["--policies", "p.yaml", "--snapshot", "c.json", "--pods", "q.json", "-o", output]
        before = _spent_s()
        with (folder / "out").open("wb") as out:
            subprocess.run([sys.executable, "-m", "fairlead", "simulate", *given], cwd=folder, check=True, stdout=out)
        return [(_spent_s() - before) * MILLI]


def _spent_s() -> float:
    """Processor time of all programs that have ended; this one computes in a single thread."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _listed(size: Size) -> Iterator[bytes]:
    """As `kubectl get nodes,pods -o json` writes it, but for the blanks."""
    many = size.nodes * min(size.pods_per_node, _PLACED)
    for kind, those in (("Node", objects.nodes(size.nodes)), ("Pod", objects.pods(many, size.nodes))):
        for one in those:
            yield b'{"apiVersion":"v1","kind":"%b",' % kind.encode() + one[1:] + b"\n"


def _pods(many: int) -> Iterator[dict[str, Any]]:
    """Pods of some workloads."""
    for at in range(many):
        of = at % _CLASSES
        labels = {"tier": f"t{of % 5}", "not": f"3-{of % 7}", "likes": f"4-{of % 6}", "app": f"app-{of}"}
        requests = {"cpu": f"{100 * (1 + of)}m", "memory": f"{128 * (1 + of)}Mi"}
        container = {"name": "main", "image": "i", "resources": {"requests": requests}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p-{at}", "namespace": "ml", "labels": labels},
            "spec": {"schedulerName": cluster.SCHEDULER, "priority": 10, "containers": [container]},
        }


BENCHMARKS: Final[Benchmarks] = {"simulate-json": Benchmark("ms", json_), "simulate-table": Benchmark("ms", table)}

if __name__ == "__main__":
    main(BENCHMARKS)
