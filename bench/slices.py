"""A rule that loops over the pods of each node: how long the deadline is out of sight."""

from itertools import pairwise
from time import monotonic_ns
from typing import Final

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, steady
from bench.report import main

_NANOS: Final = 1e-6  # to milliseconds


def longest(size: Size) -> list[float]:
    """The longest time between two looks at the clock, from the call's begin to its end."""
    return [max(later - sooner for sooner, later in pairwise(looks)) * _NANOS for looks in _looks(size)]


def total(size: Size) -> list[float]:
    """The whole call."""
    return [(looks[-1] - looks[0]) * _NANOS for looks in _looks(size)]


def _looks(size: Size) -> list[list[int]]:
    """When the clock was looked at in each of several calls with nothing kept. No pod is the one that is looked for."""
    pods = [cluster.placed(at) for at in range(size.pods_per_node)]
    held, asked, pod = cluster.nodes(size.nodes, pods), cluster.names(size.nodes), cluster.pod()
    found = []
    for _ in range(max(2, size.rounds // 4)):
        asking = cluster.evaluator(held, [f"!pods.exists(p, p.spec.priority > {size.pods_per_node})"])
        looks: list[int] = []

        def clock(looks: list[int] = looks) -> int:
            looks.append(monotonic_ns())
            return looks[-1]

        with steady():
            clock()
            asking.filter(pod, cluster.SCHEDULER, asked, now=cluster.NOW, clock=clock, deadline=cluster.NEVER)
            clock()
        found.append(looks)
    return found


BENCHMARKS: Final[Benchmarks] = {
    "pods-exists-longest-slice": Benchmark("ms", longest),
    "pods-exists-total": Benchmark("ms", total),
}

if __name__ == "__main__":
    main(BENCHMARKS)
