"""Groups of pods in a replica: what filter takes to reject a member, and what the index of placed pods takes."""

import asyncio
import gc
import tracemalloc
from time import thread_time
from typing import Any, Final

import msgspec

from bench import cluster, objects, webhook
from bench.counted_calls import AT_NS, CALLER, routes_of
from bench.measure import Benchmark, Benchmarks, Size, steady, timed
from bench.mirror import PODS_OF_A_NODE
from bench.report import main
from fairlead.groups.turns import WAITING
from fairlead.metrics import Metrics
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import IncomingCall, Reply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import build_serving_state
from fairlead.webhook.holding.group_holding import GroupHolding
from fairlead.webhook.holding.group_watch import GroupWatch

_ASKED: Final = 500
_WAITING: Final = 1000
_SIZE: Final = 8


def _policy(label: str, size: int) -> CompiledPolicy:
    made = cluster.plain(())
    gang = {"name": "jobs", "group": f"pod.metadata.labels[?'{label}'].orValue('')", "size": str(size)}
    return compile_policy(
        cluster.written({**made, "spec": {**made["spec"], "binding": {"gang": [gang]}}}), CompileOptions()
    )


def rejected(size: Size) -> list[float]:
    """Call filter for a member whose group waits for others, as the rest of a thousand pods do."""
    nothing: Any = None
    policies, mirror = policy_set([_policy("job", _SIZE + 1)]), Mirror(lambda: cluster.NOW)
    asked = min(_ASKED, size.nodes)
    groups = GroupHolding(
        nothing, mirror, None, lambda: cluster.NOW, lambda: 0, DeviceGrants(nothing, mirror, "", lambda: ())
    )
    asyncio.run(groups.follow(policies.policies))
    for number in range(_WAITING):
        mirror.unplaced_sink.put(decode.pod(msgspec.Raw(_waiting(number))))
    state = build_serving_state(
        policies,
        cluster.nodes(asked),
        mirror,
        CircuitBreaker(),
        NodeNameCache(),
        RuleErrorTally(),
        groups=groups,
    )
    routes = routes_of(state, Metrics())
    body = msgspec.json.encode(
        {"Pod": msgspec.Raw(_waiting(0)), "Nodes": None, "NodeNames": [cluster.name(at) for at in range(asked)]}
    )
    said = WAITING.encode()

    def call(_: None) -> None:
        reply = routes["/filter"](IncomingCall("scheduler", CALLER, body, AT_NS))
        if not isinstance(reply, Reply) or reply.body.count(said) < 1:
            raise RuntimeError(f"a member was not rejected: {reply!r}")

    return timed(call, size.rounds, lambda: None)


def index_time(size: Size) -> list[float]:
    """Index the placed pods of a cluster, all of which are in groups."""
    mirror = _placed(size)
    with steady():
        start = thread_time()
        asyncio.run(_indexed(mirror))
        return [thread_time() - start]


def index_memory(size: Size) -> list[float]:
    """Keep that index."""
    mirror = _placed(size)
    gc.collect()
    tracemalloc.start()
    try:
        watch = asyncio.run(_indexed(mirror))
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        return [kept / len(mirror.placed_sink.objects)] if any(watch.index.placed_groups()) else []
    finally:
        tracemalloc.stop()


async def _indexed(mirror: Mirror) -> GroupWatch:
    watch = GroupWatch(mirror, lambda: cluster.NOW, lambda _: None)
    watch.use([_policy("app", _SIZE)])
    await watch.wait_until_looked()
    return watch


def _placed(size: Size) -> Mirror:
    mirror, decoder = Mirror(lambda: cluster.NOW), decode.PlacedDecoder()
    for text in objects.pods(size.nodes * PODS_OF_A_NODE, size.nodes):
        mirror.placed_sink.put(decoder(msgspec.Raw(text)))
    return mirror


def _waiting(number: int) -> bytes:
    """A pod without a node, one of eight of its group."""
    asked = msgspec.json.decode(webhook.body(b"null", b"[]"))["Pod"]
    metadata = asked["metadata"] | {
        "name": f"pod-{number}",
        "uid": f"uid-{number}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-05-01T00:00:00Z",
        "labels": {"job": f"job-{number // _SIZE}"},
    }
    return msgspec.json.encode(asked | {"metadata": metadata})


BENCHMARKS: Final[Benchmarks] = {
    "groups-filter-rejected": Benchmark("ms", rejected),
    "groups-index-sync": Benchmark("s", index_time),
    "groups-index-memory": Benchmark("bytes/pod", index_memory),
}

if __name__ == "__main__":
    main(BENCHMARKS)
