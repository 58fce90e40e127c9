"""Statuses of policies in shadow under load: how many the leader writes in a second, how long they are, what they cost.

A hundred policies of one scheduler, and ten replicas whose counts grow with every call. Clocks are moved on by hand, so
that a quarter of an hour takes seconds; what is measured is the writer itself, with an API server that takes
everything.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from time import thread_time
from typing import Any, Final, NamedTuple

import msgspec

from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.report import main
from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.result import NOTHING
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.writer import StatusWriter
from fairlead.replica_state import PolicyState, ReplicaState, RuleState, ShadowCounts, ShadowRuleCounts
from fairlead.strategies import installed
from fairlead.strategies.registry import policy_with

POLICIES: Final = 100
REPLICAS: Final = 10
LASTS_S: Final = 900
POLL_S: Final = 10
RULES: Final = ("gpu-class", "spread-racks", "load")
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SCHEDULER: Final = "fairlead"


class Written(NamedTuple):
    """A status that was written."""

    at_s: float
    policy: str
    size: int


class Leader:
    """A leader that polls, and writes the statuses of its policies to an API server that takes everything."""

    def __init__(self, policies: int) -> None:
        self.now_s = 0.0
        self.states: Mapping[str, ReplicaState] = {}
        self.written: list[Written] = []
        self._names = [f"policy-{at:03}" for at in range(policies)]
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._is_woken = True
        nothing: Any = self
        self.client = self  # of events
        self.index = PolicyIndex(policy_with(installed()))
        for name in self._names:
            metadata = {"name": name, "uid": f"u-{name}", "generation": 1, "resourceVersion": "1"}
            self.index.policies[name] = {"metadata": metadata, "spec": {"mode": "Shadow"}}
        self.writer = StatusWriter(
            policy_index=self.index,
            replicas=nothing,
            events=nothing,
            missing_permissions=MissingPermissions(),
            is_leader=lambda: True,
            warnings=lambda *_: [],
            crd_fields=CrdFields({}),
            unreviewed=frozenset(),  # type: ignore[arg-type]
            admission_port=0,
            not_installed=lambda: None,
            now=lambda: _EPOCH + timedelta(seconds=self.now_s),
            time=lambda: self.now_s,
            later=self._call_later,
        )

    async def run(self, lasts_s: float) -> None:
        """Poll every ten seconds, and write whenever something is new or a status has its turn."""
        for at in range(0, round(lasts_s), POLL_S):
            await self.run_until(at)
            self.states = {f"replica-{one}": self._state(one, calls=at * 50) for one in range(REPLICAS)}
            await self.writer.write(_SCHEDULER, NOTHING, self._wake)

    async def apply(self, _where: object, body: Mapping[str, Any], *_: object, **__: object) -> Mapping[str, Any]:
        """Take a status, as the API server does."""
        name = body["metadata"]["name"]
        self.written.append(Written(self.now_s, name, len(msgspec.json.encode(body["status"]))))
        version = str(int(self.index.policies[name]["metadata"]["resourceVersion"]) + 1)
        return {"metadata": {"resourceVersion": version}, "status": body["status"]}

    async def record(self, *_: object) -> None:
        """Take an event."""

    async def run_until(self, at_s: float) -> None:
        """Let time pass, and write whenever a status has its turn."""
        while self._due and self._due[0][0] <= at_s:
            self.now_s, _, call = heapq.heappop(self._due)
            call()
            if self._is_woken:
                self._is_woken = False
                await self.writer.write(_SCHEDULER, NOTHING, self._wake)
        self.now_s = at_s

    def _call_later(self, wait_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + wait_s, next(self._number), call))

    def _wake(self) -> None:
        self._is_woken = True

    def _state(self, replica: int, calls: int) -> ReplicaState:
        rules = tuple(
            ShadowRuleCounts(kind="Filter", name=one, pods=calls // 3, unschedulable=calls // 9) for one in RULES
        )
        shadow = ShadowCounts(
            generation="1",
            calls=calls,
            skipped=calls // 50,
            unknown=calls // 40,
            pods=calls // 2,
            restricted=calls // 3,
            unschedulable=calls // 8,
            reordered=calls // 4,
            rules=rules,
        )
        states = tuple(RuleState(kind="Filter", name=one, mode="Shadow", uses=("free",)) for one in RULES)
        policies = {
            name: PolicyState(
                uid=f"u-{name}",
                generation="1",
                serving="1",
                reason="Compiled",
                scheduler=_SCHEDULER,
                mode="Shadow",
                rules=states,
                shadow=shadow,
            )
            for name in self._names
        }
        return ReplicaState(process=f"{replica:032x}", policies=policies)


class _Found(NamedTuple):
    written: Sequence[Written]
    seconds: float


def most_in_a_second(written: Sequence[Written]) -> int:
    """Return how many were written in the second with most of them, without the first ones, which say more."""
    counters, window, most = set[str](), deque[float](), 0
    for one in written:
        if one.policy not in counters:
            counters.add(one.policy)
            continue
        window.append(one.at_s)
        while window[0] <= one.at_s - 1:
            window.popleft()
        most = max(most, len(window))
    return most


@cache
def _measured(size: Size) -> _Found:
    policies, lasts_s = max(2, POLICIES * size.nodes // Size().nodes), LASTS_S * size.nodes // Size().nodes
    leader, began = Leader(policies), thread_time()
    asyncio.run(leader.run(max(3 * 60, lasts_s)))
    return _Found(leader.written, thread_time() - began)


BENCHMARKS: Final[Benchmarks] = {
    "status-writes": Benchmark("/s", lambda size: [most_in_a_second(_measured(size).written)]),
    "status-size": Benchmark("KiB", lambda size: [max(one.size for one in _measured(size).written) / 1024]),
    "status-processor": Benchmark(
        "ms/s", lambda size: [MILLI * _measured(size).seconds / max(3 * 60, LASTS_S * size.nodes // Size().nodes)]
    ),
}

if __name__ == "__main__":
    main(BENCHMARKS)
