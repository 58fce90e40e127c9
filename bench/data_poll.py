"""Cost of measured values: ten entries of one policy, polled every 15 s, while 50 classes of pods come to 5000 nodes.

The clock goes on by the processor time that the work takes, divided by the share of a core that the process has, and
jumps to the next thing that is due when there is nothing to do. So a quarter of a core is the same on every machine,
and calls wait for polls and idle work as on the event loop of a server. Only HTTP and TLS are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from time import thread_time_ns
from typing import Any, Final

import msgspec

from bench import cluster, objects
from bench.measure import Benchmark, Benchmarks, Size, steady
from bench.report import main
from bench.webhook import CALLER
from fairlead.api.parse import parse_policy
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.watched_node import WatchedNode
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.polls import Poll, Reading, poll_of
from fairlead.process.replica import IdleTime
from fairlead.strategies.registry import installed, policy_with
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.prometheus_reply import node_samples
from fairlead.webhook.data_sources.samples import reading
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import ServingState, build_serving_state

INTERVAL_S: Final = 15
INTERVALS: Final = 2
"""Measured after one that is not."""
CLASSES: Final = 50
RATE: Final = 20
"""Pods a second, each with a call of filter and one of prioritize."""
SAMPLE_PART: Final = 10
"""One in so many nodes is in a call."""
QUARTER: Final = 0.25
_DEADLINE_NS: Final = 800_000_000  # of a scheduler whose timeout is a second
_IDLE_EVERY_NS: Final = 50_000_000  # as in fairlead.process.replica
_IDLE_NS: Final = 2_000_000
_SECOND: Final = 1_000_000_000
_MILLI: Final = 1e-6

_SERIES: Final = (
    '{{"metric":{{"endpoint":"http-metrics","instance":"10.0.{high}.{low}:9100","job":"node-exporter",'
    '"namespace":"monitoring","node":"{node}","pod":"node-exporter-{at:05}"}},"value":[{time:.3f},"{value}"]}}'
)
"""One series as a real server wrote it."""
_ENTRIES: Final = {
    "cpuMean": (0.2, 0.8),
    "cpuDeviation": (0.01, 0.15),
    "cpuForecast": (0.2, 0.8),
    "memoryMean": (0.2, 0.8),
    "memoryDeviation": (0.01, 0.1),
    "memoryForecast": (0.2, 0.8),
    "disk": (0.0, 1.0),
    "network": (0.0, 1.0),
    "temperature": (20.0, 90.0),
    "watts": (100.0, 400.0),
}
"""What is polled, with the range of the values. The last four are read by no rule."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a number of intervals."""

    busy: float
    """Share of a core."""
    longest_ms: float
    """Longest time between a call and its reply."""
    polls: float
    """Share of a core that polls took, and so the next two."""
    idle: float
    calls: float


@dataclass(slots=True)
class _Clock:
    """A clock of a process that has this share of a core."""

    share: float
    _skipped: int = 0
    _begun: int = field(default_factory=thread_time_ns)

    def __call__(self) -> int:
        """Nanoseconds."""
        return self._skipped + int((thread_time_ns() - self._begun) / self.share)

    def wait_until(self, moment: int) -> None:
        """Do nothing until then."""
        self._skipped += max(0, moment - self())


class _Process:
    """A serving process: what it holds, and what it does."""

    def __init__(self, nodes: int, clock: _Clock) -> None:
        self.clock = clock
        self.mirror = Mirror(self.time)
        for text in objects.nodes(nodes):
            self.mirror.node_sink.put(WatchedNode(text))
        self.breaker = CircuitBreaker()
        strategies = {one.name: one for one in installed()}
        policy = parse_policy(_policy(), policy_with(strategies.values()))
        compiled = compile_policy(policy, CompileOptions(strategies))
        self.state: ServingState = build_serving_state(
            policy_set([compiled]), self.mirror.nodes, self.mirror, self.breaker, NodeNameCache(), RuleErrorTally()
        )
        self.polls: list[Poll] = [poll for poll in map(poll_of, policy.spec.data or ()) if poll is not None]
        self._idle = IdleTime(None)

    def time(self) -> int:
        """The time of day."""
        return cluster.NOW + self.clock()

    def poll(self, bodies: list[bytes]) -> Iterator[None]:
        """Take the replies of all polls, which have come at once; pauses are those of the product."""
        sent, node_of = self.time(), NodeNames(self.mirror.nodes)
        works = {poll: node_samples(body, "node", node_of) for poll, body in zip(self.polls, bodies, strict=True)}
        readings = dict[Poll, Reading]()
        while works:
            for poll, steps in [*works.items()]:
                try:
                    next(steps)
                except StopIteration as ended:
                    readings[poll] = reading(ended.value, None, sent, node_of)
                    del works[poll]
            yield
        yield from self.mirror.nodes.publication(readings, self.time())

    def call(self, body: bytes, *, scores: bool) -> None:
        """Answer a call of filter, or of prioritize."""
        now = self.clock()
        when = CallClock(cluster.NOW + now, self.clock, now + _DEADLINE_NS)
        if scores:
            verbs.prioritize(body, self.state, CALLER, when)
        else:
            verbs.filter(body, self.state, CALLER, "Fail", when)

    def idle(self) -> None:
        """Do what `fairlead.process.replica` does when nobody calls."""
        now = self.clock()
        self._idle.use(self.state, CallClock(cluster.NOW + now, self.clock, now + _IDLE_NS))


@cache
def measured(size: Size, share: float) -> Cost:
    """Live through some intervals."""
    clock = _Clock(share)
    process, bodies = _Process(size.nodes, clock), _requests(size.nodes)
    replies = [_replies(size.nodes, turn) for turn in range(1 + INTERVALS)]
    longest, took = 0, {"polls": 0, "idle": 0, "calls": 0}
    with steady():
        begun = clock()
        polls = iter([(begun + turn * INTERVAL_S * _SECOND, one) for turn, one in enumerate(replies)])
        next_poll, poll = next(polls)
        pending: Iterator[None] | None = None
        asked, scores, call_due, idle_due = 0, False, begun, begun
        ends = begun + (1 + INTERVALS) * INTERVAL_S * _SECOND
        while (now := clock()) < ends:
            is_counted = now >= begun + INTERVAL_S * _SECOND
            if pending is None and now >= next_poll:
                pending = process.poll(poll)
                next_poll, poll = next(polls, (ends, []))
            work_begun, kind = thread_time_ns(), ""
            if pending is not None:
                kind = "polls"
                pending = pending if next(pending, process) is None else None
                took[kind] += (thread_time_ns() - work_begun) * is_counted
            if (now := clock()) >= call_due:
                work_begun, kind = thread_time_ns(), "calls"
                process.call(bodies(asked), scores=scores)
                took[kind] += (thread_time_ns() - work_begun) * is_counted
                now = clock()
                if is_counted:
                    longest = max(longest, now - call_due)
                scores = not scores
                if scores:
                    call_due = now
                else:
                    asked += 1
                    call_due = max(now, begun + asked * _SECOND // RATE)
            if now >= idle_due:
                work_begun, kind = thread_time_ns(), "idle"
                process.idle()
                took[kind] += (thread_time_ns() - work_begun) * is_counted
                idle_due = clock() + _IDLE_EVERY_NS
            if not kind:
                clock.wait_until(min(call_due, idle_due, next_poll))
    parts = {kind: taken / (INTERVALS * INTERVAL_S * _SECOND) for kind, taken in took.items()}
    return Cost(sum(parts.values()), longest * _MILLI, **parts)


def _policy() -> dict[str, Any]:
    resources = [
        {"name": name, "mean": f"{name}Mean", "deviation": f"{name}Deviation", "forecast": f"{name}Forecast"}
        for name in ("cpu", "memory")
    ]
    data = [{"name": name, "prometheus": {"query": name, "nodeLabel": "node"}} for name in _ENTRIES]
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "bench"},
        "spec": {
            "schedulerName": cluster.SCHEDULER,
            "data": data,
            "filters": [{"name": "overload", "safe": {"resources": resources}}],
            "scores": [{"name": "risk", "safe": {"resources": resources}}],
        },
    }


def _replies(nodes: int, turn: int) -> list[bytes]:
    """The replies of one moment, all values other than before."""
    chance, time = Random(turn), cluster.NOW / _SECOND + turn * INTERVAL_S  # noqa: S311  values
    made = list[bytes]()
    for low, high in _ENTRIES.values():
        series = ",".join(
            _SERIES.format(
                high=at // 250,
                low=at % 250,
                node=cluster.name(at),
                at=at,
                time=time,
                value=chance.uniform(low, high),
            )
            for at in range(nodes)
        )
        made.append(f'{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}'.encode())
    return made


def _requests(nodes: int) -> Any:
    """Return a function for the body of a call: the classes take turns, each sample begins anywhere."""
    many = max(4, nodes // SAMPLE_PART)
    names = [cluster.name(at) for at in range(nodes)]
    pods = [
        msgspec.json.encode(
            {
                "metadata": {"name": f"pod-{at}", "namespace": "default", "uid": f"uid-{at}", "labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "main",
                            "resources": {"requests": {"cpu": f"{100 + 20 * at}m", "memory": f"{128 + 64 * at}Mi"}},
                        }
                    ],
                    "schedulerName": cluster.SCHEDULER,
                },
            }
        )
        for at in range(CLASSES)
    ]

    def body(asked: int) -> bytes:
        first = Random(asked).randrange(nodes)  # noqa: S311  a sample
        chosen = [*names[first : first + many], *names[: max(0, first + many - nodes)]]
        return b'{"Pod":' + pods[asked % CLASSES] + b',"Nodes":null,"NodeNames":' + msgspec.json.encode(chosen) + b"}"

    return body


BENCHMARKS: Final[Benchmarks] = {
    "data-poll": Benchmark("%", lambda size: [100 * measured(size, 1.0).busy]),
    "data-poll-longest-call": Benchmark("ms", lambda size: [measured(size, 1.0).longest_ms]),
    "data-poll-longest-call-quarter-core": Benchmark("ms", lambda size: [measured(size, QUARTER).longest_ms]),
}

if __name__ == "__main__":
    main(BENCHMARKS)
