"""Memory that is kept for pods that are all different: bounded, however many come."""

import gc
import sys
from collections.abc import Iterable
from functools import cache
from types import FunctionType, ModuleType
from typing import Final

import msgspec

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size
from bench.report import main
from fairlead.policy.evaluate.evaluator import Evaluator

_MIB: Final = 1 / (1 << 20)


def kept(size: Size) -> list[float]:
    """Memory that is kept once that many distinct pods were asked about."""
    return [_kept(size)[1] * _MIB]


def growth(size: Size) -> list[float]:
    """The same by what was kept after half of them: 1 is bounded."""
    half, everything = _kept(size)
    return [everything / half]


@cache
def _kept(size: Size) -> tuple[int, int]:
    """The bytes that are kept after half of the pods and after all: each is a class of its own."""
    held, asked = cluster.nodes(size.nodes), cluster.names(size.nodes)
    asking = cluster.evaluator(held, ["node.metadata.labels[?'gpu'].orValue('') != pod.metadata.labels['owner']"])
    half = 0
    for at in range(size.distinct_pods):
        if at == size.distinct_pods // 2:
            half = _bytes(asking)
        cluster.ask(asking, cluster.pod({"owner": f"owner-{at}"}), asked)
    return half, _bytes(asking)


def _bytes(asking: Evaluator) -> int:
    """The bytes that are there because of the evaluator alone, without the nodes and the policies."""
    others = {id(thing) for thing in _reach([asking.nodes, asking.policies], set())}
    return sum(sys.getsizeof(thing) for thing in _reach([asking], others))


def _reach(roots: list[object], seen: set[int]) -> list[object]:
    """Objects that can be reached and were not seen, but no code."""
    found, waiting = [], list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType):
            continue
        seen.add(id(thing))
        found.append(thing)
        waiting += _held(thing)
    return found


def _held(thing: object) -> Iterable[object]:
    if isinstance(thing, FunctionType):
        return [thing.__closure__, thing.__defaults__]  # not the module that it stands in
    if isinstance(thing, msgspec.Struct):  # these are hidden from the collector
        return [getattr(thing, field) for field in thing.__struct_fields__]
    return gc.get_referents(thing)


BENCHMARKS: Final[Benchmarks] = {
    "distinct-pods-kept": Benchmark("MiB", kept),
    "distinct-pods-growth": Benchmark("ratio", growth),
}

if __name__ == "__main__":
    main(BENCHMARKS)
