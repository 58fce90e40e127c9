"""The turn in which prioritize is computed ahead: after the reply of filter, after the calls that wait, and once."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.metrics import Metrics
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.call import IncomingCall, Reply, VerbReply
from fairlead.webhook.https.dispatch import Dispatcher
from support.policy import SECOND, Clock, node, policy
from support.webhook import Asking, body

NAMES = ["a", "b", "c"]
NODES = [node(name, cpu=cpu) for name, cpu in zip(NAMES, (10.0, 20.0, 90.0), strict=True)]
CPU = {"s": "allocatable['cpu']"}


class World:
    """A scheduler's calls, and the order in which they and rehearsals are computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, ahead: bool = True, **spec: Any) -> None:
        self.asking = Asking([policy(**{"scores": CPU, **spec})], NODES)
        self.metrics, self.clock = Metrics(), Clock()
        nothing: Any = None
        self.calls = Dispatcher(
            Binder(nothing),
            lambda *_: self.asking.caller,
            lambda: self.asking.serving,
            1.0,
            self.metrics,
            clock=self.clock,
            prioritize_ahead=ahead,
        )
        self.computed: list[str] = []
        scored = verbs.scored

        def noting(call: verbs.VerbCall, *arguments: Any) -> VerbReply:
            self.computed.append("scores")
            return scored(call, *arguments)

        monkeypatch.setattr(verbs, "scored", noting)

    def ask(self, path: str, asked: bytes | None = None, name: str = "scheduler") -> Reply:
        call = IncomingCall(name, self.asking.caller, body(NAMES) if asked is None else asked, self.clock())
        reply = self.calls.routes()[path](call)
        assert isinstance(reply, Reply)
        return reply

    @property
    def rehearsals(self) -> dict[str, float]:
        families = text_string_to_metric_families(self.metrics.exposition().decode())
        return {
            one.labels["result"]: one.value
            for family in families
            for one in family.samples
            if one.name == "fairlead_webhook_rehearsals_total"
        }


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _as_expected(world: World) -> None:
    world.ask("/filter")
    assert world.computed == [], "the reply is sent first"
    await turns()
    assert world.computed == ["scores"]
    assert b'"Host":"c"' in world.ask("/prioritize").body
    assert world.computed == ["scores"]


async def _twice(world: World) -> None:
    await _as_expected(world)
    world.ask("/prioritize")


async def _before_it_was_rehearsed(world: World) -> None:
    world.ask("/filter")
    world.ask("/prioritize")
    await turns()
    assert world.computed == ["scores"]


async def _another_body(world: World) -> None:
    world.ask("/filter")
    await turns()
    world.ask("/prioritize", body(NAMES[:2]))


async def _after_another_filter(world: World) -> None:
    world.ask("/filter")
    await turns()
    world.ask("/filter", body(NAMES, pod={"uid": "u-y"}))
    await turns()
    world.ask("/prioritize", body(NAMES, pod={"uid": "u-y"}))


async def _after_a_preemption(world: World) -> None:
    world.ask("/filter")
    await turns()
    world.ask("/preempt", body(victims={"a": ["u"]}))
    world.ask("/prioritize")


async def _of_another_scheduler(world: World) -> None:
    world.ask("/filter")
    await turns()
    world.ask("/prioritize", name="another")
    world.ask("/prioritize")


async def _after_a_node_changed(world: World) -> None:
    world.ask("/filter")
    await turns()
    world.asking.nodes.put(node("a", cpu=400.0))
    assert b'"Host":"a"' in world.ask("/prioritize").body


async def _after_the_policies_changed(world: World) -> None:
    world.ask("/filter")
    world.asking.serve([policy(scores=CPU)])
    await turns()
    assert world.computed == [], "the call would not be answered by them"
    world.ask("/prioritize")


async def _never(world: World) -> None:
    world.ask("/filter")
    await turns()
    asyncio.get_running_loop().now += 1.1  # type: ignore[attr-defined]
    await turns()
    assert world.calls._rehearsals is not None
    assert not world.calls._rehearsals._planned
    world.ask("/prioritize")


async def _too_slow(world: World) -> None:
    world.asking.nodes.put(node("d", cpu=1.0))
    world.ask("/filter")
    world.clock.step = SECOND
    await turns()
    world.clock.step = 0
    assert world.asking.pace.open_circuits(0) == []
    world.ask("/prioritize")


async def _that_fails(world: World) -> None:
    world.ask("/filter")
    world.asking.mirror.request_of = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    await turns()
    with pytest.raises(ZeroDivisionError):
        world.ask("/prioritize")


CASES: dict[str, tuple[Callable[[World], Awaitable[None]], dict[str, float]]] = {
    "as expected": (_as_expected, {"hit": 1}),
    "twice": (_twice, {"hit": 1, "miss": 1}),
    "before it was rehearsed": (_before_it_was_rehearsed, {"miss": 1}),
    "another body": (_another_body, {"miss": 1}),
    "after another filter": (_after_another_filter, {"unused": 1, "hit": 1}),
    "after a preemption": (_after_a_preemption, {"unused": 1, "miss": 1}),
    "of another scheduler": (_of_another_scheduler, {"miss": 1, "hit": 1}),
    "after a node changed": (_after_a_node_changed, {"refreshed": 1}),
    "after the policies changed": (_after_the_policies_changed, {"miss": 1}),
    "never": (_never, {"unused": 1, "miss": 1}),
    "that takes too long": (_too_slow, {"late": 1, "miss": 1}),
    "that fails": (_that_fails, {}),
}


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time passes when it is told to."""

    now = 1000.0

    def time(self) -> float:
        return self.now


def run(scene: Awaitable[None]) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(scene)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES)
def test_a_call(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, counted = CASES[case]
    world = World(monkeypatch)
    run(scene(world))
    assert world.rehearsals == counted


def test_calls_that_wait_are_answered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)

    async def scene() -> None:
        here, there = await _pair(lambda: world.computed.append("another call"))
        world.ask("/filter")
        there.write(b"call")  # is found by the loop when it next looks for events
        await turns(4)
        here.close()
        there.close()

    run(scene())
    assert world.computed == ["another call", "scores"]


async def _pair(called: Callable[[], None]) -> tuple[asyncio.Transport, asyncio.Transport]:
    class Called(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            called()

    loop, (one, other) = asyncio.get_running_loop(), socket.socketpair()
    here, _ = await loop.create_connection(Called, sock=one)
    there, _ = await loop.create_connection(asyncio.Protocol, sock=other)
    return here, there


@pytest.mark.parametrize("scores", [{}, CPU], ids=["no policy has scores", "switched off"])
def test_nothing_is_rehearsed(scores: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ahead=not scores, scores=scores, filters={"f": "true"})

    async def scene() -> None:
        world.ask("/filter")
        await turns()

    run(scene())
    assert world.computed == []
