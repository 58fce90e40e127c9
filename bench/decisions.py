"""Decisions: what it takes to record one after its reply, what all rings weigh, how long a call waits for readers."""

import asyncio
import gc
import tracemalloc
from functools import cache
from time import perf_counter, thread_time
from typing import Final

import aiohttp
import msgspec

from bench import cluster
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady
from bench.report import main
from bench.webhook import CALLER, WHEN, Known, body
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.time_units import SECOND_NS
from fairlead.webhook.decisions.decision_log import DecisionLog
from fairlead.webhook.decisions.decision_record import DecidingPolicy, DecisionRecord, Effect, RuleRejections
from fairlead.webhook.decisions.kept_decisions import EFFECTS, PLACED, WAITING, KeptDecisions
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.decisions import Decision
from fairlead.webhook.extender.state import build_serving_state
from fairlead.webhook.readers.decisions_server import PATH, DecisionsServer

_ASKED: Final = 500
_RECORDED: Final = 1_000
_POLICIES: Final = 16
_CALL_S: Final = 0.001
_CALLS: Final = 300
_MICRO: Final = 1e6
_MIB: Final = 1 << 20


def _record(number: int) -> DecisionRecord:
    rules = tuple(
        RuleRejections(f"policy-{at}", "has-the-class", "the node has another class of GPU", 1250, ("node-a", "node-b"))
        for at in range(3)
    )
    return DecisionRecord(
        number * SECOND_NS,
        "fairlead",
        f"team-{number % 100}",
        f"app-{number // 30}-7d9f8b6c5d-{number:05x}",
        f"{number:08x}-0000-4000-8000-000000000000",
        "refused",
        candidates=5000,
        passed=number % 2,
        milliseconds=0.812,
        policies=tuple(DecidingPolicy(f"policy-{at}", "7") for at in range(3)),
        rules=rules,
    )


def _full() -> KeptDecisions:
    """Return kept decisions with all rings full."""
    kept = KeptDecisions()
    for number in range(2 * (WAITING + PLACED)):
        record = _record(number)
        kept.add(record)
        if number >= 2 * (WAITING + PLACED) - EFFECTS:
            for at in range(_POLICIES):
                kept.add_effect(record.uid, Effect(f"policy-{at}", ("restricted",), ("has-the-class",)))
    return kept


def recorded(size: Size) -> list[float]:
    """Record a call that rejected a quarter of its nodes."""
    policies, asked = cluster.policies(cluster.FILTERS), min(_ASKED, size.nodes)
    state = build_serving_state(
        policies, cluster.nodes(asked), Known(), CircuitBreaker(), NodeNameCache(), RuleErrorTally()
    )
    names = msgspec.json.encode([cluster.name(at) for at in range(asked)])
    reply = verbs.filter(body(b"null", names), state, CALLER, "Fail", WHEN)
    now = iter(range(0, 1 << 60, SECOND_NS))
    log = DecisionLog(Mirror(lambda: 0), lambda: next(now), "bench")
    decision = Decision(reply.outcome, CALLER, policies, 2, 1, reply.considered)
    samples = []
    with steady():
        for _ in range(size.rounds):
            start = thread_time()
            for _ in range(_RECORDED):
                log.record(decision)
            samples.append((thread_time() - start) * _MICRO / _RECORDED)
    if not log.kept.records:
        raise RuntimeError("nothing was recorded")
    return samples


def weight(_: Size) -> list[float]:
    """Weigh all rings, full."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = _full()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    if len(kept.records) < WAITING + PLACED:
        raise RuntimeError("the rings are not full")
    return [(after - before) / _MIB]


@cache
def _longest(_: Size) -> list[float]:
    return asyncio.run(_read_by_two())


async def _read_by_two() -> list[float]:
    """Return by how many milliseconds a call was late, at most, while two read all."""
    log = DecisionLog(Mirror(lambda: 0), lambda: 0, "bench")
    for record in reversed(_full().records):
        log.kept.add(record)
    server = DecisionsServer(log.parts)
    port = await server.start("127.0.0.1", 0)

    async def read() -> None:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{PATH}") as reply:
            await reply.read()

    late = []
    try:
        readers = [asyncio.ensure_future(read()) for _ in range(2)]
        for _ in range(_CALLS):
            before = perf_counter()
            await asyncio.sleep(_CALL_S)
            late.append((perf_counter() - before - _CALL_S) * MILLI)
        await asyncio.gather(*readers)
    finally:
        await server.stop()
    return [max(late)]


BENCHMARKS: Final[Benchmarks] = {
    "decision-record": Benchmark("us", recorded),
    "decision-memory": Benchmark("MiB", weight),
    "decision-longest-wait": Benchmark("ms", _longest),
}

if __name__ == "__main__":
    main(BENCHMARKS)
