"""Statuses in which only counters changed wait for their turn, and all of them get one."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.statuses import Leader, most_in_a_second
from fairlead.control.reconcile.result import NOTHING
from fairlead.control.status.counter_turns import EVERY_S, LASTS_S, CounterTurns
from fairlead.kube.errors import ConflictError
from fairlead.kube.resources import POLICIES


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=60))
def test_in_no_second_have_more_than_two_their_turn(asked: list[tuple[int, float]]) -> None:
    turns, now, had = CounterTurns(), 0.0, list[float]()
    for one, pause_s in asked:
        now += pause_s
        if not turns.wait_s(str(one), now):
            had.append(now)
    assert all(third - first >= 1 - 1e-9 for first, third in zip(had, had[2:], strict=False))


def test_they_come_in_the_order_in_which_they_asked() -> None:
    turns = CounterTurns()
    assert turns.wait_s("a", 5.0) == 0
    assert [turns.wait_s(one, 5.0) for one in "bcb"] == pytest.approx([EVERY_S, 2 * EVERY_S, EVERY_S])
    assert turns.wait_s("b", 5.0 + EVERY_S) == 0
    assert turns.wait_s("b", 5.0 + EVERY_S) == pytest.approx(2 * EVERY_S), "again, after the others"
    late = 5.0 + 2 * EVERY_S + LASTS_S
    assert turns.wait_s("c", late) > 0, "its turn is over"
    turns.give_up("c")
    turns.give_up("none")


def test_a_hundred_policies_under_load_are_written_twice_a_second_and_each_in_its_turn() -> None:
    leader = Leader(100)
    asyncio.run(leader.run(260))
    assert most_in_a_second(leader.written) == 2
    by_policy = Counter(one.policy for one in leader.written)
    assert len(by_policy) == 100
    assert min(by_policy.values()) >= 260 // 80
    assert max(by_policy.values()) <= 1 + 260 // 60
    assert max(one.size for one in leader.written) <= 8 << 10


def test_what_is_more_than_counters_is_written_at_once() -> None:
    async def story() -> None:
        leader = Leader(100)
        await leader.run(100)
        policy = leader.index.policies["policy-050"]
        leader.index.policies["policy-050"] = {
            **policy,
            "spec": {"mode": "Disabled"},
            "metadata": {**policy["metadata"], "generation": 2},
        }
        before = len(leader.written)
        await leader.writer.write("fairlead", NOTHING, lambda: None)
        assert [one.policy for one in leader.written[before:]] == ["policy-050"]

    asyncio.run(story())


def test_it_is_written_in_place_of_the_version_that_it_was_decided_from_and_else_decided_again() -> None:
    class Refusing(Leader):
        versions: list[str]

        async def apply(self, _where: object, body: Mapping[str, Any], *_: object, **__: object) -> Mapping[str, Any]:
            self.versions.append(body["metadata"]["resourceVersion"])
            if self.versions[-1] == "1":
                raise ConflictError("patch", POLICIES.named("", "policy-000", "status"), "it has changed")
            return await super().apply(_where, body)

    async def story() -> None:
        leader = Refusing(1)
        leader.versions = []
        await leader.run(1)
        assert (leader.versions, leader.written) == (["1"], [])
        policy = leader.index.policies["policy-000"]
        metadata = {**policy["metadata"], "resourceVersion": "7"}
        leader.index.policies["policy-000"] = {**policy, "metadata": metadata}  # as the watch tells
        await leader.run_until(leader.now_s + 2)
        assert leader.versions == ["1", "7"], "by itself, and not before a poll"
        assert [one.policy for one in leader.written] == ["policy-000"]

    asyncio.run(story())
