"""Policies that miss deadlines: who is named, and for whom they are switched."""

import json
from typing import Any

import pytest

from fairlead.groups.group import Group, Membership, UndecidedGroup
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate import matching
from fairlead.policy.evaluate.group_membership import membership_of
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender.call import FailurePolicy
from fairlead.webhook.extender.circuit_breaker import CLASSES, MISSES, PAUSE_NS, WINDOW_NS, CircuitBreaker
from support.policy import NOW, Clock, node, pod, policy
from support.webhook import Asking, Passing, at, body, names_of

NAMES = [f"n{number:03}" for number in range(200)]
MANY = [node(name, labels={"gpu": "x"} if name >= "n150" else {}) for name in NAMES]
GPU = {"gpu": "node.metadata.labels[?'gpu'].hasValue()"}
SLOW: dict[str, Any] = {"filters": {"f": "true"}, "scores": {"s": "1.0"}, "protect": {"p": "true"}}


def test_pace() -> None:
    pace, one, asked = CircuitBreaker(), policy("p"), pod()
    assert not pace.record_timeout(one, "filters", asked, 0)
    assert not pace.record_timeout(one, "filters", asked, WINDOW_NS), "a minute later it starts afresh"
    assert not pace.record_timeout(one, "scores", asked, WINDOW_NS + 1), "the other parts have their own count"
    assert not pace.record_timeout(one, "annotations", asked, WINDOW_NS + 1)
    assert pace.record_timeout(one, "filters", asked, 2 * WINDOW_NS - 1)
    start = 2 * WINDOW_NS - 1
    assert pace.is_open(one, "filters", asked, start)
    assert pace.is_open(one, "filters", asked, start + PAUSE_NS - 1)
    assert not pace.is_open(one, "filters", asked, start + PAUSE_NS)
    assert not pace.is_open(one, "scores", asked, start)
    for another in (policy("q"), policy("p", generation=2), policy("p", uid="u-other")):
        assert not pace.is_open(another, "filters", asked, start)
    assert not pace.record_timeout(one, "filters", asked, start + PAUSE_NS), "and then it has two again"


TEAM: dict[str, Any] = {"filters": {"f": "pod.metadata.labels['team'] != '' && request['cpu'] >= 0.0"}}


def of(team: str, namespace: str = "ml", name: str = "x") -> PodView:
    return pod(name, namespace=namespace, labels={"team": team})


def switched(pace: CircuitBreaker, one: CompiledPolicy, *pods: PodView) -> list[str | None]:
    """For whom, once each of them has missed twice."""
    return [[pace.record_timeout(one, "filters", each, 0) for _ in range(2)][1] for each in pods]


def test_a_policy_is_switched_for_the_pods_that_made_it_miss_and_for_nobody_else() -> None:
    pace, one = CircuitBreaker(), policy("p", **TEAM)
    assert switched(pace, one, of("a")) == ["class"]
    assert pace.is_open(one, "filters", of("a", name="another"), 0), "pods that agree on what is read are one class"
    for other in (of("b"), of("a", "web"), of("b", "web")):
        assert not pace.is_open(one, "filters", other, 0)
    assert [str(each) for each in pace.open_circuits(0)] == [
        "its failurePolicy replaces its filters for 1 class of pods of one namespace"
    ]


def test_pods_of_other_groups_are_other_classes() -> None:
    entry = {"name": "g", "group": "pod.metadata.labels[?'team'].orValue('')", "size": "pod.spec.priority + 2"}
    pace, one = CircuitBreaker(), policy("p", binding={"gang": [entry]})
    assert switched(pace, one, of("a")) == ["class"]
    assert pace.is_open(one, "filters", of("a", name="another"), 0)
    for other in (of("b"), pod(labels={"team": "a"}, priority=3)):
        assert not pace.is_open(one, "filters", other, 0)


def test_one_namespace_never_switches_a_policy_for_another_however_many_classes_it_makes() -> None:
    pace, one = CircuitBreaker(), policy("p", **TEAM)
    pods = [of(f"t{at}") for at in range(10)]
    assert switched(pace, one, *pods) == ["class"] * (CLASSES - 1) + ["namespace"] * (10 - CLASSES + 1)
    assert pace.is_open(one, "filters", of("one that never missed"), 0)
    assert not pace.is_open(one, "filters", of("t0", "web"), 0)
    assert [each.pods for each in pace.open_circuits(0)] == ["the pods of one namespace"]


def test_classes_of_two_namespaces_switch_it_for_everybody() -> None:
    pace, one = CircuitBreaker(), policy("p", **TEAM)
    assert switched(pace, one, of("a"), of("b", "web")) == ["class", "all"]
    assert pace.is_open(one, "filters", of("c", "third"), PAUSE_NS - 1)
    assert not pace.is_open(one, "filters", of("a"), PAUSE_NS)
    assert [each.pods for each in pace.open_circuits(0)] == ["all pods"]


def test_once_is_not_enough_in_however_many_namespaces() -> None:
    pace, one = CircuitBreaker(), policy("p", **TEAM)
    assert [pace.record_timeout(one, "filters", of("a", f"n{at}"), 0) for at in range(20)] == [None] * 20
    assert not pace.open_circuits(0)


def test_pods_that_are_like_no_other_are_one_class_for_each_namespace() -> None:
    pace, one = CircuitBreaker(), policy("p", filters={"f": "pod.metadata.name != ''"})
    assert switched(pace, one, of("a", name="x")) == ["namespace"]
    assert pace.is_open(one, "filters", of("a", name="y"), 0)
    assert not pace.is_open(one, "filters", of("a", "web", name="x"), 0)


def test_what_is_remembered_of_pods_is_bounded_and_has_no_value_of_theirs() -> None:
    pace, one = CircuitBreaker(), policy("p", **TEAM)
    for number in range(3 * MISSES):
        pace.record_timeout(one, "filters", of(f"{number}" + "x" * 5_000), 0)
    assert len(pace._missed) == MISSES
    switched(pace, one, *(of(f"{at}" + "y" * 5_000) for at in range(50)))
    assert len(repr(pace._missed)) + len(repr(pace._circuits)) < 200 * MISSES


@pytest.mark.parametrize(("failure_policy", "entry"), [("Fail", "Fail"), ("Ignore", "Ignore")])
def test_a_pod_of_one_tenant_neither_opens_nor_closes_a_policy_for_others(
    failure_policy: str, entry: FailurePolicy
) -> None:
    asking = Asking([policy(filters=GPU, failurePolicy=failure_policy)], MANY)
    time = Passing()
    for _ in range(2):
        time.ask(asking, "filter", NAMES, entry, slow=True)
    assert [each.scope for each in asking.pace.open_circuits(time.time)] == ["class"]
    mine, others = (
        time.ask(asking, "filter", NAMES, entry, slow=False, pod={"namespace": one}) for one in ("ml", "web")
    )
    assert names_of(mine) == ([] if entry == "Fail" else NAMES)
    assert names_of(others) == NAMES[150:]


@pytest.mark.parametrize(("verb", "status"), [("filter", 200), ("prioritize", 503), ("preempt", 503)])
@pytest.mark.parametrize("holds", ["true", "false", "pod.metadata.labels['none'] == ''"])
def test_a_policy_whose_conditions_take_too_long_is_named_and_switched_and_they_are_not_asked_again(
    verb: str, status: int, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    innocent = policy("a", **SLOW)
    slow = policy("p", match={"conditions": {"c": holds, "d": "true"}}, **SLOW)
    asking, time = Asking([innocent, slow], MANY), Passing()
    for switched in (None, "class"):
        answer = time.ask(asking, verb, NAMES, slow=True)
        assert (answer.status, json.loads(answer.body)["Error"]) == (status, "policy p is too slow")
        assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", switched)
    monkeypatch.setattr(matching, "_holds", lambda *_: pytest.fail("its conditions are taken as true"))
    answer = time.ask(asking, verb, NAMES, slow=False)
    assert answer.status == 200
    if verb == "filter":
        assert names_of(answer) == [], "its failure policy decides"


def test_what_conditions_took_counts_also_where_the_filters_of_another_come_too_late() -> None:
    """And where they said that the policy is not for the pod."""

    class Late(Clock):
        def __call__(self) -> int:
            self.looks += 1
            self.time += {3: 100, 5: 1}.get(self.looks, 0)
            return self.time

    slow = policy("p", priority=1, match={"conditions": {"c": "false"}}, **SLOW)
    asking = Asking([policy("a", **SLOW), slow], MANY)
    answer = asking.filter(body(NAMES), when=at(clock=Late(), deadline_ns=100))
    assert answer.outcome.too_slow == "p"


GANG: dict[str, Any] = {
    "name": "job",
    "group": "pod.metadata.labels[?'team'].orValue('')",
    "size": "4",
}


def test_a_policy_with_nothing_but_a_gang_is_served_where_pods_must_wait() -> None:
    asking = Asking([policy(binding={"gang": [GANG]}, scores={"s": "1.0"})], MANY)
    serving = asking.serving
    assert [[one.name for one in each.policies.policies] for each in serving.entries.values()] == [["p"], []]
    assert [one.gangs for one in serving.scores.policies.policies] == [()]
    only = Asking([policy(binding={"gang": [GANG]})], MANY).serving
    assert [one.name for one in only.entries["Fail"].policies.policies] == ["p"]


def test_a_policy_with_a_gang_that_is_too_slow_refuses_its_pods() -> None:
    """At filter its failure policy does; at bind it is in doubt which group its pods are in."""
    slow = policy("p", match={"conditions": {"c": "true"}}, binding={"gang": [GANG]})
    asking, time, team = Asking([slow], MANY), Passing(), {"labels": {"team": "a"}}
    assert names_of(time.ask(asking, "filter", NAMES, slow=False, pod=team)) == NAMES
    for switched in (None, "class"):
        assert time.ask(asking, "filter", NAMES, slow=True, pod=team).outcome.switched == switched
    reply = time.ask(asking, "filter", NAMES, slow=False, pod=team)
    assert {*json.loads(reply.body)["FailedAndUnresolvableNodes"].values()} == {"policy p is too slow"}
    assert names_of(time.ask(asking, "filter", NAMES, slow=False, pod={"labels": {"team": "b"}})) == NAMES

    for _ in range(2):
        asking.pace.record_timeout(slow, "annotations", of("a"), time.time)
    opened = asking.pace.open_for("annotations", time.time)
    evaluator = asking.serving.entries["Fail"]
    found = {
        team: membership_of(of(team), evaluator.matching(of(team), "fairlead", NOW, switched=opened))
        for team in ("a", "b")
    }
    assert found == {
        "a": UndecidedGroup("p", "job", "policy p is too slow"),
        "b": Membership(Group("fairlead", "ml", "b"), 4, 30, "p", "job"),
    }
