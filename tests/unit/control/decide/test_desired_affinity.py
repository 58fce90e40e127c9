"""What is published of policies: at once if it is less, and what is new once every replica serves it."""

from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.control.decide.desired_affinity import desired_affinities
from fairlead.replica_state import PolicyState, PublicationState, ReplicaState, ReplicaStates

Obj = Mapping[str, Any]


def policy(name: str = "p", scheduler: str = "s", publish: str = "NodeAffinity", **more: Any) -> Obj:
    metadata = {"name": name, "uid": f"u-{name}", "generation": 2}
    if more.pop("deleting", False):
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, "publish": publish, **more}}


def part(name: str = "p", pool: str = "a", generation: int = 2) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]}]
    return {"name": name, "uid": f"u-{name}", "generation": generation, "when": [], "terms": terms}


def state(*parts: dict[str, Any] | None, name: str = "p", serving: str = "2", says: bool = True) -> ReplicaState:
    """Return a replica that serves a generation of a policy, with what that publishes."""
    publication = PublicationState(policy=parts[0] if parts else None) if says else None
    one = PolicyState(uid=f"u-{name}", generation="2", serving=serving, reason="Compiled", publication=publication)
    return ReplicaState(policies={name: one})


LIVE: Mapping[str, Obj] = {"s": {"spec": {"policies": [part(pool="before", generation=1)]}}}


@pytest.mark.parametrize(
    ("policies", "states", "pools"),
    [
        ([policy()], {"one": state(part()), "two": state(part())}, ["a"]),
        ([policy()], {"one": state(part()), "two": state(part(pool="b"), serving="1")}, ["before"]),
        ([policy()], {"one": state(part()), "two": "it does not answer"}, ["before"]),
        ([policy()], {"one": state(part()), "two": state(says=False)}, ["before"]),
        ([policy()], {"one": state(part()), "two": ReplicaState()}, ["before"]),
        ([policy()], {}, ["before"]),
        ([policy()], {"one": state()}, None),
        ([policy(publish="None")], {"one": state(part())}, None),
        ([policy(mode="Disabled")], {"one": state(part())}, None),
        ([policy(deleting=True)], {"one": state(part())}, None),
        ([], {"one": state(part())}, None),
        ([policy(scheduler="other")], {"one": "it does not answer"}, None),
    ],
)
def test_what_is_published(policies: list[Obj], states: ReplicaStates, pools: list[str] | None) -> None:
    found = desired_affinities(policies, states, LIVE, "here").get("s")
    assert (None if found is None else [_pool(one) for one in found["spec"]["policies"]]) == pools


def _pool(published: Mapping[str, Any]) -> str:
    ((requirement,),) = (one["matchExpressions"] for one in published["terms"])
    (value,) = requirement["values"]
    return str(value)


def test_policies_of_a_scheduler_are_sorted_by_name_and_those_of_others_are_apart() -> None:
    policies = [policy("q"), policy("p"), policy("r", scheduler="other")]
    both = {**state(part("q"), name="q").policies, **state(part("p")).policies, **state(part("r"), name="r").policies}
    found = desired_affinities(policies, {"one": ReplicaState(policies=both)}, {}, "here")
    assert {scheduler: [one["name"] for one in obj["spec"]["policies"]] for scheduler, obj in found.items()} == {
        "s": ["p", "q"],
        "other": ["r"],
    }
    assert found["s"]["metadata"] == {
        "name": "s",
        "labels": {"app.kubernetes.io/managed-by": "fairlead", "fairlead.dev/operator-namespace": "here"},
    }


def test_a_generation_that_publishes_the_same_keeps_the_hash() -> None:
    hashes = [
        desired_affinities([policy()], {"one": state(one)}, {}, "here")["s"]["spec"]["hash"]
        for one in (part(), part(generation=3), part(pool="b"))
    ]
    assert hashes[0] == hashes[1] != hashes[2]
