"""Rules that take their time on each node: how long nobody looks at the clock, and how long it takes in all."""

from dataclasses import replace
from itertools import pairwise
from time import thread_time_ns
from typing import Final

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, steady
from bench.report import main
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.views.pod_view import PodView

_NANOS: Final = 1e-6  # to milliseconds


def longest(size: Size) -> list[float]:
    """The longest time between two looks at the clock, from the call's begin to its end."""
    return _longest(_looks(size, f"!pods.exists(p, p.spec.priority > {size.pods_per_node})"))


def total(size: Size) -> list[float]:
    """The whole call."""
    looks = _looks(size, f"!pods.exists(p, p.spec.priority > {size.pods_per_node})")
    return [(each[-1] - each[0]) * _NANOS for each in looks]


def longest_of_patterns(size: Size) -> list[float]:
    """The same with the dearest thing there is to do with a pod."""
    return _longest(_looks(replace(size, rounds=1), "!pods.exists(p, p.metadata.name.matches('^web-[0-9]+$'))"))


def on_engine(size: Size) -> list[float]:
    """A thousand nodes under a rule that is not lowered, because its pattern is known only when it runs."""
    looks = _looks(size, "!node.metadata.name.matches(node.metadata.labels['zone'])")
    return [(each[-1] - each[0]) * _NANOS * 1000 / size.nodes for each in looks]


def _longest(looks: list[list[int]]) -> list[float]:
    return [max(later - sooner for sooner, later in pairwise(each)) * _NANOS for each in looks]


def _looks(size: Size, rule: str) -> list[list[int]]:
    """Readings of the clock in each of several calls with nothing kept. No pod is the one that is looked for."""
    pods = [cluster.placed(at) for at in range(size.pods_per_node)]
    held, asked, pod = cluster.nodes(size.nodes, pods), cluster.names(size.nodes), cluster.pod()
    policies = cluster.policies([rule])
    return [_one(Evaluator(policies, held), pod, asked) for _ in range(max(1, size.rounds // 4))]


def _one(asking: Evaluator, pod: PodView, asked: list[str]) -> list[int]:
    looks: list[int] = []

    def clock() -> int:
        looks.append(thread_time_ns())
        return looks[-1]

    with steady():
        clock()
        matched = asking.matching(pod, cluster.SCHEDULER, cluster.NOW, clock=clock, deadline_ns=cluster.NEVER)
        asking.filter(pod, matched, asked, now=cluster.NOW, clock=clock, deadline_ns=cluster.NEVER)
        clock()
    return looks


BENCHMARKS: Final[Benchmarks] = {
    "pods-exists-longest-slice": Benchmark("ms", longest),
    "pods-exists-total": Benchmark("ms", total),
    "pods-exists-matches-longest-slice": Benchmark("ms", longest_of_patterns),
    "engine-rule": Benchmark("ms/1000", on_engine),
}

if __name__ == "__main__":
    main(BENCHMARKS)
