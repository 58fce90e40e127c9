"""Who is woken, and how often."""

import pytest

from fairlead.control.waking import PAUSE_S, Waking
from fairlead.webhook.state import ReplicaState

SERVED = Waking(served="a")


def says(policy_set: str = "a", *, freed: bool = False) -> ReplicaState:
    return ReplicaState(policy_set=policy_set, freed=freed)


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
        (Waking(served="a", owed=True), [says()], "a", True),
    ],
)
def test_what_is_owed(before: Waking, answers: list[ReplicaState | str], served: str, owed: bool) -> None:
    after = before.heard(answers)
    assert (after.served, after.owed) == (served, owed)


def test_it_is_done_at_most_so_often() -> None:
    waking = SERVED.heard([says(freed=True)])
    assert waking.wait_s(100.0) == 0.0
    waking = waking.woke(100.0)
    assert waking.wait_s(100.0) is None
    waking = waking.heard([says(freed=True)])
    assert waking.wait_s(102.0) == PAUSE_S - 2.0
    assert waking.wait_s(100.0 + 2 * PAUSE_S) == 0.0
