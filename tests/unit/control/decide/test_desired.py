"""Which policies there are, from what is told of them."""

import pytest
from generate.crds import installed_policy

from fairlead.control.decide.desired import PolicyIndex
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates
from support.policy.building import obj


def test_the_end_of_a_policy_that_was_made_anew_does_not_end_the_new_one() -> None:
    gathered = PolicyIndex(installed_policy())
    old, new = ({**obj(), "metadata": {"name": "p", "uid": uid}} for uid in "ab")
    gathered.apply_event("ADDED", old)
    gathered.apply_event("ADDED", new)
    gathered.apply_event("DELETED", old)
    assert gathered.policies == {"p": new}
    gathered.apply_event("DELETED", new)
    assert gathered.policies == {}


@pytest.mark.parametrize(
    ("mode", "waits"), [("Enforce", True), ("Shadow", False), ("Disabled", False), ("Observe", True)]
)
def test_pods_wait_for_a_policy_that_cannot_be_read_unless_it_is_off(mode: str, waits: bool) -> None:
    gathered = PolicyIndex(installed_policy())
    gathered.apply_event("ADDED", obj(filters=5, mode=mode))
    wanted = gathered.desired_scheduler("fairlead", OperatorSettings(), {})
    assert (wanted.serving.fails, wanted.exists) == (waits, True)


def test_the_longest_hold_that_a_replica_serves_counts() -> None:
    """So that a generation which still serves has the time that it needs, after an edit that does not compile."""
    gathered = PolicyIndex(installed_policy())
    gathered.apply_event("ADDED", obj(filters={"f": "true"}))

    def served(hold_s: int) -> ReplicaState:
        policy = PolicyState(
            uid="u", generation="1", reason="Compiled", scheduler="fairlead", fails=True, binds=True, hold_s=hold_s
        )
        return ReplicaState(policies={"p": policy})

    answers: ReplicaStates = {"a": served(45), "b": served(90), "c": "no answer"}
    serving = gathered.desired_scheduler("fairlead", OperatorSettings(), answers).serving
    assert (serving.binds, serving.hold_s) == (True, 90)
