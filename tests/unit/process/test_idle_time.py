"""Idle time of a replica: verdicts are precomputed, and rejected pods are looked at however much there is to do."""

from typing import Any

import pytest

from fairlead.process.replica import use_idle_time
from fairlead.webhook.extender.call import CallClock


class Work:
    """A serving state and its rejected pods, which note until when they may work."""

    def __init__(self, *, done: bool) -> None:
        self.done, self.now = done, 0
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
    ("is_done", "done", "precomputed"),
    [(True, False, []), (False, True, [100]), (False, False, [100])],
    ids=["nothing to precompute", "all precomputed", "more to precompute"],
)
def test_rejected_pods_are_looked_at(*, is_done: bool, done: bool, precomputed: list[int]) -> None:
    work = Work(done=done)
    anything: Any = work
    assert use_idle_time(anything, anything, CallClock(0, lambda: work.now, 100), is_done=is_done) == (is_done or done)
    assert work.precomputed == precomputed
    assert [left > 0 for left in work.rechecked] == [True]
