"""Which policies there are, from what is told of them."""

from typing import Any

import pytest
from generate.crds import installed_policy

from fairlead.control.decide.decide import DesiredScheduler, ObservedScheduler, decide
from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.decide.desired_affinity import publishes
from fairlead.render.extenders import Wiring, wire
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates
from policies.good import gang
from support.policy.building import obj
from support.render.schedulers import ENGINE, facts


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


IN_FORCE: dict[str, Any] = {"filters": {"f": "true"}}
MORE: dict[str, dict[str, Any]] = {
    "a first score": {"scores": {"s": {"expression": "1.0", "mode": "Shadow"}}},
    "a first annotation": {"annotations": {"fairlead.dev/a": {"expression": "'x'", "mode": "Shadow"}}},
    "another filter": {"filters": {"f": "true", "g": {"expression": "false", "mode": "Shadow"}}},
    "a protection": {"protect": {"p": {"expression": "true", "mode": "Shadow"}}},
    "a filter that keeps domains": {
        "filters": {"f": "true", "t": {"topology": {"levels": ["zone"], "require": "zone"}, "mode": "Shadow"}}
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    "of failurePolicy Fail": {"scores": {"s": "1.0"}, "protect": {"p": "true"}},
    "of failurePolicy Ignore": {"filters": {"f": "true"}, "failurePolicy": "Ignore"},
    "with bindings": {"binding": {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"}], "gang": [gang()]}},
}


def desired(*policies: dict[str, Any], **serving: PolicyState) -> DesiredScheduler:
    index = PolicyIndex(installed_policy())
    for one in policies:
        index.apply_event("ADDED", one)
    return index.desired_scheduler("fairlead", OperatorSettings(), {"one": ReplicaState(policies=serving)})


def config_hash(wanted: DesiredScheduler) -> str:
    """The hash of the configuration that a scheduler is to run."""
    decided = decide(ENGINE, wanted, facts(), ObservedScheduler(config_maps={}), 0.0)
    assert decided.plan is not None
    return decided.plan.config_hash


@pytest.mark.parametrize("more", MORE)
def test_a_rule_in_shadow_leaves_the_scheduler_as_it_is(more: str) -> None:
    before, after = desired(obj(**IN_FORCE)), desired(obj(generation=2, **IN_FORCE | MORE[more]))
    assert wire(after.policies) == wire(before.policies)
    assert config_hash(after) == config_hash(before)
    enforced = {part: _enforced(rules) for part, rules in MORE[more].items()}
    if more not in ("another filter", "a protection"):
        assert wire(desired(obj(**IN_FORCE | enforced)).policies) != wire(before.policies), "enforced it would not"


def _enforced(rules: Any) -> Any:
    return {name: one if isinstance(one, str) else {**one, "mode": "Enforce"} for name, one in rules.items()}


ONLY_IN_SHADOW: dict[str, Any] = {"filters": {"f": {"expression": "false", "mode": "Shadow"}}}
LOOSE: dict[str, Any] = {"filters": {"f": "true"}, "failurePolicy": "Ignore"}


@pytest.mark.parametrize("unreadable", [False, True])
def test_a_policy_with_nothing_but_rules_in_shadow_leaves_the_scheduler_of_others_as_it_is(unreadable: bool) -> None:
    before = desired(obj(**LOOSE))
    more = obj("other", **ONLY_IN_SHADOW | ({"priority": "high"} if unreadable else {}))
    after = desired(obj(**LOOSE), more)
    assert len(after.policies) == 1 + (not unreadable)
    assert wire(after.policies) | after.serving == wire(before.policies) | before.serving
    assert config_hash(after) == config_hash(before)


@pytest.mark.parametrize(("others", "rolls"), [([LOOSE], True), ([IN_FORCE], False), ([IN_FORCE, LOOSE], False)])
def test_taking_all_rules_into_shadow_and_back_rolls_only_if_nobody_else_waits(
    others: list[dict[str, Any]], rolls: bool
) -> None:
    rest = [obj(f"other-{at}", **one) for at, one in enumerate(others)]
    edits = [obj(**IN_FORCE), obj(generation=2, **ONLY_IN_SHADOW), obj(generation=3, **IN_FORCE)]
    first, between, last = (config_hash(desired(*rest, one)) for one in edits)
    assert (first == last, first != between) == (True, rolls)
    serves = PolicyState(uid="u-p", generation="1", reason="Compiled", scheduler="fairlead", fails=True)
    assert config_hash(desired(*rest, edits[1], p=serves)) == first, "it still serves the rules in force"


@pytest.mark.parametrize("other", OTHERS)
def test_a_policy_in_shadow_leaves_the_scheduler_of_others_as_it_is(other: str) -> None:
    before = desired(obj(**IN_FORCE))
    after = desired(obj(**IN_FORCE), obj("other", mode="Shadow", **OTHERS[other]))
    assert wire(after.policies) == wire(before.policies)
    assert config_hash(after) == config_hash(before)


def test_a_policy_in_shadow_has_its_scheduler_of_its_own() -> None:
    alone = desired(obj(mode="Shadow", scores={"s": "1.0"}))
    assert (alone.exists, wire(alone.policies)) == (True, Wiring())
    decided = decide(ENGINE, alone, facts(), ObservedScheduler(config_maps={}), 0.0)
    assert decided.lifecycle == "Keep"
    assert decided.plan is not None
    assert any(one["kind"] == "Deployment" for one in decided.plan.objects)


def test_what_a_replica_still_enforces_of_a_policy_in_shadow_keeps_its_verbs() -> None:
    """As one of an older version does, or one that has not heard of the edit yet."""
    serves = PolicyState(uid="u-p", generation="2", reason="Compiled", scheduler="fairlead", fails=True, scores=True)
    wanted = desired(obj(generation=2, mode="Shadow", scores={"s": "1.0"}), p=serves)
    assert wanted.serving == Wiring(fails=True, scores=True)


def test_a_policy_in_shadow_publishes_nothing() -> None:
    written = obj(mode="Shadow", publish="NodeAffinity", **IN_FORCE)
    assert not publishes(written)
    assert publishes({**written, "spec": {**written["spec"], "mode": "Enforce"}})
