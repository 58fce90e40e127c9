import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.webhook.data_sources.query_places import (
    ANSWERED_AT_ONCE,
    AT_ONCE,
    UNANSWERED_AT_ONCE,
    QueryPlaces,
)
from scripted.loop import in_loop


class Asking:
    """Those who ask for places, and give them back when they are told to."""

    def __init__(self) -> None:
        self.places = QueryPlaces()
        self.served = list[str]()
        self.held = dict[str, asyncio.Event]()
        self.tasks = dict[str, asyncio.Task[None]]()

    def ask(self, name: str, owner: str, *, is_answered: bool = False) -> None:
        async def hold() -> None:
            async with self.places.place(owner, is_answered=is_answered):
                self.served.append(name)
                done = self.held[name] = asyncio.Event()
                try:
                    await done.wait()
                finally:
                    del self.held[name]

        self.tasks[name] = asyncio.ensure_future(hold())

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def give_back(self, name: str) -> None:
        self.held[name].set()
        await self.settle()


@in_loop
async def test_owners_get_places_in_turn_whatever_they_ask_for() -> None:
    asking = Asking()
    for number in range(UNANSWERED_AT_ONCE + 4):
        asking.ask(f"much {number}", "much")
    await asking.settle()
    assert len(asking.served) == UNANSWERED_AT_ONCE
    for name in ("one", "other"):
        asking.ask(name, name)
    await asking.settle()
    for number in range(4):
        await asking.give_back(f"much {number}")
    more = [f"much {UNANSWERED_AT_ONCE + number}" for number in range(2)]
    assert asking.served[UNANSWERED_AT_ONCE:] == [more[0], "one", "other", more[1]]


@pytest.mark.parametrize(
    ("is_answered", "most"), [(True, ANSWERED_AT_ONCE), (False, UNANSWERED_AT_ONCE)], ids=["answered", "not answered"]
)
@in_loop
async def test_each_kind_leaves_places_to_the_other(is_answered: bool, most: int) -> None:
    asking = Asking()
    for number in range(2 * AT_ONCE):
        asking.ask(f"first {number}", "a", is_answered=is_answered)
    await asking.settle()
    assert len(asking.held) == most
    for number in range(2 * AT_ONCE):
        asking.ask(f"second {number}", "a", is_answered=not is_answered)
    await asking.settle()
    assert len(asking.held) == AT_ONCE


@given(st.lists(st.tuples(st.sampled_from(["ask", "end", "cancel"]), st.integers(0, 30), st.booleans()), max_size=60))
def test_no_place_is_lost_and_none_waits_for_a_free_one(deeds: Sequence[tuple[str, int, bool]]) -> None:
    async def play() -> None:
        asking = Asking()
        for at, (deed, which, is_answered) in enumerate(deeds):
            names = [name for name, task in asking.tasks.items() if not task.done()]
            if deed == "ask" or not names:
                for more in range(4):
                    asking.ask(f"{at}-{more}", str(which % 3), is_answered=is_answered)
            elif deed == "cancel":
                asking.tasks[names[which % len(names)]].cancel()
            elif asking.held:
                [*asking.held.values()][which % len(asking.held)].set()
            if which % 2:
                await asking.settle()
        await asking.settle()
        while not all(task.done() for task in asking.tasks.values()):
            assert 0 < len(asking.held) <= AT_ONCE
            for done in asking.held.values():
                done.set()
            await asking.settle()
        async with AsyncExitStack() as stack:  # all are free again
            for is_answered, most in ((True, AT_ONCE - UNANSWERED_AT_ONCE), (False, UNANSWERED_AT_ONCE)):
                for _ in range(most):
                    await stack.enter_async_context(asking.places.place("x", is_answered=is_answered))

    asyncio.run(play())
