"""Whose turn it is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairlead.webhook.https.review_turns import BusyError, ReviewTurns


class Asking:
    """Those who want a turn, by names such as `a1`: who is from `a`."""

    def __init__(self, turns: ReviewTurns) -> None:
        self.turns = turns
        self.has: list[str] = []
        self.busy: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ends: dict[str, asyncio.Event] = {}

    async def come(self, *names: str) -> None:
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.ensure_future(self._take(name))
            await settled()

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await settled()

    async def _take(self, name: str) -> None:
        try:
            async with self.turns.of(name[0]):
                self.has.append(name)
                try:
                    await self.ends[name].wait()
                finally:
                    self.has.remove(name)
        except BusyError:
            self.busy.append(name)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def told(turns: ReviewTurns, story: Callable[[Asking], Awaitable[None]]) -> None:
    async def whole() -> None:
        asking = Asking(turns)
        await story(asking)
        for name in asking.tasks:
            asking.ends[name].set()
        await asyncio.gather(*asking.tasks.values(), return_exceptions=True)
        assert not turns._taken
        assert not turns._queue

    asyncio.run(whole())


def test_one_address_never_has_all_turns() -> None:
    async def story(one: Asking) -> None:
        await one.come("a1", "a2", "a3", "b1", "b2", "b3")
        assert one.has == ["a1", "a2", "b1"]
        await one.end("a1")
        assert one.has == ["a2", "b1", "a3"]
        await one.end("a2")
        assert one.has == ["b1", "a3", "b2"]

    told(ReviewTurns(3, 2, 10), story)


def test_who_has_none_comes_before_those_who_have_waited_longer() -> None:
    async def story(one: Asking) -> None:
        await one.come("a1", "a2", "a3", "a4", "b1")
        assert one.has == ["a1", "a2"]
        await one.end("a1")
        assert one.has == ["a2", "b1"]

    told(ReviewTurns(2, 2, 10), story)


def test_where_nobody_can_wait_who_asks_most_is_sent_away() -> None:
    async def story(one: Asking) -> None:
        await one.come("a1", "a2", "a3", "a4", "a5")
        assert (one.has, one.busy) == (["a1"], ["a5"])
        await one.come("b1")
        assert one.busy == ["a5", "a4"]
        await one.come("b2", "a6")
        assert one.busy == ["a5", "a4", "a3", "a6"]
        await one.end("a1", "a2")
        assert one.has == ["b1"]

    told(ReviewTurns(1, 1, 3), story)


@pytest.mark.parametrize("ends_first", [False, True])
def test_who_goes_away_gives_his_turn_back(ends_first: bool) -> None:
    async def story(one: Asking) -> None:
        await one.come("a1", "a2", "a3")
        if ends_first:  # the turn has come, and nobody knows it yet
            one.ends["a1"].set()
            while len(one.turns._queue) == 2:
                await asyncio.sleep(0)
        one.tasks["a2"].cancel()
        await one.end("a1")
        assert one.has == ["a3"]

    told(ReviewTurns(1, 1, 3), story)
