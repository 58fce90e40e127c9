"""Who is woken, and how often."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from fairlead.control.loop.waker import PAUSE_S, REQUESTED_S, Waker, WakeState
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import UnreachableError
from fairlead.kube.resources import PODS
from fairlead.metrics import Metrics
from fairlead.replica_state import ReplicaState

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVED = WakeState(served="a")


def says(policy_set: str = "a", *, freed: bool = False, rejects: bool = False, process: str = "") -> ReplicaState:
    return ReplicaState(
        policy_set=policy_set, schedulable_again=freed, has_rejected_pods=freed or rejects, process=process
    )


@pytest.mark.parametrize(
    ("before", "answers", "served", "owed"),
    [
        (SERVED, [says(), says()], "a", False),
        (SERVED, [says(), says(freed=True)], "a", True),
        (SERVED, [says(freed=True), "no answer"], "a", True),
        (SERVED, [says("b"), says("b")], "b", False),
        (SERVED, [says("b"), says("b", rejects=True)], "b", True),
        (SERVED, [says("b", rejects=True), says("a")], "a", False),
        (WakeState(), [says(), says()], "a", True),
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


class Touched:
    """An API server that notes each wake-up, and may fail."""

    def __init__(self) -> None:
        self.fails = False
        self.times = 0
        self.during: list[Any] = []

    async def merge(self, *_: Any) -> None:
        self.times += 1
        for one in self.during:
            one()
        if self.fails:
            raise UnreachableError("patch", PODS, "it does not answer")


class Scene:
    def __init__(self) -> None:
        self.now, self.api = 100.0, Touched()
        self.waker = Waker(
            cast("Any", self.api),
            "n",
            lambda: datetime(2026, 1, 1, tzinfo=UTC),
            lambda: self.now,
            MissingPermissions(),
            Metrics().counter("c", ""),
            SERVED,
        )

    def wait_s(self) -> float | None:
        return self.waker.wait_s

    def poll(self, *, freed: bool = False) -> int:
        """Return how often pods were woken in all."""
        asyncio.run(self.waker.on_poll({"a": says(freed=freed)}))
        return self.api.times


def test_what_is_requested_is_done_after_a_shorter_pause_than_what_polls_tell() -> None:
    scene = Scene()
    assert scene.poll() == 0
    scene.waker.request()
    assert (scene.wait_s(), scene.poll(), scene.wait_s()) == (0.0, 1, None)
    scene.waker.request()
    assert scene.wait_s() == REQUESTED_S
    scene.now += REQUESTED_S / 2
    assert scene.poll() == 1
    scene.now += REQUESTED_S / 2
    assert scene.poll() == 2
    assert scene.poll(freed=True) == 2
    assert scene.wait_s() == PAUSE_S
    scene.now += REQUESTED_S
    assert scene.poll() == 2
    scene.waker.request()  # and then the other one is not owed any more
    assert (scene.poll(), scene.wait_s()) == (3, None)


def test_what_is_requested_while_pods_are_woken_is_done_after_that() -> None:
    scene = Scene()
    scene.api.during.append(scene.waker.request)
    scene.waker.request()
    assert (scene.poll(), scene.wait_s()) == (1, REQUESTED_S)


@pytest.mark.parametrize("freed", [True, False], ids=["told by a poll", "requested"])
def test_what_fails_is_still_owed(freed: bool) -> None:
    scene = Scene()
    scene.api.fails = True
    if not freed:
        scene.waker.request()
    scene.poll(freed=freed)
    assert scene.wait_s() == (PAUSE_S if freed else REQUESTED_S)
    scene.api.fails = False
    scene.now += PAUSE_S
    assert (scene.poll(), scene.wait_s()) == (2, None)
