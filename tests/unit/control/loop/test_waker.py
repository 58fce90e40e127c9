"""Who is woken, and how often."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from fairlead.control.loop.waker import PAUSE_S, Waker, WakeState
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.metrics import Metrics
from fairlead.replica_state import ReplicaState

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVED = WakeState(served="a")


def says(policy_set: str = "a", *, freed: bool = False, process: str = "") -> ReplicaState:
    return ReplicaState(policy_set=policy_set, schedulable_again=freed, process=process)


@pytest.mark.parametrize(
    ("before", "answers", "served", "owed"),
    [
        (SERVED, [says(), says()], "a", False),
        (SERVED, [says(), says(freed=True)], "a", True),
        (SERVED, [says(freed=True), "no answer"], "a", True),
        (SERVED, [says("b"), says("b")], "b", True),
        (SERVED, [says("b"), says("a")], "a", False),
        (SERVED, [says("b"), "no answer"], "a", False),
        (SERVED, ["no answer"], "a", False),
        (SERVED, [], "a", False),
        (SERVED, [says("")], "a", False),
        (WakeState(served="a", pending=True), [says()], "a", True),
    ],
)
def test_what_is_owed(before: WakeState, answers: list[ReplicaState | str], served: str, owed: bool) -> None:
    after = before.observe(answers)
    assert (after.served, after.pending) == (served, owed)


def test_with_a_replica_goes_what_it_knew_of_pods_that_it_refused() -> None:
    touched = list[float]()

    class Client:
        async def merge(self, *_: Any) -> None:
            touched.append(now)

    now = 0.0
    waker = Waker(
        cast("Any", Client()),
        "n",
        lambda: datetime(2026, 1, 1, tzinfo=UTC),
        lambda: now,
        MissingPermissions(),
        Metrics().counter("c", ""),
    )
    rounds: list[Mapping[str, ReplicaState | str]] = [
        {"a": says(), "b": says()},  # a set serves everywhere that did not before
        {"a": says(), "b": says()},
        {"a": says(), "b": "no answer"},
        {"a": says()},
        {"a": says(), "c": says()},
        {"c": says()},
        {"c": says(process="restarted")},
        {"c": says(process="restarted")},
    ]
    found = []
    for answers in rounds:
        now += 2 * PAUSE_S
        asyncio.run(waker.on_poll(answers))
        found.append(now in touched)
    assert found == [True, False, True, False, False, True, True, False]


def test_it_is_done_at_most_so_often() -> None:
    waking = SERVED.observe([says(freed=True)])
    assert waking.wait_s(100.0) == 0.0
    waking = waking.record_wake(100.0)
    assert waking.wait_s(100.0) is None
    waking = waking.observe([says(freed=True)])
    assert waking.wait_s(102.0) == PAUSE_S - 2.0
    assert waking.wait_s(100.0 + 2 * PAUSE_S) == 0.0
