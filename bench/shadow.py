"""Cost of rules in shadow: to the calls beside them, and of the comparisons, whose share of the thread is bounded.

Calls go through the dispatcher in an event loop, from a thread that sleeps until each is due, as a scheduler would.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from itertools import count
from statistics import median, quantiles
from time import perf_counter, perf_counter_ns, sleep
from typing import Final

import msgspec

from bench import cluster, webhook
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady, timed
from bench.report import main
from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.strategies.reads import NodeChange
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import Caller, IncomingCall, Reply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.extender.state import build_serving_state
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.https.wall_clock import TimeOfDay
from fairlead.webhook.shadow.shadow import Shadow

SAMPLE: Final = 10
"""Nodes for each that a call is about."""
CALLS: Final = 20
"""Calls for each round."""
CALLER: Final = Caller(schedulers=frozenset({cluster.SCHEDULER}))
FILTERS: Final = (cluster.FILTERS[0], "free['cpu'] >= 2.0", cluster.FILTERS[2])
"""Three rules, of which one rejects a quarter and one reads what each placement changes."""
ON_ENGINE: Final = (*FILTERS[:2], "node.metadata.labels.exists(k, k.matches(pod.metadata.labels['app'] + '.*never'))")
"""The same with one that takes long for each node and each pod."""


def in_shadow(filters: Sequence[str]) -> CompiledPolicy:
    """A policy in shadow."""
    plain = cluster.plain(filters)
    plain["metadata"] = {"name": "shadow"}
    plain["spec"]["mode"] = "Shadow"
    return compile_policy(cluster.written(plain), CompileOptions())


class Replica:
    """A replica without a server, with an enforced policy, and one in shadow if it has rules."""

    def __init__(self, size: Size, shadow: Sequence[str] = ()) -> None:
        policies = [cluster.policy(webhook.KEEPING), *([in_shadow(shadow)] if shadow else [])]
        self.nodes = cluster.nodes(size.nodes)
        self.state = build_serving_state(
            policy_set(policies), self.nodes, webhook.Known(), CircuitBreaker(), NodeNameCache(), RuleErrorTally()
        )
        now, listeners = TimeOfDay(lambda: cluster.NOW), Listeners()
        self.shadow = Shadow(Mirror(now), listeners, lambda: self.state, now, 1.0, lambda _: True)
        self.metrics = Metrics()
        self.shadow.register(self.metrics)
        self._routes = Dispatcher(
            Binder(None),  # type: ignore[arg-type]
            lambda *_: CALLER,
            lambda: self.state,
            1.0,
            Metrics(),
            now,
            listeners,
        ).routes()

    async def begin(self) -> "Replica":
        """Listen to decisions if a rule is in shadow."""
        await self.shadow.follow(self.state.policies.policies)
        return self

    def call(self, body: bytes) -> Reply:
        """Call filter; what is called once the reply was sent is in it."""
        reply = self._routes["/filter"](IncomingCall("scheduler", CALLER, body, perf_counter_ns()))
        if not isinstance(reply, Reply) or reply.status != 200:
            raise RuntimeError(str(reply))
        return reply

    def place(self, at: int) -> None:
        """Place a pod on a node, which changes what is free there."""
        view = cluster.node(at % len(self.nodes.slots))
        self.nodes.put(view, NodeChange(requested=frozenset({"cpu"})))

    def results(self) -> dict[str, float]:
        """Return how many calls had which result."""
        (calls,) = (one for one in self.metrics.own if one.name == "fairlead_shadow_calls")
        return {labels[1]: value for labels, value in calls.values.items()}  # type: ignore[union-attr]


def bodies(many: int, classes: int = 1) -> Callable[[], bytes]:
    """Requests about so many nodes, of pods of several classes, each another pod.

    Each begins where the last one ended, as those of the scheduler do.
    """
    parts = [range(first * many, (first + 1) * many) for first in range(SAMPLE)]
    names = [msgspec.json.encode([cluster.name(at) for at in part]) for part in parts]
    turns = count()

    def made() -> bytes:
        number = next(turns)
        body = webhook.body(b"null", names[number % SAMPLE]).replace(
            b'"gpu":"a"', b'"gpu":"a","app":"c%d"' % (number % classes), 1
        )
        body = body.replace(b'"app":"web",', b"", 1)
        return body.replace(b"2e1d146a", b"%08x" % number, 1)

    return made


async def _ask(
    replicas: Sequence[Replica], bodies: Callable[[], bytes], calls: int, every_s: float
) -> list[list[float]]:
    """Call the replicas in turns, each so often; return the milliseconds of the calls of each."""
    loop, (here, there) = asyncio.get_running_loop(), socket.socketpair()
    here.settimeout(0.0)
    asked, took = iter(range(calls * len(replicas))), [list[float]() for _ in replicas]

    def answer() -> None:
        here.recv(1)
        number = next(asked)
        replica = replicas[number % len(replicas)]
        body, began = waiting.pop()
        reply = replica.call(body)
        here.send(b"y")
        # Not in the thread that called: that one waits for the interpreter until the comparison has ended.
        took[number % len(replicas)].append(MILLI * (perf_counter() - began))
        if reply.sent is not None:
            reply.sent()
        loop.call_later(every_s / 4, replica.place, number)

    waiting: list[tuple[bytes, float]] = []

    def client() -> None:
        due, step = perf_counter() + every_s, every_s / len(replicas)
        for _ in range(calls * len(replicas)):
            body = bodies()
            if (left := due - perf_counter()) > 0:
                sleep(left)
            waiting.append((body, perf_counter()))
            there.send(b"x")
            there.recv(1)
            due += step

    loop.add_reader(here, answer)
    thread = threading.Thread(target=client)
    with steady():
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
    loop.remove_reader(here)
    here.close()
    there.close()
    return took


async def _warm(replica: Replica, made: Callable[[], bytes], size: Size) -> None:
    """Call until classes that come again are cached for all nodes, and let comparisons take all the time they need."""
    share, replica.shadow.comparisons.share.part = replica.shadow.comparisons.share.part, 1e9
    for _ in range(CALLS * size.rounds):
        reply = replica.call(made())
        if reply.sent is not None:
            reply.sent()
        await asyncio.sleep(0.001)
    replica.shadow.comparisons.share.part = share


def _ratios(size: Size) -> tuple[float, float]:
    async def measured() -> list[list[float]]:
        replicas = [await Replica(size, shadow).begin() for shadow in (FILTERS, ())]
        many = max(1, size.nodes // SAMPLE)
        for replica in replicas:
            await _warm(replica, bodies(many), size)
        return await _ask(replicas, bodies(many), CALLS * size.rounds, 0.01)

    beside, alone = asyncio.run(measured())
    p99 = [quantiles(one, n=100)[98] for one in (beside, alone)]
    return median(beside) / median(alone), p99[0] / p99[1]


def call_p50(size: Size) -> list[float]:
    """Median time of a call every 10 ms beside a policy in shadow, to that of calls without, which come in between."""
    return [_ratios(size)[0]]


def call_p99(size: Size) -> list[float]:
    """The same of the 99th percentile."""
    return [_ratios(size)[1]]


def compare(size: Size) -> list[float]:
    """Comparison of a call about a tenth of the nodes, of a class that is cached, from the decision to its counts."""
    replica, many = Replica(size, FILTERS), max(1, size.nodes // SAMPLE)
    asyncio.run(replica.begin())
    made, soon = bodies(many), list[Callable[[], None]]()
    replica.shadow.comparisons.share.part = 1e9  # without a pause
    replica.shadow.comparisons.soon = soon.append
    replica.shadow.comparisons.later = lambda _, function: soon.append(function)

    def prepare() -> Callable[[], None]:
        sent = replica.call(made()).sent
        if sent is None:
            raise RuntimeError("nothing listens")
        return sent

    def compared(sent: Callable[[], None]) -> None:
        sent()
        while soon:
            soon.pop()()

    for _ in range(2 * SAMPLE):
        compared(prepare())
    samples = timed(compared, size.rounds * CALLS, prepare)
    if not replica.results().get("compared"):
        raise RuntimeError(str(replica.results()))
    return [1000 * sample for sample in samples]


def _under_load(size: Size, filters: Sequence[str], classes: int, every_s: float) -> tuple[dict[str, float], float]:
    """Return the results of calls, and the share of the time that comparisons took."""

    async def measured() -> tuple[dict[str, float], float]:
        replica = await Replica(size, filters).begin()
        made = bodies(max(1, size.nodes // SAMPLE), classes)
        await _warm(replica, made, size)
        before, spent, began = replica.results(), replica.shadow.comparisons.seconds, perf_counter()
        await _ask([replica], made, CALLS * size.rounds, every_s)
        took = perf_counter() - began
        results = {name: value - before.get(name, 0) for name, value in replica.results().items()}
        return results, (replica.shadow.comparisons.seconds - spent) / took

    return asyncio.run(measured())


def coverage(size: Size) -> list[float]:
    """Part of 500 calls a second that are compared, of 20 classes, while pods are placed."""
    results, _ = _under_load(size, FILTERS, 20, 1 / 500)
    return [100 * results.get("compared", 0.0) / (sum(results.values()) or 1)]


def share(size: Size) -> list[float]:
    """Part of the thread's time that comparisons take at 300 new classes a second, with a rule that takes long."""
    return [100 * _under_load(size, ON_ENGINE, 1 << 30, 1 / 300)[1]]


BENCHMARKS: Final[Benchmarks] = {
    "shadow-compare": Benchmark("us", compare),
    "shadow-call-p50-ratio": Benchmark("ratio", call_p50),
    "shadow-call-p99-ratio": Benchmark("ratio", call_p99),
    "shadow-coverage": Benchmark("%", coverage),
    "shadow-share": Benchmark("%", share),
}

if __name__ == "__main__":
    main(BENCHMARKS)
