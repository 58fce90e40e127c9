"""Time until the whole cluster is there, the memory that it needs, and what one event costs."""

import gc
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from time import thread_time, time_ns
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from bench import objects
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady
from bench.report import main
from fairlead.mirror import decode as wire
from fairlead.mirror.mirror import Mirror, NodeSink, PlacedSink

PODS_OF_A_NODE: Final = 30
_LARGE: Final = 20 << 10
_EVENTS: Final = 1000
_MIB: Final = 1 / (1 << 20)
_MICRO: Final = 1e6


class Synced(NamedTuple):
    """Time and memory of filling an empty mirror."""

    seconds: float
    mebibytes: float
    longest_page: float


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]


_page: Final = msgspec.json.Decoder(_Page)


def sync(size: Size, annotation: int) -> Synced:
    """Have all nodes and pods, from the bodies of lists; of the processor's time, only what that takes."""
    mirror = Mirror(time_ns)
    nodes = [_put(body, wire.node, mirror.node_sink) for body in objects.pages(objects.nodes(size.nodes))]
    pods = objects.pods(size.nodes * PODS_OF_A_NODE, size.nodes, annotation)
    took = [_put(body, wire.PlacedDecoder(), mirror.placed_sink) for body in objects.pages(pods)]
    resident = psutil.Process().memory_info().rss * _MIB
    return Synced(sum(nodes) + sum(took), resident, max(took) * MILLI)


def _put(body: bytes, decode: Callable[[msgspec.Raw], Any], sink: NodeSink | PlacedSink) -> float:
    """As a server does it: between pages, what has come is hidden from the collector, which would walk it for long."""
    start = thread_time()
    for raw in _page.decode(body).items:
        sink.put(decode(raw))
    gc.freeze()
    return thread_time() - start


@cache
def _synced(size: Size, annotation: int) -> Synced:
    """The same in a process of its own, whose memory nobody has used before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        return alone.submit(sync, size, annotation).result()


def _of_sync(field: str, annotation: int = 0) -> Callable[[Size], list[float]]:
    return lambda size: [getattr(_synced(size, annotation), field)]


def pod_events(size: Size) -> list[float]:
    """A pod becomes different: its readiness has another time."""
    mirror = _filled(size)
    decode = wire.PlacedDecoder()
    changed = [text.replace(b"2026-05", b"2026-06") for text in _some(objects.pods(_EVENTS, size.nodes, version=2))]
    return _each(changed, lambda text: mirror.placed_sink.put(decode(text)))


def node_events(size: Size) -> list[float]:
    """A node sends a heartbeat."""
    mirror = _filled(size)
    return _each(_some(objects.nodes(size.nodes, version=2)), lambda text: mirror.node_sink.put(wire.node(text)))


def _some(texts: Iterable[bytes]) -> list[bytes]:
    return [text for text, _ in zip(texts, range(_EVENTS), strict=False)]


def _each(texts: list[bytes], put: Callable[[bytes], object]) -> list[float]:
    samples = []
    with steady():
        for text in texts:
            start = thread_time()
            put(text)
            samples.append((thread_time() - start) * _MICRO)
    return samples


@cache
def _filled(size: Size) -> Mirror:
    mirror = Mirror(time_ns)
    for body in objects.pages(objects.nodes(size.nodes)):
        _put(body, wire.node, mirror.node_sink)
    for body in objects.pages(objects.pods(size.nodes * PODS_OF_A_NODE, size.nodes)):
        _put(body, wire.PlacedDecoder(), mirror.placed_sink)
    return mirror


BENCHMARKS: Final[Benchmarks] = {
    "mirror-sync": Benchmark("s", _of_sync("seconds")),
    "mirror-resident": Benchmark("MiB", _of_sync("mebibytes")),
    "mirror-longest-page": Benchmark("ms", _of_sync("longest_page")),
    "mirror-sync-20k-annotations": Benchmark("s", _of_sync("seconds", _LARGE)),
    "mirror-resident-20k-annotations": Benchmark("MiB", _of_sync("mebibytes", _LARGE)),
    "mirror-longest-page-20k-annotations": Benchmark("ms", _of_sync("longest_page", _LARGE)),
    "mirror-pod-event": Benchmark("us", pod_events),
    "mirror-node-event": Benchmark("us", node_events),
}

if __name__ == "__main__":
    main(BENCHMARKS)
