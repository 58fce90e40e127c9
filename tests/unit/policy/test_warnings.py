"""What is said of a policy that compiles, and of which policies nothing is said."""

from typing import Any

import pytest
from write_crds import installed_policy

from fairlead.api.parse import parse_policy
from fairlead.policy.compile import Rules, compile_policy
from fairlead.policy.warnings import PolicyWarning, Reason, warnings
from fairlead.strategies.registry import installed

_MODEL = installed_policy()
_RULES = Rules({strategy.name: strategy for strategy in installed()})
_GOOD = {"name": "good", "expression": "node.spec.unschedulable == false"}
_L = "node.metadata.labels"


def said_of(**spec: Any) -> list[PolicyWarning]:
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "some"},
        "spec": spec,
    }
    parsed = parse_policy(policy, _MODEL)
    return warnings(compile_policy(parsed, _RULES), parsed)


def of_filter(expression: str, **more: Any) -> list[PolicyWarning]:
    return said_of(filters=[{"name": "it", "expression": expression, **more}])


def of_score(expression: str, **more: Any) -> list[PolicyWarning]:
    return said_of(scores=[{"name": "it", "expression": expression, **more}])


def reasons(found: list[PolicyWarning]) -> list[str]:
    return [str(warning.reason) for warning in found]


FILTERS: dict[str, tuple[str, list[str]]] = {
    "it is false": ("false", ["NeverPasses"]),
    "it is true": ("true", ["AlwaysPasses"]),
    "it comes to false": ("1 + 1 == 3", ["NeverPasses"]),
    "it comes to true": ("['a', 'b'].exists(x, x == 'a')", ["AlwaysPasses"]),
    "two values at once": (f"{_L}['a'] == 'x' && {_L}['a'] == 'y'", ["NeverPasses"]),
    "two values at once, with something between": (
        "node.spec.podCIDR == 'x' && node.spec.unschedulable && 'y' == node.spec.podCIDR",
        ["NeverPasses"],
    ),
    "not one value or not another": ("node.spec.podCIDR != 'x' || node.spec.podCIDR != 'y'", ["AlwaysPasses"]),
    "none of a list and that": ("!(node.spec.podCIDR in ['a']) && node.spec.podCIDR == 'a'", ["NeverPasses"]),
    "neither of two lists": ("node.spec.podCIDR in ['a'] && node.spec.podCIDR in ['b', 'c']", ["NeverPasses"]),
    "one of a list and not that": ("node.spec.podCIDR in ['a'] && node.spec.podCIDR != 'a'", ["NeverPasses"]),
    "one of an empty list": ("node.spec.podCIDR in []", ["NeverPasses"]),
    "more and less": ("allocatable['cpu'] > 4.0 && allocatable['cpu'] < 2.0", ["NeverPasses"]),
    "more and less, the bounds touching": ("allocatable['cpu'] > 4.0 && allocatable['cpu'] <= 4.0", ["NeverPasses"]),
    "a value outside of bounds": ("allocatable['cpu'] == 1.0 && 2.0 <= allocatable['cpu']", ["NeverPasses"]),
    "less or more, all of it": ("allocatable['cpu'] < 4.0 || allocatable['cpu'] >= 4.0", ["AlwaysPasses"]),
    "something and its opposite": ("node.spec.unschedulable && !node.spec.unschedulable", ["NeverPasses"]),
    "something or its opposite": ("has(node.spec.podCIDR) || !has(node.spec.podCIDR)", ["AlwaysPasses"]),
    "absorbed by false": ("node.spec.unschedulable && false", ["NeverPasses"]),
    "absorbed by true": ("node.spec.unschedulable || 1 == 1", ["AlwaysPasses"]),
    "either of two that cannot be": (
        "(node.spec.podCIDR == 'a' && node.spec.podCIDR == 'b') || false && node.spec.unschedulable",
        ["NeverPasses"],
    ),
    "a choice that cannot be": ("node.spec.unschedulable ? false : 1 > 2", ["NeverPasses"]),
    "labels that cannot be": (f"!('a' in {_L}) && {_L}[?'a'].orValue('') == 'x'", ["NeverPasses"]),
    "not the node": ("pod.spec.priority > 100", ["SameForEveryNode"]),
    "not the node but the time": ("now.getHours() > 20", ["ReadsNow"]),
    "the namespace only": ("'a' in namespaceObject.metadata.labels", ["SameForEveryNode"]),
    "the pod's name": ("node.spec.podCIDR != pod.metadata.name", ["PodIdentity"]),
    "the pod's UID": ("node.spec.podCIDR != pod.metadata.uid", ["PodIdentity"]),
    "when the pod was made": ("node.metadata.creationTimestamp < pod.metadata.creationTimestamp", ["PodIdentity"]),
    "the index of a pod": ("node.spec.podCIDR != pod.metadata.labels['apps.kubernetes.io/pod-index']", ["PodIdentity"]),
    "free": ("free['cpu'] > 1.0", ["EventuallyConsistent"]),
    "requested": ("requested['cpu'] < 1.0", ["EventuallyConsistent"]),
    "pods": ("pods.size() < 80", ["EventuallyConsistent"]),
    "labels of nodes": (f"{_L}['a'] == 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes in a way that affinity has not": (f"{_L}['a'].startsWith('x')", ["InvisibleToAutoscalers"]),
    "the name of nodes": ("node.metadata.name != 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes against those of pods": (
        f"{_L}['a'] == pod.metadata.labels['a']",
        ["InvisibleToAutoscalers"],
    ),
    "a pattern that is not known": ("node.spec.podCIDR.matches(pod.spec.hostname)", ["RunsOnEngine"]),
    # Nothing is said of these.
    "bounds": ("allocatable['cpu'] > 2.0 && allocatable['cpu'] < 4.0", []),
    "either value": ("node.spec.podCIDR == 'x' || node.spec.podCIDR == 'y'", []),
    "neither value": ("node.spec.podCIDR != 'x' && node.spec.podCIDR != 'y'", []),
    "two labels": (f"{_L}['a'] == 'x' && node.metadata.annotations['a'] == 'y'", []),
    "what macros make": ("node.spec.taints.exists(t, t.key == 'a') && node.spec.taints.exists(t, t.key == 'b')", []),
    "a choice": ("node.spec.unschedulable ? node.spec.podCIDR == 'a' : node.spec.podCIDR == 'b'", []),
    "what is made of a pod": ("node.spec.podCIDR != pod.metadata.generateName", []),
    "the pod's labels": ("node.spec.podCIDR != pod.metadata.labels['app']", []),
    "data": ("node.spec.taints.size() == 0", []),
    "a division by zero": ("1 / 0 == 1 || node.spec.unschedulable", []),
}


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_of_a_filter_it_is_said(expression: str, want: list[str]) -> None:
    found = of_filter(expression)
    assert reasons(found) == want
    assert all(warning.path == ("spec", "filters", 0, "expression") for warning in found)


SCORES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a number": ("50.0", {}, ["SameForEveryNode"]),
    "nothing": ("0", {"weight": 5}, ["ScoreIsZero"]),
    "nothing, in other words": ("node.spec.unschedulable ? 0.0 : 1.0 - 1.0", {}, ["ScoreIsZero"]),
    "one number in both cases": ("node.spec.unschedulable ? 7 : 7", {}, ["SameForEveryNode"]),
    "what is the pod's": ("pod.spec.priority", {}, ["SameForEveryNode"]),
    "what the pod asks for": ("request['cpu']", {}, ["SameForEveryNode"]),
    "the time": ("now.getHours()", {}, ["SameForEveryNode", "ReadsNow"]),
    "more than 100": ("node.spec.unschedulable ? 1000 : 0", {}, ["ScoreOutOfRange"]),
    "less than 0": ("node.spec.unschedulable ? -100.0 : 0.0", {}, ["ScoreOutOfRange"]),
    "1 at most": ("node.spec.unschedulable ? 0.0 : 1.0", {}, ["ScoreIsTiny"]),
    "pods": ("-pods.size()", {"normalize": "Rank"}, ["EventuallyConsistent"]),
    # Nothing is said of these.
    "more than 100, stretched": ("node.spec.unschedulable ? 1000 : 0", {"normalize": "MinMax"}, []),
    "1 at most, weighed": ("node.spec.unschedulable ? 0.0 : 1.0", {"weight": 100}, []),
    "0 or 100": ("node.spec.unschedulable ? 0 : 100", {}, []),
    "labels of nodes": (f"'a' in {_L} ? 100 : 0", {}, []),
    "what a node has": ("allocatable['cpu']", {}, []),
}


@pytest.mark.parametrize(("expression", "more", "want"), SCORES.values(), ids=SCORES)
def test_of_a_score_it_is_said(expression: str, more: dict[str, Any], want: list[str]) -> None:
    assert reasons(of_score(expression, **more)) == want


CONDITIONS: dict[str, tuple[str, list[str]]] = {
    "never": ("pod.spec.priority > 3 && pod.spec.priority < 2", ["NeverPasses"]),
    "always": ("pod.spec.priority > 3 || pod.spec.priority <= 3", ["AlwaysPasses"]),
    "identity": ("pod.metadata.name.startsWith('a')", ["PodIdentity"]),
    "nothing": ("pod.spec.priority > 3", []),
}


@pytest.mark.parametrize(("expression", "want"), CONDITIONS.values(), ids=CONDITIONS)
def test_of_a_condition_it_is_said(expression: str, want: list[str]) -> None:
    match = {"conditions": [{"name": "it", "expression": expression}]}
    assert reasons(said_of(match=match, filters=[_GOOD])) == want


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
    assert reasons(said_of(match=match, filters=[_GOOD])) == want


def test_a_filter_that_cannot_decide_may_pass_a_node_all_the_same() -> None:
    [warning] = of_filter(f"{_L}['a'] == 'x' && {_L}['a'] == 'y'", onError="Pass")
    assert warning.hint == "only nodes on which it fails are left"


def test_what_filters_on_labels_would_be_as_affinity_is_printed() -> None:
    [warning] = of_filter(f"{_L}['a'] == 'x'")
    assert "- key: a\n          operator: In\n          values:\n          - x\n" in warning.hint
    [warning] = of_filter(f"{_L}['a'] == pod.metadata.labels['a']")
    assert "depends on the pod" in warning.hint
    [warning] = of_filter(f"{_L}['a'].startsWith('x')")
    assert "no nodeAffinity says the same" in warning.hint


def test_resolvable_has_no_effect_yet_or_none_at_all() -> None:
    [warning, _] = of_filter("free['cpu'] > 1.0", resolvable=True)
    assert (warning.reason, warning.path) == (Reason.RESOLVABLE_NOT_HONOURED, ("spec", "filters", 0, "resolvable"))
    [warning] = of_filter("node.spec.unschedulable", resolvable=True)
    assert warning.reason == Reason.RESOLVABLE_CANNOT_HELP
    assert of_filter("node.spec.unschedulable", resolvable=False) == []


def test_variables_and_data_that_nothing_uses_are_named() -> None:
    found = said_of(
        variables=[
            {"name": "used", "expression": "node.spec.unschedulable"},
            {"name": "through", "expression": "variables.used"},
            {"name": "idle", "expression": "variables.used"},
        ],
        data=[
            {"name": "read", "nodeLabel": {"key": "a"}},
            {"name": "asked", "nodeLabel": {"key": "b"}},
            {"name": "never", "nodeLabel": {"key": "c"}},
        ],
        filters=[{"name": "a", "expression": "variables.through && data.read > 1.0"}],
        scores=[{"name": "b", "expression": "data[?'asked'].orValue(0.0)"}],
    )
    assert [(str(one.reason), one.path) for one in found] == [
        ("UnusedVariable", ("spec", "variables", 2, "name")),
        ("UnusedData", ("spec", "data", 2, "name")),
    ]


def test_data_of_which_all_is_read_is_used() -> None:
    data = [{"name": "a", "nodeLabel": {"key": "a"}}]
    assert said_of(data=data, filters=[{"name": "a", "expression": "data.size() == 1"}]) == []


def test_a_variable_that_decides_is_followed() -> None:
    found = said_of(
        variables=[{"name": "low", "expression": "allocatable['cpu'] < 2.0"}, {"name": "two", "expression": "2.0"}],
        filters=[{"name": "a", "expression": "variables.low && allocatable['cpu'] > variables.two"}],
    )
    assert reasons(found) == ["NeverPasses"]


def test_variables_that_double_at_each_step_are_given_up_on() -> None:
    variables = [{"name": "v0", "expression": "node.spec.unschedulable"}]
    variables += [
        {"name": f"v{at}", "expression": f"variables.v{at - 1} && variables.v{at - 1}"} for at in range(1, 10)
    ]
    assert said_of(variables=variables, filters=[{"name": "a", "expression": "variables.v9 && !variables.v0"}]) == []


def test_a_policy_that_is_off_or_empty_says_so() -> None:
    [warning] = said_of(mode="Off", filters=[_GOOD])
    assert (warning.reason, warning.severity) == (Reason.SWITCHED_OFF, "note")
    [warning] = said_of()
    assert (warning.reason, warning.severity) == (Reason.DOES_NOTHING, "warning")


def test_a_protection_may_protect_everything_but_not_nothing() -> None:
    for expression, want in {
        "true": [],
        "victim.spec.priority > 2 && victim.spec.priority < 1": ["NeverPasses"],
    }.items():
        protect = [{"name": "a", "expression": expression}]
        assert reasons(said_of(preemption={"protect": protect})) == want


def test_a_strategy_is_looked_at_only_for_what_is_written_beside_it() -> None:
    strategy = {"name": "a", "nodeReadiness": {"conditions": [{"type": "X"}]}}
    assert said_of(filters=[strategy]) == []
    assert reasons(said_of(filters=[{**strategy, "resolvable": True}])) == ["ResolvableCannotHelp"]


def test_the_reasons_are_words_of_an_api() -> None:
    assert all(reason.value == reason.name.title().replace("_", "") for reason in Reason)
    assert {reason.value for reason in Reason} >= {want for _, wants in FILTERS.values() for want in wants}
