import asyncio
from itertools import pairwise

import pytest

from fairlead.cooperative import Steps
from fairlead.webhook.data_sources.loop_turns import PART, LoopTurns
from scripted.loop import in_loop


@in_loop
async def test_all_else_has_a_turn_between_two_stretches_of_many_computations() -> None:
    turns, seen = LoopTurns(), list[str]()

    def work(name: str) -> Steps[str]:
        for _ in range(5):
            seen.append(name)
            yield
        return name

    async def other() -> None:
        while True:
            seen.append(".")
            await asyncio.sleep(0)

    calls = asyncio.ensure_future(other())
    assert await asyncio.gather(*(turns.run(work(name)) for name in "abc")) == ["a", "b", "c"]
    calls.cancel()
    assert sorted(filter(str.isalpha, seen)) == [*"aaaaabbbbbccccc"]
    assert not [pair for pair in pairwise(seen) if "." not in pair]


@in_loop
async def test_for_long_they_leave_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], [0.0]
    sleep = asyncio.sleep

    async def sleeping(delay: float) -> None:
        now[0] += delay
        slept[0] += delay
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", sleeping)

    def work() -> Steps[None]:
        for _ in range(1000):
            now[0] += 0.01
            yield

    await LoopTurns(lambda: now[0]).run(work())
    assert slept[0] == pytest.approx(10 * (1 - PART) / PART, rel=0.05)


@in_loop
async def test_a_fault_ends_its_own_computation_only() -> None:
    turns = LoopTurns()

    def failing() -> Steps[None]:
        yield
        raise ValueError

    def well() -> Steps[int]:
        yield
        return 1

    found = await asyncio.gather(turns.run(failing()), turns.run(well()), return_exceptions=True)
    assert isinstance(found[0], ValueError)
    assert found[1] == 1
