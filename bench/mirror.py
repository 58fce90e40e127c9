"""Time until the whole cluster is there, the memory that it needs, and what one event costs."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from multiprocessing import Manager, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import thread_time, time_ns
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from bench import objects
from bench.apiserver import ApiServer
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady
from bench.report import main
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.mirror import decode as wire
from fairlead.mirror.mirror import Mirror, NodeSink, PlacedSink
from fairlead.mirror.watched_node import WatchedNode
from fairlead.webhook.serving.mirror_feed import MirrorFeed

PODS_OF_A_NODE: Final = 30
SMALL: Final = 0.2
LARGEST: Final = 3
"""Sizes by that of the other benchmarks: 1000 nodes and 30,000 pods, and 15,000 and 450,000, the largest there are."""
HEARTBEATS_S: Final = 1500
"""Heartbeats of 15,000 nodes, each of which sends one in ten seconds."""
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
    nodes = [_put(body, WatchedNode, mirror.node_sink) for body in objects.pages(objects.nodes(size.nodes))]
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


def _of_sync(field: str, annotation: int = 0, times: float = 1) -> Callable[[Size], list[float]]:
    return lambda size: [getattr(_synced(replace(size, nodes=round(times * size.nodes)), annotation), field)]


def pod_events(size: Size) -> list[float]:
    """A pod becomes different: its readiness has another time."""
    mirror = _filled(size)
    decode = wire.PlacedDecoder()
    changed = [text.replace(b"2026-05", b"2026-06") for text in _some(objects.pods(_EVENTS, size.nodes, version=2))]
    return _each(changed, lambda text: mirror.placed_sink.put(decode(text)))


def node_events(size: Size) -> list[float]:
    """A node sends a heartbeat."""
    mirror = _filled(size)
    return _each(_some(objects.nodes(size.nodes, version=2)), lambda text: mirror.node_sink.put(WatchedNode(text)))


def heartbeats(size: Size) -> list[float]:
    """Heartbeats come one by one, over a connection to another process."""
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as other, Manager() as manager:
        is_listed, is_heard = manager.Event(), manager.Event()
        file = Path(folder, "kubeconfig")
        told = other.submit(_tell_heartbeats, size, file, is_listed, is_heard)
        try:
            spent = asyncio.run(_heard(file, is_listed, min(size.nodes, _EVENTS)))
        finally:
            is_listed.set()
            is_heard.set()
        told.result()
    return [100 * HEARTBEATS_S * spent]


def _tell_heartbeats(size: Size, kubeconfig: Path, is_listed: Event, is_heard: Event) -> None:
    """Be an API server that sends them as soon as its nodes are listed."""
    api = ApiServer()
    api.have("nodes", objects.nodes(size.nodes))
    lines = [b'{"type":"MODIFIED","object":%b}\n' % text for text in _some(objects.nodes(size.nodes, version=2))]
    with api.serving():
        api.kubeconfig(kubeconfig.with_suffix(".new")).rename(kubeconfig)
        is_listed.wait()
        due = time.monotonic()
        for line in lines:
            time.sleep(max(0.0, due - time.monotonic()))
            due += 1 / HEARTBEATS_S
            api.tell("nodes", line)
        is_heard.wait()


async def _heard(kubeconfig: Path, is_listed: Event, many: int) -> float:
    """Return the seconds of this thread's processor time that a reflector takes for each of so many events."""
    while not kubeconfig.exists():
        await asyncio.sleep(0.01)
    async with Client(from_kubeconfig([kubeconfig])) as client:
        one = MirrorFeed(client, Mirror(time_ns)).reflectors["nodes"]
        following = asyncio.create_task(one.run())
        while not one.state.events["BOOKMARK"]:
            await asyncio.sleep(0.01)
        with steady():
            is_listed.set()
            begun = thread_time()
            while one.state.events["MODIFIED"] < many:
                await asyncio.sleep(0.05)
            spent = thread_time() - begun
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
    return spent / many


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
        _put(body, WatchedNode, mirror.node_sink)
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
    "mirror-sync-1000-nodes": Benchmark("s", _of_sync("seconds", times=SMALL)),
    "mirror-resident-1000-nodes": Benchmark("MiB", _of_sync("mebibytes", times=SMALL)),
    "mirror-sync-15000-nodes": Benchmark("s", _of_sync("seconds", times=LARGEST)),
    "mirror-resident-15000-nodes": Benchmark("MiB", _of_sync("mebibytes", times=LARGEST)),
    "mirror-longest-page-15000-nodes": Benchmark("ms", _of_sync("longest_page", times=LARGEST)),
    "mirror-pod-event": Benchmark("us", pod_events),
    "mirror-node-event": Benchmark("us", node_events),
    "mirror-heartbeats": Benchmark("%", heartbeats),
}

if __name__ == "__main__":
    main(BENCHMARKS)
