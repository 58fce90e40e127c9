"""From policies and what is there to what is to be there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from generate.crds import installed_policy

from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.decide import (
    DesiredScheduler,
    ObservedScheduler,
    ReconcileDecision,
    decide,
    objects_to_prune,
)
from fairlead.control.decide.persisted_state import STATE, PersistedState, to_config_map
from fairlead.control.decide.retention import SCHEDULER_S, VERB_S
from fairlead.control.decide.rollout import RolloutState
from fairlead.control.decide.rollout_observation import RolloutObservation
from fairlead.render.object_names import CONFIG_HASH, Object, ObjectNames
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine
from support.policy.building import obj
from support.render.schedulers import facts, settings
from support.render.schedulers import named as one_of

NOW = 10_000.0
ENGINE = TemplateEngine(templates())
NAMES = ObjectNames("fairlead", facts().namespace)
POLICY = installed_policy()


def policy(**spec: Any) -> SchedulerExtenderPolicy:
    return parse_policy(obj(**spec), POLICY)


PLAIN = policy(filters=[{"name": "f", "expression": "true"}])
SCORING = policy(scores=[{"name": "s", "expression": "1.0"}])
ASKED = DesiredScheduler(settings=settings(), listed=False, policies=[PLAIN], versions=["1"])
NOTHING = ObservedScheduler(config_maps={})


def named(decided: ReconcileDecision, kind: str) -> Object:
    assert decided.plan is not None
    return one_of(decided.plan, kind)


def after(decided: ReconcileDecision, there: ObservedScheduler = NOTHING, **seen: Any) -> ObservedScheduler:
    """What is there once that was applied."""
    config_map, deployment = named(decided, "ConfigMap"), named(decided, "Deployment")
    config = config_map["metadata"]["annotations"][CONFIG_HASH]
    made: Mapping[str, Any] = {
        **config_map,
        "metadata": {**config_map["metadata"], "creationTimestamp": f"{len(there.config_maps):04}"},
    }
    kept = to_config_map(NAMES, decided.persisted)
    return ObservedScheduler(
        rollout=RolloutObservation(config=deployment["metadata"]["annotations"][CONFIG_HASH], **seen),
        config_maps={**there.config_maps, config: made},
        persisted=STATE.read(kept).value or PersistedState(),
    )


VERIFIED: Mapping[str, Any] = {"has_lease": True, "probe_failure": ""}


def test_a_scheduler_from_nothing_to_verified_and_then_nothing_changes() -> None:
    first = decide(ENGINE, ASKED, facts(), NOTHING, NOW)
    assert (first.lifecycle, first.phase) == ("Keep", "Rolling")
    second = decide(ENGINE, ASKED, facts(), after(first, **VERIFIED), NOW + 5)
    assert (second.phase, second.message) == ("Steady", "")
    assert second.plan == first.plan
    third = decide(ENGINE, ASKED, facts(), after(second, **VERIFIED), NOW + 500)
    assert third == second


@pytest.mark.parametrize(
    ("sample", "nodes", "reason"),
    [
        ("Auto", 1000, None),
        ("Auto", None, None),
        ("Auto", 1001, "AsksAllNodes"),
        ("100%", 1001, "AsksAllNodes"),
        ("30%", 10, "SampledTopology"),
    ],
)
def test_how_many_nodes_are_asked_is_told_to_those_that_need_all(
    sample: str, nodes: int | None, reason: str | None
) -> None:
    asked = replace(ASKED, settings=settings(nodeSample=sample))
    told = decide(ENGINE, asked, facts(nodes=nodes), NOTHING, NOW).asked_nodes
    assert (None if told is None else told[0]) == reason


def test_an_edit_of_a_rule_changes_nothing() -> None:
    there = after(decide(ENGINE, ASKED, facts(), NOTHING, NOW), **VERIFIED)
    other = policy(filters=[{"name": "g", "expression": "1 < 2"}])
    edited = replace(ASKED, policies=[other], versions=["2"])
    assert decide(ENGINE, edited, facts(), there, NOW).plan == decide(ENGINE, ASKED, facts(), there, NOW).plan


def test_what_fails_is_put_away_and_the_last_good_one_comes_back() -> None:
    good = decide(ENGINE, ASKED, facts(), NOTHING, NOW)
    good = decide(ENGINE, ASKED, facts(), there := after(good, **VERIFIED), NOW)
    more = replace(ASKED, policies=[PLAIN, SCORING], versions=["1", "2"])
    rolling = decide(ENGINE, more, facts(), after(good, there, **VERIFIED), NOW)
    assert rolling.phase == "Rolling"
    assert rolling.plan is not None
    assert good.plan is not None
    failed = decide(ENGINE, more, facts(), there := after(rolling, there, failure="no such verb"), NOW + 9)
    assert failed.plan is not None
    assert (failed.phase, failed.plan) == ("RolledBack", replace(good.plan, objects=failed.plan.objects))
    assert named(failed, "Deployment")["spec"] == named(good, "Deployment")["spec"]
    again = decide(ENGINE, more, facts(), after(failed, there, **VERIFIED), NOW + 99)
    assert (again.phase, again.plan) == ("RolledBack", failed.plan)
    edited = replace(more, versions=["1", "3"])
    assert decide(ENGINE, edited, facts(), after(failed, there, **VERIFIED), NOW + 99).phase == "Rolling"


def test_what_cannot_be_put_back_is_said() -> None:
    good = decide(ENGINE, ASKED, facts(), after(decide(ENGINE, ASKED, facts(), NOTHING, NOW), **VERIFIED), NOW)
    more = replace(ASKED, policies=[PLAIN, SCORING])
    there = after(decide(ENGINE, more, facts(), after(good), NOW), failure="x")
    found = decide(ENGINE, more, facts(), replace(there, config_maps={}), NOW)
    assert found.plan is None
    assert "that ConfigMap is gone" in found.message


def test_a_verb_that_is_not_used_any_more_goes_later_and_a_scheduler_much_later() -> None:
    both = replace(ASKED, policies=[PLAIN, SCORING])
    first = decide(ENGINE, both, facts(), NOTHING, NOW)
    there = after(decide(ENGINE, both, facts(), after(first, **VERIFIED), NOW), **VERIFIED)
    less = decide(ENGINE, ASKED, facts(), there, NOW)
    assert (less.plan, less.requeue_after_s) == (first.plan, VERB_S)
    there = after(less, there, **VERIFIED)
    assert decide(ENGINE, ASKED, facts(), there, NOW + VERB_S).plan != first.plan
    nobody = replace(ASKED, policies=[], exists=False)
    empty = decide(ENGINE, nobody, facts(), there, NOW + 1)
    assert (empty.lifecycle, empty.plan) == ("Retain", first.plan)
    there = after(empty, there, **VERIFIED)
    assert decide(ENGINE, nobody, facts(), replace(there, pending_pods=2), NOW + 1 + SCHEDULER_S).lifecycle == "Retain"
    assert decide(ENGINE, nobody, facts(), there, NOW + 1 + SCHEDULER_S) == ReconcileDecision(
        lifecycle="Delete", message="no policy uses it any more, and no pending pod names it"
    )
    assert decide(ENGINE, ASKED, facts(), there, NOW + 1 + SCHEDULER_S).lifecycle == "Keep"


def test_what_is_left_of_a_scheduler_that_has_gone_does_not_bring_it_back() -> None:
    nobody = replace(ASKED, policies=[], exists=False)
    assert decide(ENGINE, nobody, facts(), NOTHING, NOW).lifecycle == "Delete"
    assert decide(ENGINE, replace(nobody, listed=True), facts(), NOTHING, NOW).lifecycle == "Keep"


def test_a_scheduler_that_others_run_has_no_pods_and_nothing_to_wait_for() -> None:
    found = decide(
        ENGINE,
        replace(ASKED, settings=settings(management="ConfigOnly")),
        facts(),
        NOTHING,
        NOW,
    )
    assert (found.phase, found.message) == ("Steady", "")
    assert found.plan is not None
    assert {one["kind"] for one in found.plan.objects} == {"ConfigMap"}


def test_what_is_not_wanted_any_more_goes_and_the_newest_configurations_stay() -> None:
    there, decided = NOTHING, decide(ENGINE, ASKED, facts(), NOTHING, NOW)
    for timeout in range(1, 7):
        decided = decide(ENGINE, replace(ASKED, settings=settings(timeout=f"{timeout}s")), facts(), there, NOW)
        there = after(decided, there, **VERIFIED)
    assert decided.plan is not None
    alone = decide(ENGINE, replace(ASKED, settings=settings(timeout="6s", replicas=1)), facts(), there, NOW)
    state = to_config_map(NAMES, decided.persisted)
    found = [*decided.plan.objects[:-1], *map(dict, there.config_maps.values()), state]
    gone = objects_to_prune(NAMES, alone, there, found)
    assert [one["kind"] for one in gone] == ["PodDisruptionBudget", "ConfigMap", "ConfigMap", "ConfigMap"]
    assert named(decided, "ConfigMap")["metadata"]["name"] not in {one["metadata"]["name"] for one in gone}


def test_a_scheduler_that_others_are_to_run_keeps_what_its_last_pods_need() -> None:
    made = decide(ENGINE, ASKED, facts(), NOTHING, NOW)
    assert made.plan is not None
    found, there = [*made.plan.objects], replace(after(made), pods=2)
    theirs = decide(
        ENGINE, replace(ASKED, settings=settings(management="ConfigOnly"), listed=True), facts(), there, NOW
    )
    assert {one["kind"] for one in objects_to_prune(NAMES, theirs, there, found)} == {"Deployment"}
    assert theirs.requeue_after_s is not None
    rest = [one for one in found if one["kind"] != "Deployment"]
    assert objects_to_prune(NAMES, theirs, there, rest) == []
    none = replace(there, pods=0)
    assert {"ServiceAccount", "Lease"} <= {one["kind"] for one in objects_to_prune(NAMES, theirs, none, rest)}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({}, PersistedState()),
        (None, PersistedState()),
        ({"state.json": "{}"}, PersistedState()),
        ({"state.json": "{"}, None),
        ({"state.json": "[]"}, None),
    ],
)
def test_state_that_was_spoilt_is_left_alone(data: Any, value: PersistedState | None) -> None:
    found = STATE.read({"kind": "ConfigMap", "metadata": {"name": "s.state", "resourceVersion": "1"}, "data": data})
    assert (found.value, bool(found.fault)) == (value, value is None)


def test_state_of_a_version_without_formats_is_read() -> None:
    state = PersistedState(rollout=RolloutState(last_good="a"))
    config_map = to_config_map(NAMES, state)
    assert STATE.read(config_map).value == state
    assert STATE.read(None).value is None
