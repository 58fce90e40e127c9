"""What is written as the status of a policy."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from fairlead.control.decide.decide import ReconcileDecision
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import StatusInputs, build_status, status_change
from fairlead.render.native_groups import NativeGroups
from fairlead.replica_state import (
    PolicyState,
    PublicationGaps,
    ReplicaState,
    RuleState,
    ShadowCounts,
    ShadowRuleCounts,
    WaitingGroups,
)
from support.render.schedulers import planned


@pytest.mark.parametrize(("spec", "scheduler"), [({}, "fairlead"), ({"schedulerName": "s"}, "s")])
def test_the_scheduler_is_named_whether_or_not_the_policy_names_it(spec: dict[str, Any], scheduler: str) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 1}, "spec": spec}
    about = StatusInputs(policy=policy, states={}, result=ReconcileResult(), paused=False)
    assert build_status(about, datetime(2026, 1, 1, tzinfo=UTC))["scheduler"] == {"name": scheduler}


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        pytest.param(["0.1", "u/2"], "Ready", id="its scheduler was looked at since"),
        pytest.param(["0.1", "u/1"], "Pending", id="its scheduler is as an older generation wanted it"),
        pytest.param(["0.1", "other/2"], "Pending", id="its scheduler is as a policy of that name wanted it that went"),
    ],
)
def test_what_its_scheduler_is_counts_once_that_was_decided_for_this_generation(about: list[str], reason: str) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled")
    answers: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": served})}
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=about)
    made = build_status(
        StatusInputs(policy=policy, states=answers, result=passed, paused=False),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert {one["type"]: one["reason"] for one in made["conditions"]}["Ready"] == reason


def test_a_word_of_another_version_for_an_evaluation_is_left_out() -> None:
    """While replicas are replaced one by one, the custom resource knows the words of the newer version only."""
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    rules = tuple(RuleState(kind="Filter", name=one, evaluation=one) for one in ("Lowered", "ByteCode", "Engine"))
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled", rules=rules)
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    answers: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": served})}
    made = build_status(
        StatusInputs(policy=policy, states=answers, result=passed, paused=False),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert [one.get("evaluation") for one in made["rules"]] == [None, "ByteCode", "Engine"]


def test_accepted_warnings_stand_apart_with_their_reasons() -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    warnings = [
        ("CountsPods", "spec.filters[0]: it counts", "it is soft"),
        ("PodIdentity", "spec.filters[1]: it is", ""),
    ]
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    made = build_status(
        StatusInputs(policy=policy, states={}, result=passed, paused=False, warnings=warnings),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert [one["reason"] for one in made["warnings"]] == ["PodIdentity"]
    assert made["acceptedWarnings"] == [
        {"reason": "CountsPods", "count": 1, "message": "it is soft (spec.filters[0]: it counts)"}
    ]


_GANG = {"binding": {"gang": [{"name": "g"}]}}


@pytest.mark.parametrize(
    ("spec", "groups", "said"),
    [
        (_GANG, NativeGroups(is_on=True, message="x"), "which places Kubernetes' own groups: gang holds none"),
        (
            _GANG,
            NativeGroups(is_on=False, message="x", may_be_on=True),
            "which places Kubernetes' own groups if you run it with --feature-gates=GenericWorkload=true: gang holds",
        ),
        (_GANG, NativeGroups(is_on=False, message="x"), ""),
        ({}, NativeGroups(is_on=True, message="x", may_be_on=True), ""),
    ],
)
def test_a_policy_with_gang_beside_kubernetes_own_groups_is_warned(
    spec: dict[str, Any], groups: NativeGroups, said: str
) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": spec}
    plan = replace(planned(), groups=groups)
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady", plan=plan))
    about = StatusInputs(policy=policy, states={}, result=passed, paused=False)
    made = build_status(about, datetime(2026, 1, 1, tzinfo=UTC)).get("warnings", [])
    assert [one["reason"] for one in made] == (["NativeGroups"] if said else [])
    assert all(said in one["message"] for one in made)


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "pod is pending because this policy, and no other, keeps it from"), (2, "pods are pending because this")],
)
def test_pods_that_one_policy_alone_keeps_from_every_node_are_counted_as_of_a_minute(count: int, said: str) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled", rejected_pods=count)
    answers: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": served})}
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    made = build_status(
        StatusInputs(policy=policy, states=answers, result=passed, paused=False),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    (warning,) = made["warnings"]
    assert (warning["reason"], warning["count"]) == ("RejectedByThisPolicyOnly", count)
    assert warning["message"].startswith(said)
    assert "(counted once a minute)" in warning["message"]


@pytest.mark.parametrize(
    ("answers", "count", "said"),
    [
        ([WaitingGroups(complete=2, incomplete=1, longest="ml/a"), None], 3, "1 for members, 2 for room or for their"),
        ([WaitingGroups(incomplete=1, longest="ml/a"), WaitingGroups(complete=2, longest="ml/a")], 2, "2 for room or"),
        (
            [WaitingGroups(complete=1, longest="ml/a")],
            1,
            "started: 1 for room or for its turn; for the longest",
        ),
    ],
)
def test_groups_that_wait_are_those_of_the_replica_that_sees_most(
    answers: list[WaitingGroups | None], count: int, said: str
) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    states: dict[str, ReplicaState | str] = {
        f"replica-{at}": ReplicaState(
            policies={"p": PolicyState(uid="u", generation="2", serving="2", reason="Compiled", waiting_groups=waiting)}
        )
        for at, waiting in enumerate(answers)
    }
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    about = StatusInputs(policy=policy, states=states, result=passed, paused=False)
    (warning,) = build_status(about, datetime(2026, 1, 1, tzinfo=UTC))["warnings"]
    assert (warning["reason"], warning["count"]) == ("GroupsWaiting", count)
    assert said in warning["message"]
    assert "ml/a: `fairlead groups`" in warning["message"]


def test_a_policy_that_is_too_slow_for_some_pods_is_ready_for_the_others_and_says_for_how_many_it_is_not() -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    few = "its failurePolicy replaces its filters for 1 class of pods of one namespace"
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled", slow_for=(few,))
    answers: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": served})}
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    made = build_status(
        StatusInputs(policy=policy, states=answers, result=passed, paused=False),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert {one["type"]: one["reason"] for one in made["conditions"]}["Ready"] == "Ready"
    (warning,) = made["warnings"]
    assert (warning["reason"], warning["count"]) == ("TooSlowForSome", 1)
    assert few in warning["message"]


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        (["Enforce"], "Ready"),
        (["Disabled"], "Disabled"),
        (["Disabled", "Enforce"], "ReplicaBehind"),
        ([""], "Ready"),  # an older replica
        (["Observe", "Disabled"], "ReplicaBehind"),  # a newer one
        ([], "Pending"),
    ],
)
def test_of_a_mode_that_a_newer_version_has_the_replicas_say_what_is_applied(modes: list[str], reason: str) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {"mode": "Observe"}}
    on_replicas: dict[str, ReplicaState | str] = {
        f"replica-{at}": ReplicaState(
            policies={"p": PolicyState(uid="u", generation="2", serving="2", reason="Compiled", mode=mode)}
        )
        for at, mode in enumerate(modes)
    }
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    about = StatusInputs(policy=policy, states=on_replicas, result=passed, paused=False)
    made = build_status(about, datetime(2026, 1, 1, tzinfo=UTC))
    assert {one["type"]: one["reason"] for one in made["conditions"]}["Ready"] == reason


@pytest.mark.parametrize("number", [0, 2, 5])
def test_learned_state_that_a_replica_cannot_read_is_a_condition_of_a_policy_that_is_ready(number: int) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}
    faults = tuple(f"ConfigMap {at}, what a rule has learned, cannot be read" for at in range(number))
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled", unreadable=faults)
    answers: dict[str, ReplicaState | str] = {name: ReplicaState(policies={"p": served}) for name in ("one", "two")}
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    about = StatusInputs(policy=policy, states=answers, result=passed, paused=False)
    found = {one["type"]: one for one in build_status(about, datetime(2026, 1, 1, tzinfo=UTC))["conditions"]}
    assert found["Ready"]["status"] == "True"
    assert ("LearnedStateUnreadable" in found) == bool(number)
    if number:
        condition = found["LearnedStateUnreadable"]
        assert (condition["status"], condition["reason"]) == ("True", "LearnedStateUnreadable")
        assert condition["message"] == "; ".join([*faults[:3], *(["and 2 more ConfigMaps"] if number > 3 else [])])


def test_pods_without_what_is_published_change_only_counters_and_are_told_of_a_policy_that_publishes() -> None:
    gaps = PublicationGaps(missed=2, missed_pods=("ml/a", "ml/b"))
    served = PolicyState(uid="u", generation="2", serving="2", reason="Compiled", gaps=gaps)
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])

    def made(publish: str, state: PolicyState) -> dict[str, Any]:
        policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {"publish": publish}}
        states: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": state})}
        about = StatusInputs(policy=policy, states=states, result=passed, paused=False)
        return build_status(about, datetime(2026, 1, 1, tzinfo=UTC))

    (warning,) = made("NodeAffinity", served)["warnings"]
    assert (warning["reason"], warning["count"]) == ("PublicationMissed", 2)
    assert made("None", served)["warnings"] == []
    before = made("NodeAffinity", PolicyState(uid="u", generation="2", serving="2", reason="Compiled"))
    assert status_change(before, made("NodeAffinity", served)) == "counters"


def test_what_rules_in_shadow_would_have_changed_is_counters_and_a_warning() -> None:
    rules = tuple(
        RuleState(kind="Filter", name=name, mode=mode) for name, mode in {"f": "Enforce", "g": "Shadow"}.items()
    )
    shadow = ShadowCounts(
        generation="2", pods=5, rules=(ShadowRuleCounts(kind="Filter", name="g", pods=2, unschedulable=1),)
    )
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])

    def made(*replicas: PolicyState, before: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": spec, "status": before or {}}
        states: dict[str, ReplicaState | str] = {
            f"pod-{at}": ReplicaState(process=f"process-{at}", policies={"p": state})
            for at, state in enumerate(replicas)
        }
        about = StatusInputs(policy=policy, states=states, result=passed, paused=False)
        return build_status(about, datetime(2026, 1, 1, tzinfo=UTC))

    def served(shadow: ShadowCounts | None, rules: tuple[RuleState, ...] = rules) -> PolicyState:
        return PolicyState(
            uid="u", generation="2", serving="2", reason="Compiled", mode="Enforce", rules=rules, shadow=shadow
        )

    spec: dict[str, Any] = {}
    spec["filters"] = [{"name": "f", "expression": "true"}, {"name": "g", "expression": "true", "mode": "Shadow"}]
    first = made(served(shadow), **spec)
    assert [one.get("mode") for one in first["rules"]] == [None, "Shadow"]
    assert (first["shadow"]["pods"], first["warnings"]) == (5, [])
    more = made(served(replace_unschedulable(shadow)), before=first, **spec)
    (warning,) = more["warnings"]
    assert (warning["reason"], warning["count"]) == ("ShadowUnschedulable", 1)
    assert status_change(first, more) == "counters"
    again = made(served(replace_unschedulable(shadow)), before=more, **spec)
    assert status_change(more, again) == ""
    assert status_change(made(served(None), **spec), first) == "all", "that it is counted now"
    over = made(served(None), before=more)
    assert "shadow" not in over
    assert status_change(more, over) == "all"
    older = tuple(RuleState(kind=one.kind, name=one.name) for one in rules)
    assert [one.get("mode") for one in made(served(shadow), served(None, older), **spec)["rules"]] == [None, None]


def replace_unschedulable(one: ShadowCounts) -> ShadowCounts:
    return structs.replace(one, unschedulable=1)


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        (["Shadow", "Shadow"], "Shadow"),
        (["Shadow", "Enforce"], "ReplicaBehind"),  # an older one takes the word for none, which changes nothing
        (["Shadow", ""], "ReplicaBehind"),  # one that is older still does not say what it does
    ],
)
def test_while_replicas_are_of_two_versions_a_policy_is_in_shadow_where_a_replica_says_so(
    modes: list[str], reason: str
) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {"mode": "Shadow"}}
    on_replicas: dict[str, ReplicaState | str] = {
        f"replica-{at}": ReplicaState(
            policies={"p": PolicyState(uid="u", generation="2", serving="2", reason="Compiled", mode=mode)}
        )
        for at, mode in enumerate(modes)
    }
    passed = ReconcileResult(decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=["0.1", "u/2"])
    about = StatusInputs(policy=policy, states=on_replicas, result=passed, paused=False)
    made = build_status(about, datetime(2026, 1, 1, tzinfo=UTC))
    assert {one["type"]: one["reason"] for one in made["conditions"]}["Ready"] == reason
