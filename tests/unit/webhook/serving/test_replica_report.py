"""What a replica says of itself, from what its parts know."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.policy.columns.rule_errors import RuleFailures
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import divided, in_mode
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.evaluate.matching import policy_set
from fairlead.replica_state import PolicyState, ReplicaState, RuleState, decode, encode
from fairlead.webhook.extender.circuit_breaker import OpenCircuit, PolicyGeneration
from fairlead.webhook.serving.policy_status import PolicyStatus
from fairlead.webhook.serving.replica_report import ReportInputs, report
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals
from policies.good import device_share
from support.policy import obj, policy

FILTER = {"f": "node.metadata.name == 'a'"}
IN_SHADOW = {"f": {"expression": "true", "mode": "Shadow"}}
WIRED = ("fails", "ignores", "scores", "binds", "asks_all")
RACKS = {"filters": [{"name": "r", "topology": {"levels": ["rack"], "require": "rack"}}]}
GANG = {"binding": {"gang": [{"name": "g", "group": "pod.metadata.name", "size": "2", "holdFor": "45s"}]}}


def known(*policies: CompiledPolicy, states: dict[str, PolicyStatus] | None = None, **more: Any) -> ReportInputs:
    compiled = {
        one.name: PolicyStatus(one.name, one.generation, one.generation, "Compiled", uid=one.uid) for one in policies
    }
    undecided = more.pop("undecided", None) or RuleErrorTotals(lambda *_: None)
    return ReportInputs(states=states or compiled, serving=policy_set(policies), rule_errors=undecided, **more)


@pytest.mark.parametrize(
    ("spec", "wired"),
    [
        ({"filters": FILTER}, {"fails"}),
        ({"filters": FILTER, "failurePolicy": "Ignore"}, {"ignores"}),
        ({"protect": {"p": "true"}, "failurePolicy": "Ignore"}, {"ignores"}),
        ({"scores": {"s": "1.0"}, "failurePolicy": "Ignore"}, {"scores"}),
        ({"scores": {"s": "1.0"}}, {"fails", "scores"}),
        ({"annotations": {"fairlead.dev/a": "'x'"}}, {"fails", "binds"}),
        (GANG, {"fails", "binds"}),
        (RACKS, {"fails", "binds", "asks_all"}),
        (RACKS | {"mode": "Disabled"}, set()),
        (GANG | {"mode": "Disabled"}, set()),
        ({"filters": FILTER, "scores": {"s": "1.0"}, "mode": "Disabled"}, set()),
        ({}, {"fails"}),
        ({"match": {"conditions": {"c": "true"}}}, {"fails"}),
        ({"filters": IN_SHADOW, "scores": {"s": {"expression": "1.0", "mode": "Shadow"}}}, set()),
        ({"annotations": {"fairlead.dev/a": {"expression": "'x'", "mode": "Shadow"}}}, set()),
        ({"filters": IN_SHADOW, "failurePolicy": "Ignore"}, set()),
        ({"filters": IN_SHADOW, "scores": {"s": "1.0"}}, {"fails", "scores"}),
        ({"filters": IN_SHADOW} | GANG, {"fails", "binds"}),
    ],
)
def test_what_of_the_wiring_it_needs(spec: dict[str, Any], wired: set[str]) -> None:
    said = report(known(policy(schedulerName="batch", **spec))).policies["p"]
    assert said.scheduler == "batch"
    assert {name for name in WIRED if getattr(said, name)} == wired
    assert said.hold_s == (45 if "binding" in spec and wired else 0)


def test_what_each_rule_reads_and_what_was_wrong_with_it() -> None:
    undecided = RuleErrorTotals(lambda *_: None)
    undecided.add([RuleFailures("p", "f", 3, "no such key")], {"p": "1"}, "2026-11-21T12:00:00Z")
    said = report(known(policy(filters=FILTER, scores={"s": "now == now ? 1.0 : 2.0"}), undecided=undecided))
    assert said.policies["p"].rules == (
        RuleState(
            kind="Filter",
            name="f",
            mode="Enforce",
            uses=("node.metadata.name",),
            evaluation="ByteCode",
            errors=3,
            last_error="no such key",
            last_error_at="2026-11-21T12:00:00Z",
        ),
        RuleState(kind="Score", name="s", mode="Enforce", uses=("now",), evaluation="ByteCode"),
    )


def test_one_that_does_not_compile() -> None:
    stands = placeholder_policy(obj("p", generation=2, filters={"f": "nonsense"}))
    state = PolicyStatus("p", "2", None, "NothingServes", "spec: wrong", "u-p")
    said = report(known(stands, states={"p": state})).policies["p"]
    assert said == PolicyState(
        uid="u-p",
        generation="2",
        reason="NothingServes",
        message="spec: wrong",
        scheduler="fairlead",
        mode="Enforce",
        fails=True,
    )


def test_one_that_does_not_compile_and_has_nothing_but_rules_in_shadow() -> None:
    stands = placeholder_policy(obj("p", filters={"f": {"expression": "nonsense", "mode": "Shadow"}}))
    said = report(known(stands)).policies["p"]
    assert {name for name in WIRED if getattr(said, name)} == set()


def test_one_whose_last_good_generation_serves() -> None:
    state = PolicyStatus("p", "2", "1", "LastGoodServes", "spec: wrong", "u-p")
    said = report(known(policy(filters=FILTER), states={"p": state})).policies["p"]
    assert (said.generation, said.serving, said.reason) == ("2", "1", "LastGoodServes")


@pytest.mark.parametrize("serving", [(), (policy(uid="another", filters=FILTER),)])
def test_one_that_is_about_to_serve(serving: tuple[CompiledPolicy, ...]) -> None:
    state = PolicyStatus("p", "1", "1", "Compiled", uid="u-p")
    said = report(known(*serving, states={"p": state})).policies["p"]
    assert said == PolicyState(uid="u-p", generation="1", reason="Compiled")


def test_before_there_is_a_set_nothing_serves() -> None:
    said = report(replace(known(policy(filters=FILTER)), serving=None))
    assert (said.policy_set, said.policies["p"].serving) == ("", "")


def test_both_sides_of_a_conflict_are_told() -> None:
    key = "fairlead.dev/a"
    policies = [policy(name, annotations={key: "'x'"}) for name in ("p", "q")]
    said = report(known(*policies, conflicts={Conflict(key, "p", "q"): 7})).policies
    assert said["p"].conflicts == (
        f"{key} is also written by q, which comes later; its value is left out (7 pods so far)",
    )
    assert said["q"].conflicts == (
        f"{key} is also written by p, which comes first; this policy's value is left out (7 pods so far)",
    )


def test_both_sides_of_a_conflict_over_devices_are_told() -> None:
    one, other = (
        policy(name, schedulerName=name, binding={"deviceShare": [device_share(layout={"count": f"{name}.io/count"})]})
        for name in ("p", "q")
    )
    said = report(known(one, other)).policies
    text = "gives aliyun.com/gpu-mem another layout of devices; both grant from the same devices"
    assert [[text in each for each in said[name].conflicts] for name in ("p", "q")] == [[True], [True]]
    assert (said["p"].conflicts[0][0], said["q"].conflicts[0][0], said["p"].binds) == ("q", "p", True)


def test_both_sides_of_a_conflict_over_groups_are_told() -> None:
    entry = {"name": "g", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "4"}
    said = report(known(*(policy(name, binding={"gang": [entry]}) for name in ("p", "q")))).policies
    assert said["p"].conflicts == ("q may give the same pods a group, and comes later: its gang counts for the others",)
    assert said["q"].conflicts == (
        "p may give the same pods a group, and comes first: this policy's gang counts for the others",
    )
    apart = [policy(name, match={"namespaces": [name]}, binding={"gang": [entry]}) for name in ("p", "q")]
    assert {one.conflicts for one in report(known(*apart)).policies.values()} == {()}


def test_what_counts_and_what_is_said_of_the_replica() -> None:
    given = known(
        policy(filters=FILTER),
        policy("q", filters=FILTER),
        open_circuits=[
            OpenCircuit(PolicyGeneration("p", "u-p", "1"), "filters", "all"),
            OpenCircuit(PolicyGeneration("q", "u-q", "0"), "scores", "all"),
            OpenCircuit(PolicyGeneration("q", "u-q", "1"), "scores", "class", 2),
        ],
        refused={"p": 4},
        missed={"q": 2},
        refused_connections={"10.0.0.1": "expired"},
        authorities="aa",
        issuer="bb",
        process="cc",
        has_rejected_pods=True,
        schedulable_again=True,
    )
    said = report(given)
    one, other = said.policies["p"], said.policies["q"]
    assert (one.slow, one.rejected_pods, one.missed_samples) == (True, 4, 0)
    assert (other.slow, other.rejected_pods, other.missed_samples) == (False, 0, 2)
    assert (one.slow_for, other.slow_for) == ((), ("its scores are left out for 2 classes of pods of one namespace",))
    assert given.serving is not None
    assert replace_policies(said) == ReplicaState(
        policy_set=given.serving.generation,
        authorities="aa",
        issuer="bb",
        process="cc",
        refused_connections={"10.0.0.1": "expired"},
        has_rejected_pods=True,
        schedulable_again=True,
    )
    assert decode(encode(said)) == said


def replace_policies(said: ReplicaState) -> ReplicaState:
    return ReplicaState(**{name: getattr(said, name) for name in said.__struct_fields__} | {"policies": {}})


def test_rules_in_shadow_say_so_and_need_no_wiring() -> None:
    one = policy(filters=FILTER, scores={"s": "now == now ? 1.0 : 2.0"})
    whole = report(known(in_mode(one, "Shadow"))).policies["p"]
    assert [rule.mode for rule in whole.rules] == ["Shadow", "Shadow"]
    assert (whole.mode, whole.fails, whole.scores, whole.binds) == ("Shadow", False, False, False)
    score = replace(one, scores=tuple([replace(rule, in_shadow=True) for rule in one.scores]))
    part = report(known(divided(score))).policies["p"]
    assert [rule.mode for rule in part.rules] == ["Enforce", "Shadow"]
    assert (part.mode, part.fails, part.scores) == ("Enforce", True, False)
