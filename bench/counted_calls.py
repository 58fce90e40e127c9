"""Calls of the scheduler as `bench.counts` counts them: from the body of a request to its reply, without TLS.

The nodes and policies are those of cases a and b. Each call asks about all nodes, in another order; all that can be
kept is kept, and idle time was used. Clocks stand still, so that no call and no rehearsal is ever late.
"""

import asyncio
import gc
import random
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from bench import cluster, webhook
from bench.callgrind import Callgrind
from bench.counts import REFERENCE
from bench.stage import CASES
from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, IncomingCall, Reply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import ServingState, build_serving_state
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.https.server import Handle
from fairlead.webhook.https.wall_clock import TimeOfDay

NODES: Final = 1000
WARM: Final = 3
COUNTED: Final = 4
REHEARSED: Final = "prioritize, b, computed ahead"
SUBJECTS: Final[Mapping[str, tuple[str, str, bool]]] = {
    "filter, a": ("a", "/filter", True),
    "filter, b": ("b", "/filter", True),
    "prioritize, b": ("b", "/prioritize", False),
    REHEARSED: ("b", "/prioritize", True),
}
"""Case, path, and whether prioritize is computed ahead, by the name under which it is counted."""
_TURNS: Final = 4
"""Turns of the loop after which a reply has been computed ahead."""
CALLER: Final = Caller(schedulers=frozenset({cluster.SCHEDULER}))
AT_NS: Final = 0
_NAMES: Final = msgspec.json.encode([cluster.name(at) for at in range(NODES)])


def routes_of(state: ServingState, metrics: Metrics, *, ahead: bool = True) -> Mapping[str, Handle]:
    """Return the handlers of a replica without a server, by path; its clocks stand still."""
    nothing: Any = None
    return Dispatcher(
        Binder(nothing),
        lambda *_: CALLER,
        lambda: state,
        1.0,
        metrics,
        TimeOfDay(lambda: cluster.NOW),
        clock=lambda: AT_NS,
        prioritize_ahead=ahead,
    ).routes()


class Calls:
    """A replica without a server, and the scheduler that calls it."""

    def __init__(self, case: str, *, ahead: bool = True) -> None:
        policies = cluster.policies(CASES[case].filters, CASES[case].scores)
        mirror = Mirror(lambda: cluster.NOW)
        nodes = cluster.nodes(NODES)
        self.state = build_serving_state(policies, nodes, mirror, CircuitBreaker(), NodeNameCache(), RuleErrorTally())
        self._metrics = Metrics()
        self._routes = routes_of(self.state, self._metrics, ahead=ahead)

    def call(self, path: str, body: bytes) -> Reply:
        """Call a verb."""
        reply = self._routes[path](IncomingCall("scheduler", CALLER, body, AT_NS))
        if not isinstance(reply, Reply) or reply.status != 200:
            raise RuntimeError(f"{path}: {reply!r}")
        return reply

    def after(self, body: bytes) -> bytes:
        """Call filter, and return the body of prioritize that the scheduler sends then."""
        passed = msgspec.json.decode(self.call("/filter", body).body)["NodeNames"]
        return webhook.body(b"null", msgspec.json.encode(passed))

    def use_idle_time(self) -> None:
        """Compute what the next calls may ask for."""
        self.state.precompute(CallClock(cluster.NOW, lambda: AT_NS, cluster.NEVER))

    def hits(self) -> int:
        """Return how many calls of prioritize were answered with what was computed ahead."""
        found = re.search(r'^fairlead_webhook_rehearsals_total\{result="hit"\} (\d+)', self._exposition(), re.MULTILINE)
        return int(found[1]) if found else 0

    def _exposition(self) -> str:
        return self._metrics.exposition().decode()


async def count(counter: Callgrind, name: str, calls: Calls, path: str) -> None:
    """Count calls of a verb; prioritize comes after filter, and after what is computed ahead."""
    names = [cluster.name(at) for at in range(NODES)]
    lots = random.Random(1)  # noqa: S311  an order
    for number in range(WARM + COUNTED):
        lots.shuffle(names)
        body = webhook.body(b"null", msgspec.json.encode(names))
        if path == "/prioritize":
            body = calls.after(body)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        call = partial(calls.call, path, body)
        counter.count(call) if number >= WARM else call()
        calls.use_idle_time()
    counter.report(name)


def reference() -> object:
    """Do some of what calls do, of which nothing is Fairlead's: builds of one version of Python differ by a seventh."""
    names = msgspec.json.decode(_NAMES, type=list[str])
    slots = {name: at for at, name in enumerate(names)}
    totals = [0.0] * len(names)
    for weight in range(3):
        for name in names:
            totals[slots[name]] += _rated(name, weight)
    best = max(totals)
    return msgspec.json.encode([name for name, total in zip(names, totals, strict=True) if total < best])


def _rated(name: str, weight: int) -> float:
    return weight * 0.5 if name else 1.0


async def main() -> None:
    """Count all."""
    subjects = {name: (Calls(letter, ahead=ahead), path) for name, (letter, path, ahead) in SUBJECTS.items()}
    gc.collect()
    gc.freeze()
    gc.disable()
    counter = Callgrind()
    for _ in range(COUNTED):
        counter.count(reference)
    counter.report(REFERENCE)
    for name, (calls, path) in subjects.items():
        await count(counter, name, calls, path)
    if (hits := subjects[REHEARSED][0].hits()) != WARM + COUNTED:
        raise RuntimeError(f"only {hits} calls of {REHEARSED} were answered with what was computed ahead")


if __name__ == "__main__":
    asyncio.run(main())
