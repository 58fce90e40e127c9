"""From a policy as it was written to one that can be evaluated."""

from collections.abc import Sequence
from itertools import pairwise
from time import thread_time
from typing import Final

from bench import cluster
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady, timed
from bench.report import main
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.check import MAX_BYTES
from fairlead.policy.compile.compiler import CompileOptions, compile_steps

_FILTERS: Final = (
    *cluster.FILTERS,
    "!pods.exists(p, p.metadata.namespace == pod.metadata.namespace && p.spec.priority > pod.spec.priority)",
    "node.status.conditions.all(c, c.type == 'Ready' || c.status != 'True')",
    "node.metadata.labels['zone'] in ['z1'] || pod.spec.containers.all(c, c.image.startsWith('registry.example.org/'))",
)
_SCORES: Final = (
    *cluster.SCORES,
    "pods.filter(p, p.metadata.labels[?'app'] == pod.metadata.labels[?'app']).size()",
    "free['cpu'] > 4.0 ? 100.0 : free['cpu'] * 25.0",
)
_CONDITIONS: Final = ("pod.metadata.labels[?'team'].orValue('none') != 'none'",)


def whole(size: Size) -> list[float]:
    """A policy of ten rules, at one stretch."""
    return [(looks[-1] - looks[0]) * MILLI for looks in _looks(size)]


def stretch(size: Size) -> list[float]:
    """The longest time between two pauses."""
    return [max(later - sooner for sooner, later in pairwise(looks)) * MILLI for looks in _looks(size)]


def first(_: Size) -> list[float]:
    """The longest stretch of the first policy of a process, which finds nothing prepared."""
    return [max(later - sooner for sooner, later in pairwise(_once())) * MILLI]


def largest(size: Size) -> list[float]:
    """The longest stretch of a policy of one expression that is as long as it may be."""
    rule = " || ".join(["node.metadata.labels['a'] == 'b'"] * (MAX_BYTES // 36))
    rounds = max(2, size.rounds // 5)
    return [max(later - sooner for sooner, later in pairwise(_once([rule]))) * MILLI for _ in range(rounds)]


def parsed(size: Size) -> list[float]:
    """Time of what comes before: the same policy from plain data to its model, checked."""
    return timed(lambda _: _parse(), size.rounds, lambda: None)


def _parse(filters: Sequence[str] = _FILTERS) -> SchedulerExtenderPolicy:
    return cluster.written(cluster.plain(filters, _SCORES, _CONDITIONS))


def _looks(size: Size) -> list[list[float]]:
    _once()
    with steady():
        return [_once() for _ in range(size.rounds)]


def _once(filters: Sequence[str] = _FILTERS) -> list[float]:
    """Times at which it began, paused and ended."""
    steps = compile_steps(_parse(filters), CompileOptions())
    return [thread_time(), *(thread_time() for _ in steps), thread_time()]


BENCHMARKS: Final[Benchmarks] = {
    "compile-first-stretch": Benchmark("ms", first),
    "compile-10-rules": Benchmark("ms", whole),
    "compile-longest-stretch": Benchmark("ms", stretch),
    "compile-largest-expression-stretch": Benchmark("ms", largest),
    "parse-10-rules": Benchmark("ms", parsed),
}

if __name__ == "__main__":
    main(BENCHMARKS)
