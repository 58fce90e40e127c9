"""Turns are written as often as they may be, and every replica sees the last ones."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any

import msgspec
import pytest

from fairlead.groups.turns import LABEL, NO_TURNS, PublishedTurn, Turns, turns_body, turns_name
from fairlead.kube.http.client import Client
from fairlead.webhook.holding.turns_feed import AGAIN_S, PAUSE_S, TurnsFeed, TurnsPublisher, TurnsSink, _listed
from support.faults import virtual
from support.faults.api import Key
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import FAULTS, Wire


def turns(number: int) -> Turns:
    return Turns(PublishedTurn(f"{number:032x}", 1, 2, 3, 4, number))


def key(scheduler: str) -> Key:
    return "", "configmaps", NAMESPACE, turns_name(scheduler)


class Scene:
    def __init__(self, cluster: FakeCluster, wire: Wire, client: Client) -> None:
        self.cluster, self.wire = cluster, wire
        self.current: dict[str, Turns] = {}
        self.publisher = TurnsPublisher(client, NAMESPACE, self.current.get)
        self.feed = TurnsFeed(client, NAMESPACE)

    def publish(self, number: int, scheduler: str = "s", then: Callable[[], None] | None = None) -> None:
        self.current[scheduler] = turns(number)
        self.publisher.publish(scheduler, then)

    def attempt(self, scheduler: str = "s") -> int:
        """Return the attempt that a replica sees; 0 if it sees none."""
        turn = self.feed.sink.turns.get(scheduler, NO_TURNS).turn
        return 0 if turn is None else turn.attempt


@asynccontextmanager
async def scene(cluster: FakeCluster, wire: Wire | None = None) -> AsyncIterator[Scene]:
    wire = wire or Wire(cluster.api)
    async with wire.client() as client:
        made = Scene(cluster, wire, client)
        tasks = [asyncio.ensure_future(one()) for one in (made.publisher.run, made.feed.run)]
        try:
            made.feed.want()
            await made.feed.wait_until_listed()
            yield made
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def story(test: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time, in a cluster of its own."""

    @wraps(test)
    def run() -> None:
        virtual.run(test(FakeCluster()))

    del run.__wrapped__  # pytest would ask for the cluster
    return run


@story
async def test_what_is_published_is_seen_and_so_is_what_comes_after_it(cluster: FakeCluster) -> None:
    async with scene(cluster) as one:
        for number in (1, 2):
            one.publish(number)
            await asyncio.sleep(1)
            assert one.attempt() == number
        written = cluster.api.objects[key("s")]
        assert written["metadata"]["labels"] == {LABEL: ""}
        cluster.api.delete(key("s"))
        await asyncio.sleep(1)
        assert one.attempt() == 0
        one.publish(3)
        await asyncio.sleep(1)
        assert one.attempt() == 3, "it is written whole"


@story
async def test_many_changes_are_few_writes_and_the_last_is_written(cluster: FakeCluster) -> None:
    async with scene(cluster) as one:
        for number in range(1, 101):
            one.publish(number)
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert one.attempt() == 100
        assert len(one.wire.writes) <= 1 / PAUSE_S + 3  # the first one creates it in two


@story
async def test_what_waits_for_a_publication_comes_after_it(cluster: FakeCluster) -> None:
    async with scene(cluster) as one:
        seen: list[bool] = []
        one.publish(1, then=lambda: seen.append(key("s") in cluster.api.objects))
        await asyncio.sleep(1)
        assert seen == [True]


@pytest.mark.parametrize("fault", ["disk-full", "lost-before", "forbidden"])
def test_a_write_that_fails_keeps_no_pod_waiting_and_is_tried_again(fault: str) -> None:
    async def run() -> None:
        cluster = FakeCluster()
        async with scene(cluster, Wire(cluster.api, FAULTS[fault], every=True)) as one:
            woken: list[int] = []
            one.publish(1, then=lambda: woken.append(1))
            await asyncio.sleep(PAUSE_S)
            assert (woken, key("s") in cluster.api.objects) == ([1], False)
            assert bool(one.publisher.missing) is (fault == "forbidden")
            await asyncio.sleep(3 * AGAIN_S)
            assert (one.attempt(), woken, one.publisher.missing) == (1, [1], "")

    virtual.run(run())


@story
async def test_of_who_does_not_hold_nothing_is_written(cluster: FakeCluster) -> None:
    async with scene(cluster) as one:
        one.publisher.publish("s")
        await asyncio.sleep(1)
        assert one.wire.writes == []


@story
async def test_each_scheduler_has_turns_of_its_own(cluster: FakeCluster) -> None:
    async with scene(cluster) as one:
        one.publish(1, "s")
        one.publish(2, "other")
        await asyncio.sleep(1)
        assert (one.attempt("s"), one.attempt("other")) == (1, 2)


def listed(scheduler: str, name: str = "", data: Any = None) -> Any:
    body = turns_body(scheduler, turns(1))
    body["metadata"] |= {"namespace": NAMESPACE, "name": name or body["metadata"]["name"]}
    if data is not None:
        body["data"] = data
    return _listed(msgspec.json.encode(body))


LONG = "s" * 250


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (listed("s"), {"s": turns(1)}),
        (listed(LONG), {LONG: turns(1)}),
        (listed("s", data={"turns": "{"}), {"s": NO_TURNS}),
        (listed("s", data={}), {"s": NO_TURNS}),
        (listed("s", name="fairlead-turns-copy"), {}),
        (_listed(b'{"metadata":{"name":"fairlead-turns-s"}}'), {}),
    ],
    ids=["turns", "a long name", "half of them", "none", "a copy", "without its scheduler"],
)
def test_a_config_map_is_read_as_the_turns_of_its_scheduler(item: Any, want: dict[str, Turns]) -> None:
    sink = TurnsSink()
    sink.put(item)
    assert sink.turns == want
    sink.remove((item.metadata.namespace, item.metadata.name))
    assert sink.turns == {}
