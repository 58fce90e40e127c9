"""What lint says of a policy is looked for once, in pieces, and nobody waits for what it says of another."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.control.status.lint_cache import LintCache, Warnings
from fairlead.cooperative import Share
from fairlead.policy.compile.compiler import CompileOptions
from support.policy import MODEL, obj
from support.policy.building import INSTALLED

SAID = ["AlwaysPasses", "PodIdentity"]
RULES = CompileOptions(INSTALLED)


def policy(generation: int = 1, uid: str = "u") -> dict[str, Any]:
    return obj("p", generation=generation, uid=uid, filters={"f": "1 > 0", "g": "pod.metadata.name != 'x'"})


def nobody() -> None:
    """Is told that it is found."""


class Ticks:
    """A clock that goes on each time it is asked."""

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def linted(tick: float, rules: CompileOptions = RULES) -> LintCache:
    return LintCache(MODEL, lambda: rules, Share(Ticks(tick)))


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long others had, each time."""
    found, sleep = list[float](), asyncio.sleep

    async def note(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr("fairlead.control.status.lint_cache.asyncio.sleep", note)
    return found


async def until_it_is_told(of: LintCache, what: dict[str, Any]) -> Warnings:
    while (found := of(what, nobody)) is None:
        await asyncio.sleep(0)
    return found


def test_most_are_looked_at_while_it_is_asked_and_once() -> None:
    one = linted(1e-9)
    found = one(policy(), nobody)
    assert found is not None
    assert [reason for reason, _, _ in found] == SAID
    assert one(policy(), nobody) is found
    assert one(policy(2), nobody) is not found


def test_a_policy_that_accepts_a_warning_is_looked_at_again() -> None:
    one, accepting = linted(1e-9), policy()
    assert [accepted for _, _, accepted in one(policy(), nobody) or ()] == ["", ""]
    accepting["metadata"]["annotations"] = {"fairlead.dev/accept": "PodIdentity: it is meant"}
    assert [accepted for _, _, accepted in one(accepting, nobody) or ()] == ["", "it is meant"]


def test_what_takes_longer_gives_the_time_away_and_nobody_waits_for_it(slept: list[float]) -> None:
    async def story() -> None:
        one, told = linted(0.01), asyncio.Event()
        assert one(policy(), nobody) is None
        assert one(policy(uid="another"), told.set) is None
        await asyncio.wait_for(told.wait(), 60)
        assert one(policy(uid="another"), nobody) is not None
        found = [await until_it_is_told(one, policy(uid=uid)) for uid in ("u", "another")]
        assert [[reason for reason, _, _ in each] for each in found] == [SAID, SAID]
        assert sum(slept) > 0.1
        assert (len(one._runs), len(asyncio.all_tasks())) == (2, 1)

    asyncio.run(story())


@pytest.mark.usefixtures("slept")
def test_of_a_policy_that_changes_only_what_it_is_now_is_looked_at() -> None:
    async def story() -> None:
        one = linted(0.01)
        for generation in range(1, 50):
            assert one(policy(generation), nobody) is None
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= 3  # this one, and at most two that end or begin
        assert [reason for reason, _, _ in await until_it_is_told(one, policy(49))] == SAID

    asyncio.run(story())


@pytest.mark.usefixtures("slept")
def test_what_was_not_looked_at_to_the_end_is_looked_at_by_who_leads_next() -> None:
    one = linted(0.01)

    async def first() -> None:
        assert one(policy(), nobody) is None
        await asyncio.sleep(0)

    async def second() -> None:
        assert [reason for reason, _, _ in await until_it_is_told(one, policy())] == SAID

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.usefixtures("slept")
def test_of_what_takes_too_long_or_fails_nothing_is_said_and_it_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = list[object]()

    async def story() -> None:
        one = linted(1e-9, CompileOptions(INSTALLED, clock=Ticks(1.0)))
        assert await until_it_is_told(one, policy()) == []

        def fails(*given: object) -> Iterator[None]:
            looked.append(given)
            raise MemoryError
            yield

        monkeypatch.setattr("fairlead.control.status.lint_cache.inspect_steps", fails)
        assert one(policy(), nobody) == []
        assert looked == []
        assert [one(policy(2), nobody), one(policy(2), nobody)] == [[], []]
        assert len(looked) == 1

    asyncio.run(story())
