"""Warnings about conditions, selectors and protections that compile."""

from typing import Any

import pytest

from support.policy.compile_warnings import GOOD_FILTER, reasons_of, warnings_of, warnings_of_filter


def test_conditions_that_ask_for_a_resource_make_its_request_certain() -> None:
    rule = {"name": "it", "expression": "request['nvidia.com/gpu'] < 2.0"}
    asks = "pod.spec.containers.exists(c, 'nvidia.com/gpu' in c.resources.requests)"
    assert warnings_of(match={"conditions": [{"name": "a", "expression": asks}]}, filters=[rule]) == []
    assert reasons_of(warnings_of(filters=[rule])) == ["AbsentRaises"]


CONDITIONS: dict[str, tuple[str, list[str]]] = {
    "never": ("pod.spec.priority > 3 && pod.spec.priority < 2", ["NeverPasses"]),
    "always": ("pod.spec.priority > 3 || pod.spec.priority <= 3", ["AlwaysPasses"]),
    "identity": ("pod.metadata.name.startsWith('a')", ["PodIdentity"]),
    "a label that a pod may lack": ("pod.metadata.labels['team'] == 'x'", ["AbsentRaises"]),
    "an annotation that a pod may lack": ("pod.metadata.annotations.team != 'x'", ["AbsentRaises"]),
    "a label that a namespace may lack": ("namespaceObject.metadata.labels['team'] == 'x'", ["AbsentRaises"]),
    "a label that only urgent pods are asked for": (
        "pod.spec.priority > 3 && pod.metadata.labels['team'].startsWith('x')",
        ["AbsentRaises"],
    ),
    "one label asked for, and another read": (
        "'team' in pod.metadata.labels && pod.metadata.labels['tier'] == 'x'",
        ["AbsentRaises"],
    ),
    "a limit that a container may lack": (
        "pod.spec.containers.exists(c, c.resources.limits['gpu'] != '0')",
        ["AbsentRaises"],
    ),
    "containers counted that may lack a limit": (
        "pod.spec.containers.filter(c, c.resources.limits['gpu'] != '0').size() > 0",
        ["AbsentRaises"],
    ),
    "a quantity as a text": (
        "pod.spec.containers.exists(c, c.resources.limits[?'cpu'].orValue('0') > '1')",
        ["ComparedAsText"],
    ),
    "a label with a default": ("pod.metadata.labels[?'team'].orValue('') == 'x'", []),
    "a label that is asked for": ("'team' in pod.metadata.labels && pod.metadata.labels['team'] == 'x'", []),
    "a label, the other way round": ("pod.metadata.labels['team'] == 'x' && has(pod.metadata.labels.team)", []),
    "labels that are looked through": (
        "pod.metadata.labels.exists(k, k == 'team') && pod.metadata.labels['team'] == 'x'",
        [],
    ),
    "the label that every namespace has": ("namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'a'", []),
    "a limit that is asked for": ("pod.spec.containers.exists(c, 'gpu' in c.resources.limits)", []),
    "nothing": ("pod.spec.priority > 3", []),
}


@pytest.mark.parametrize(("expression", "want"), CONDITIONS.values(), ids=CONDITIONS)
def test_of_a_condition_it_is_said(expression: str, want: list[str]) -> None:
    match = {"conditions": [{"name": "it", "expression": expression}]}
    assert reasons_of(warnings_of(match=match, filters=[GOOD_FILTER])) == want


def test_a_label_that_is_surely_there_may_be_read() -> None:
    reads = {"name": "it", "expression": "pod.metadata.labels['team'] != 'x' || node.spec.unschedulable"}
    assert reasons_of(warnings_of(filters=[reads])) == ["AbsentRaises"]
    for match in (
        {"podSelector": {"matchLabels": {"team": "y"}}},
        {"podSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
        {"podSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["y", "z"]}]}},
        {"conditions": [{"name": "a", "expression": "'team' in pod.metadata.labels"}]},
        {"conditions": [{"name": "a", "expression": "pod.metadata.labels[?'team'].orValue('x') != 'x'"}]},
    ):
        assert warnings_of(match=match, filters=[reads]) == []
    both = [
        {"name": "a", "expression": "pod.metadata.labels['team'] != 'x'"},
        {"name": "b", "expression": "'team' in pod.metadata.labels"},
    ]
    assert warnings_of(match={"conditions": both}, filters=[GOOD_FILTER]) == []


def test_what_a_condition_that_raises_does_depends_on_the_rules() -> None:
    match = {"conditions": [{"name": "it", "expression": "pod.metadata.labels['team'] == 'x'"}]}
    [of_filters] = warnings_of(
        match=match, filters=[GOOD_FILTER], scores=[{"name": "b", "expression": "allocatable['cpu']"}]
    )
    assert of_filters.message == (
        "this raises an error for a pod without the label 'team', and the policy's filters then reject it on every node"
    )
    assert of_filters.hint == (
        "write `pod.metadata.labels[?'team'].orValue('')`, or check `'team' in pod.metadata.labels` first"
    )
    [of_protections] = warnings_of(match=match, preemption={"protect": [{"name": "a", "expression": "true"}]})
    assert of_protections.message.endswith("and the policy's protections then hold for every victim")
    assert warnings_of(match=match, scores=[{"name": "b", "expression": "allocatable['cpu']"}]) == []


def test_a_filter_that_passes_what_it_cannot_decide_on_may_read_what_is_absent() -> None:
    assert reasons_of(warnings_of_filter("node.metadata.annotations['env'] != 'prod'")) == ["AbsentRaises"]
    assert warnings_of_filter("node.metadata.annotations['env'] != 'prod'", onError="Pass") == []


def test_what_is_absent_is_named_with_its_cure() -> None:
    for expression, want in {
        "pod.spec.containers.exists(c, c.resources.limits['gpu'] != '0')": (
            (
                "this raises an error where c.resources.limits has no 'gpu', and the policy's filters then reject it "
                "on every node"
            ),
            "write `c.resources.limits[?'gpu'].orValue('0')`, or check `'gpu' in c.resources.limits` first",
        ),
        "pod.metadata.ownerReferences[0].kind == 'Job'": (
            (
                "this raises an error where pod.metadata.ownerReferences is empty, and the policy's filters then "
                "reject it on every node"
            ),
            "check `pod.metadata.ownerReferences.size() > 0` first, or use `pod.metadata.ownerReferences.exists(...)`",
        ),
        "'x' == namespaceObject.metadata.annotations['a']": (
            (
                "this raises an error for a namespace without the annotation 'a', and the policy's filters then "
                "reject it on every node"
            ),
            (
                "write `namespaceObject.metadata.annotations[?'a'].orValue('')`, or check `'a' in "
                "namespaceObject.metadata.annotations` first"
            ),
        ),
    }.items():
        [warning] = warnings_of(match={"conditions": [{"name": "it", "expression": expression}]}, filters=[GOOD_FILTER])
        assert (warning.message, warning.hint) == want


@pytest.mark.parametrize(
    ("expression", "default"),
    [
        ("int(pod.metadata.annotations['n']) != 3", "'0'"),
        ("!(quantity(pod.metadata.annotations['n']).isGreaterThan(quantity('1Gi')))", "'0'"),
        ("duration(pod.metadata.annotations['n']) != duration('8h')", "'0s'"),
        ("pod.metadata.annotations['n'] != 'a'", "''"),
        ("pod.spec.containers.exists(c, c.resources.limits['n'] != '') && node.spec.unschedulable", "''"),
    ],
)
def test_the_default_of_what_is_absent_can_be_converted(expression: str, default: str) -> None:
    [warning] = warnings_of_filter(expression)
    assert f".orValue({default})`" in (warning.hint or "")
    followed = expression.replace("['n']", f"[?'n'].orValue({default})")
    assert warnings_of_filter(followed) == []


PROTECTIONS: dict[str, tuple[str, list[str]]] = {
    "always": ("true", []),
    "never": ("victim.spec.priority > 2 && victim.spec.priority < 1", ["NeverPasses"]),
    "a label that a victim may lack": ("victim.metadata.labels['keep'] == 'true'", ["AbsentRaises"]),
    "a label with a default": ("victim.metadata.labels[?'keep'].orValue('') == 'true'", []),
    "all but those with a value": ("victim.metadata.labels['cheap'] != 'true'", []),
    "the pod's label, where the victim is meant": ("pod.metadata.labels['keep'] == 'true'", ["HasNoEffect"]),
    "the pod, where the victim is meant": ("'keep' in pod.metadata.annotations", ["HasNoEffect"]),
    "the node, where the victim is meant": ("node.metadata.labels[?'keep'].orValue('') == 'true'", ["HasNoEffect"]),
    "the pod and the victim": ("victim.spec.priority >= pod.spec.priority - 10", []),
    "a part of the day": ("now.getHours() >= 22", []),
}


@pytest.mark.parametrize(("expression", "want"), PROTECTIONS.values(), ids=PROTECTIONS)
def test_of_a_protection_it_is_said(expression: str, want: list[str]) -> None:
    assert reasons_of(warnings_of(preemption={"protect": [{"name": "a", "expression": expression}]})) == want


_IN_A = {"key": "a", "operator": "In", "values": ["x"]}
MATCHES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "two values of one label": (
        {"podSelector": {"matchLabels": {"a": "x"}, "matchExpressions": [{**_IN_A, "values": ["y"]}]}},
        ["MatchesNothing"],
    ),
    "a value that is ruled out": (
        {"podSelector": {"matchExpressions": [_IN_A, {**_IN_A, "operator": "NotIn"}]}},
        ["MatchesNothing"],
    ),
    "there and not there": (
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]
            }
        },
        ["MatchesNothing"],
    ),
    "another namespace by its label": (
        {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}},
        ["MatchesNothing"],
    ),
    "the same namespace by its label": (
        {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}},
        [],
    ),
    "there, and not a value": (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}, {**_IN_A, "operator": "NotIn"}]}},
        [],
    ),
    "two labels": ({"podSelector": {"matchLabels": {"a": "x", "b": "y"}}}, []),
    "all": ({"podSelector": {}}, []),
}


@pytest.mark.parametrize(("match", "want"), MATCHES.values(), ids=MATCHES)
def test_of_what_is_matched_it_is_said(match: dict[str, Any], want: list[str]) -> None:
    assert reasons_of(warnings_of(match=match, filters=[GOOD_FILTER])) == want
