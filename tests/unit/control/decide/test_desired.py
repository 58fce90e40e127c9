"""Which policies there are, from what is told of them."""

from generate.crds import installed_policy

from fairlead.control.decide.desired import PolicyIndex
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
