"""Idle time of a replica: verdicts are precomputed, and rejected pods are looked at however much there is to do."""

from typing import Any

import pytest

from fairlead.process.replica import IdleTime
from fairlead.webhook.extender.call import CallClock
from support.policy import node, policy
from support.webhook import Asking, at, body

NAMES = [f"n{number:03}" for number in range(200)]
RULE = {"f": "pod.metadata.labels[?'app'].orValue('') != node.metadata.name"}
RATE = {"s": "pod.metadata.labels[?'app'].orValue('') == node.metadata.name ? 1.0 : 2.0"}


class Work:
    """A serving state and its rejected pods, which note until when they may work."""

    def __init__(self, *, done: bool) -> None:
        self.done, self.now, self.progress = done, 0, (0, 0)
        self.precomputed: list[int] = []
        self.rechecked: list[int] = []

    def precompute(self, when: CallClock) -> bool:
        self.precomputed.append(when.deadline_ns)
        self.now = 0 if self.done else when.deadline_ns
        return self.done

    def recheck(self, _serving: object, when: CallClock) -> bool:
        self.rechecked.append(when.deadline_ns - when.clock())
        return True


@pytest.mark.parametrize(
    ("done", "precomputed"), [(True, 1), (False, 3)], ids=["all precomputed", "more to precompute"]
)
def test_rejected_pods_are_looked_at(*, done: bool, precomputed: int) -> None:
    work = Work(done=done)
    anything: Any = work
    idle = IdleTime(anything)
    for _ in range(3):
        work.now = 0
        idle.use(anything, CallClock(0, lambda: work.now, 100))
    assert work.precomputed == [100] * precomputed
    assert [left > 0 for left in work.rechecked] == [True] * 3


def test_what_fails_is_not_tried_again_until_something_changes() -> None:
    class Fails(Work):
        def precompute(self, when: CallClock) -> bool:
            super().precompute(when)
            raise RuntimeError("a slip of ours")

    work: Any = Fails(done=False)
    idle = IdleTime(None)
    for progress in ((0, 0), (1, 0)):
        work.progress = progress
        with pytest.raises(RuntimeError):
            idle.use(work, CallClock(0, lambda: 0, 100))
        idle.use(work, CallClock(0, lambda: 0, 100))
    assert len(work.precomputed) == 2


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_class_that_came_since_is_precomputed_for_all_nodes(verb: str) -> None:
    """Its call asked about some nodes only, and nothing has changed on any node."""
    asking, idle = Asking([policy(filters=RULE, scores=RATE)], [node(name) for name in NAMES]), IdleTime(None)
    idle.use(asking.serving, at())
    for app in ("one", "other"):
        call: Any = getattr(asking, verb)
        call(body(NAMES[:100], pod={"labels": {"app": app}}))
        idle.use(asking.serving, at())
        before = dict(asking.tally.evaluations)
        call(body(NAMES[100:], pod={"labels": {"app": app}}))
        assert asking.tally.evaluations == before, "the next call computes nothing"
