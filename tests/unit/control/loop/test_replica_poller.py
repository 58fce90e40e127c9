"""Polls come often while something is in progress, and soon after a request."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.control.loop.replica_poller import ReplicaPoller
from fairlead.kube.errors import UnreachableError
from fairlead.kube.resources import PODS
from fairlead.replica_state import ReplicaState
from support.faults import virtual

SERVED = ReplicaState(policy_set="a")
REJECTS = ReplicaState(policy_set="a", has_rejected_pods=True)


class Waking:
    """A waker that is to wake pods after so long."""

    def __init__(self, wait_s: float | None) -> None:
        self.wait_s = wait_s
        self.requests = 0
        self.order: list[str] = []

    async def wake_if_due(self) -> None:
        self.order.append("woken")

    def request(self) -> None:
        self.requests += 1


def poller(wait_s: float | None, *answers: ReplicaState | str) -> ReplicaPoller:
    nothing: Any = SimpleNamespace(policies={}, changes=0)
    replicas: Any = SimpleNamespace(states={f"fairlead-{at}": one for at, one in enumerate(answers)})
    return ReplicaPoller(
        policy_index=nothing,
        queue=nothing,
        replicas=replicas,
        waker=cast("Any", Waking(wait_s)),
        unreviewed=nothing,
        missing_permissions=nothing,
    )


# when pods are to be woken, what replicas answered, and the pause before the next poll
PAUSES: dict[str, tuple[float | None, list[ReplicaState | str], float]] = {
    "nothing is in progress": (None, [SERVED, SERVED], 10.0),
    "a replica has rejected pods": (None, [SERVED, REJECTS], 1.0),
    "a replica does not answer": (None, [SERVED, "no answer"], 1.0),
    "pods are to be woken soon": (0.4, [SERVED], 0.4),
    "they are to be woken very soon": (0.01, [SERVED], 0.1),
    "they are to be woken later": (5.0, [SERVED], 1.0),
    "the poll that should have woken them has failed": (0.0, [SERVED], 1.0),
}


@pytest.mark.parametrize("case", PAUSES)
def test_the_pause_before_a_poll(case: str) -> None:
    wait_s, answers, want = PAUSES[case]

    async def run() -> float:
        await poller(wait_s, *answers).wait()
        return asyncio.get_running_loop().time()

    assert virtual.run(run()) == pytest.approx(want)


def test_a_wake_up_that_is_requested_causes_a_poll_at_once() -> None:
    async def run() -> tuple[float, int]:
        made = poller(None, SERVED)
        asyncio.get_running_loop().call_later(3.0, made.wake_pods)
        await made.wait()
        return asyncio.get_running_loop().time(), cast("Any", made.waker).requests

    at, requests = virtual.run(run())
    assert requests == 1
    assert at == pytest.approx(3.1)


def test_pods_are_woken_before_replicas_are_asked_which_may_fail() -> None:
    async def run() -> list[str]:
        made = poller(None, SERVED)
        waker, replicas, queue = cast("Any", made.waker), cast("Any", made.replicas), cast("Any", made.queue)

        async def fails() -> None:
            waker.order.append("asked")
            raise UnreachableError("list", PODS, "it does not answer")

        replicas.poll, replicas.aside, queue.messages = fails, frozenset(), []
        queue.replicas_polled, queue.enqueue_statuses = asyncio.Event(), lambda **_: None
        await made.poll()
        assert queue.replicas_polled.is_set()
        return list(waker.order)

    assert virtual.run(run()) == ["woken", "asked"]
