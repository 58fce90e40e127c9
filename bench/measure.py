"""Benchmarks, and how their samples are taken.

Time is that of the processor: all that is measured computes in one thread and waits for nothing, so that this is what a
clock on the wall would show if nobody else used the machine.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import thread_time
from typing import Final, TypeVar

MILLI: Final = 1e3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Size:
    """Size of what is measured."""

    nodes: int = 5000
    pods_per_node: int = 250
    distinct_pods: int = 10_000
    rounds: int = 50


TINY: Final = Size(nodes=8, pods_per_node=3, distinct_pods=20, rounds=2)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One number, measured several times."""

    unit: str
    samples: Callable[[Size], Sequence[float]]


Benchmarks = Mapping[str, Benchmark]


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a benchmark: the median is the value; the best says how much of that may be the neighbours' noise."""

    name: str
    unit: str
    value: float
    best: float


def run(benchmarks: Benchmarks, wanted: str, size: Size) -> Iterator[Measured]:
    """Measure those whose name has this text in it."""
    for name, benchmark in benchmarks.items():
        if wanted in name:
            samples = benchmark.samples(size)
            best = max if benchmark.unit == "times" else min
            yield Measured(name, benchmark.unit, median(samples), best(samples))


def timed(
    call: Callable[[T], object], rounds: int, prepare: Callable[[], T], clock: Callable[[], float] = thread_time
) -> list[float]:
    """Milliseconds that each of many calls takes, after one that is not counted; what it needs is made before."""
    call(prepare())
    samples = []
    with steady():
        for _ in range(rounds):
            given = prepare()
            start = clock()
            call(given)
            samples.append((clock() - start) * MILLI)
    return samples


@contextmanager
def steady() -> Iterator[None]:
    """Keep the collector from walking what was set up, as a server does that has loaded its data; it stays on."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
