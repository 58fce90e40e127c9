"""Warnings about groups: what no pod can have, what raises, and what two policies say of one pod."""

from typing import Any

import pytest

from fairlead.policy.lint.policy_set_checks import PolicyConflict, conflicts_with, policy_set_conflicts
from policies.good import gang
from support.policy import policy
from support.policy.compile_warnings import warnings_of

ABSENT = "pod.metadata.labels['job']"


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        ({}, []),
        ({"size": "500"}, []),
        ({"size": "int(pod.metadata.annotations[?'n'].orValue('1'))"}, []),
        (
            {"size": "pod.spec.priority > 5 ? 501 : (pod.spec.priority > 1 ? 4 : 0)"},
            [
                (
                    "NeverPasses",
                    "size",
                    "a group has 1 to 500 members, so with 0 and 501 the pod is rejected on every node",
                )
            ],
        ),
        ({"size": "1"}, [("HasNoEffect", "size", "a pod whose group has one member waits for no other")]),
        ({"size": "pod.spec.priority > 5 ? 1 : 4"}, []),
        (
            {"group": "'%s'.format([pod.metadata.name])"},
            [("RunsOnEngine", "group", "")],
        ),
        ({"size": "size('%s'.format([pod.metadata.name]))"}, [("RunsOnEngine", "size", "")]),
        (
            {"group": ABSENT},
            [("AbsentRaises", "group", "for a pod without the label 'job', and it is then rejected on every node")],
        ),
        (
            {"size": "int(pod.metadata.annotations['n'])"},
            [
                (
                    "AbsentRaises",
                    "size",
                    "without the annotation 'n', and a pod with a group is then rejected on every node",
                )
            ],
        ),
        ({"group": f"'job' in pod.metadata.labels ? {ABSENT} : ''"}, []),
        (
            {"size": "pod.metadata.labels['n'] > '10' ? 4 : 2"},
            [("ComparedAsText", "size", ""), ("AbsentRaises", "size", "")],
        ),
    ],
)
def test_warnings_about_an_entry(entry: dict[str, Any], want: list[tuple[str, str, str]]) -> None:
    found = warnings_of(binding={"gang": [gang(name="first"), gang(**entry)]})
    assert [(one.reason.value, one.path) for one in found] == [
        (reason, ("spec", "binding", "gang", 1, field)) for reason, field, _ in want
    ]
    assert all(text in one.message for one, (*_, text) in zip(found, want, strict=True))


def test_a_label_that_the_match_requires_is_there() -> None:
    match = {"podSelector": {"matchLabels": {"job": "a"}}}
    assert warnings_of(match=match, binding={"gang": [gang(group=ABSENT)]}) == []


def test_a_variable_that_only_a_gang_uses_is_used_and_looked_at() -> None:
    variables = [{"name": "n", "expression": "pod.metadata.labels[?'n'].orValue('') > '10' ? 4 : 2"}]
    found = warnings_of(variables=variables, binding={"gang": [gang(size="variables.n")]})
    assert [(one.reason.value, one.path) for one in found] == [
        ("ComparedAsText", ("spec", "variables", 0, "expression"))
    ]


def test_a_policy_with_nothing_but_a_gang_has_an_effect() -> None:
    assert warnings_of(binding={"gang": [gang()]}) == []
    assert [one.reason.value for one in warnings_of(binding={"gang": []})] == ["HasNoEffect"]


def gangs(name: str, *entries: dict[str, Any], **spec: Any) -> Any:
    return policy(name, binding={"gang": [*(entries or (gang(name=f"of-{name}"),))]}, **spec)


def shown(one: PolicyConflict) -> tuple[str, str, str, tuple[object, ...]]:
    return one.winner.name, one.loser.name, one.rule, one.path


LOST = ("a", "b", "of-b", ("spec", "binding", "gang", 0))
ML, TIER = {"namespaces": ["ml"]}, {"podSelector": {"matchLabels": {"tier": "x"}}}


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [
        ({}, {}, True),
        ({"match": ML}, {"match": TIER}, True),
        # Pods on nodes are in groups whatever the conditions say, so these keep nothing apart.
        ({"match": {"conditions": {"c": "pod.spec.priority > 1"}}}, {"match": {"conditions": {"c": "false"}}}, True),
        ({"match": ML}, {"match": {"namespaces": ["web"]}}, False),
        ({"match": TIER}, {"match": {"podSelector": {"matchLabels": {"tier": "y"}}}}, False),
        (
            {"match": TIER},
            {"match": {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}},
            False,
        ),
        ({}, {"schedulerName": "other"}, False),
        ({}, {"mode": "Disabled"}, False),
    ],
)
def test_two_policies_that_may_give_one_pod_a_group(first: dict[str, Any], second: dict[str, Any], lost: bool) -> None:
    one, other = gangs("a", **first), gangs("b", **second)
    for found in (policy_set_conflicts([other, one]), conflicts_with(one, [other]), conflicts_with(other, [one])):
        assert [shown(each) for each in found if each] == [LOST] * lost


def test_a_policy_loses_its_groups_once_and_its_annotations_besides() -> None:
    written = {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"}], "gang": [gang(), gang(name="two")]}
    three = [policy(name, binding=written) for name in ("a", "b", "c")]
    found = [shown(one)[:3] for one in policy_set_conflicts(three)]
    assert found == [
        ("a", "b", "whole-job"),
        ("a", "b", "fairlead.dev/a"),
        ("a", "c", "whole-job"),
        ("a", "c", "fairlead.dev/a"),
    ]


def test_what_it_says_and_who_is_first() -> None:
    (by_name,) = policy_set_conflicts([gangs("a"), gangs("b")])
    assert by_name.message == "may give the same pods a group before it: its name comes first"
    assert by_name.hint == "keep their pods apart by namespaces or labels, or put the gangs together"
    (by_priority,) = policy_set_conflicts([gangs("a"), gangs("b", priority=1)])
    assert (by_priority.winner.name, by_priority.message[-22:]) == ("b", "its priority is higher")


def test_a_policy_without_gangs_says_nothing_of_groups() -> None:
    plain = policy("plain", annotations={"fairlead.dev/a": "'x'"})
    assert [*policy_set_conflicts([plain, gangs("b")])] == []
