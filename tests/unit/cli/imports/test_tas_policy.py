"""Policies for TASPolicies: each rule comes out as a rule, or is named in a comment."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.imports.tas_policy import promql_metric
from fairlead.yaml_output import to_yaml
from support.cli.imported import check, imported

HEAD = "apiVersion: telemetry.intel.com/v1alpha1\nkind: TASPolicy\n"


def tas(strategies: str, metadata: str = "{name: cool, namespace: batch}") -> str:
    return f"{HEAD}metadata: {metadata}\nspec: {{strategies: {strategies}}}\n"


def entry(name: str, query: str) -> dict[str, Any]:
    return {"name": name, "prometheus": {"query": query, "nodeLabel": "instance"}}


def test_comments_stand_above_what_they_are_about() -> None:
    rule = "{metricname: heat, operator: LessThan, target: 1}"
    text = imported(tas(f"{{dontschedule: {{rules: [{rule}]}}, deschedule: {{rules: [{rule}]}}}}")).text
    assert text.startswith(
        "# From the TASPolicy batch/cool (a.yaml:1).\n"
        "# Not imported: deschedule: heat LessThan 1. Fairlead evicts no pods: use the descheduler.\n"
    )
    assert "  # heat of the custom metrics API; in Prometheus it may be node_heat.\n  - name: heat\n" in text
    assert "API.\n  data:\n" in text
    assert "{within: 1m, limit: 5}]}.\n  - name: dontschedule\n" in text


def test_pods_match_in_the_namespace_of_the_policy_only() -> None:
    rule = "{dontschedule: {rules: [{metricname: a, operator: Equals}]}}"
    selector = {"podSelector": {"matchLabels": {"telemetry-policy": "cool"}}}
    assert imported(tas(rule)).spec["match"] == {"namespaces": ["batch"], **selector}
    anywhere = imported(tas(rule, "{name: cool}"))
    assert anywhere.spec["match"] == selector
    assert "The TASPolicy has no namespace in this file." in anywhere.comments


def test_policies_of_two_namespaces_get_two_names() -> None:
    rule = "{dontschedule: {rules: [{metricname: a, operator: Equals}]}}"
    places = ("{name: cool, namespace: a}", "{name: cool, namespace: b}", "{name: cool, namespace: b}")
    found = imported(*(tas(rule, place) for place in places))
    assert [one["metadata"]["name"] for one in found.policies] == ["cool", "b-cool", "b-cool-2"]
    assert [one["spec"]["match"]["podSelector"]["matchLabels"] for one in found.policies] == [
        {"telemetry-policy": "cool"}
    ] * 3


NAMES = {
    "health_metric": ("healthMetric", "health_metric"),
    "Temperature": ("temperature", "Temperature"),
    "10GB1Mpps": ("metric10GB1Mpps", '{__name__="10GB1Mpps"}'),
    "gpu-usage": ("gpuUsage", '{__name__="gpu-usage"}'),
    "in": ("inValue", "in"),
    "NaN": ("naN", '{__name__="NaN"}'),
    "node:cpu:avg5m": ("nodeCpuAvg5m", "node:cpu:avg5m"),
    "gpu.temp": ("gpuTemp", '{__name__="gpu.temp"}'),
    "on": ("on", '{__name__="on"}'),
    "_": ("metric", "_"),
    "x" * 253: ("x" * 60, "x" * 253),
}


@pytest.mark.parametrize("metric", NAMES)
def test_names_and_queries_of_metrics(metric: str) -> None:
    name, query = NAMES[metric]
    assert promql_metric(metric) == query
    found = imported(tas(f'{{dontschedule: {{rules: [{{metricname: "{metric}", operator: Equals}}]}}}}'))
    assert found.spec["data"] == [entry(name, query)]
    check(found.policy)


def test_metrics_whose_names_become_the_same_stay_apart() -> None:
    rules = ", ".join(f"{{metricname: {name}, operator: Equals}}" for name in ("a_b", "aB", "a-b", "a_b"))
    found = imported(tas(f"{{dontschedule: {{rules: [{rules}]}}}}"))
    queries = {one["name"]: one["prometheus"]["query"] for one in found.spec["data"]}
    assert queries == {"aB": "a_b", "aB2": "aB", "aB3": '{__name__="a-b"}'}


WRONG = {
    "an operator": (
        "{dontschedule: {rules: [{metricname: a, operator: Greater, target: 1}]}}",
        ("rules[0].operator: 'Greater' is not one of LessThan, GreaterThan, Equals; did you mean GreaterThan?"),
    ),
    "a metric": (
        '{dontschedule: {rules: [{metricname: "a b", operator: Equals, target: 1}]}}',
        "rules[0].metricname: 'a b' is not possible here; write the name of a metric: letters, digits, '-', '_',",
    ),
    "a target": (
        "{dontschedule: {rules: [{metricname: a, operator: Equals, target: 1.5}]}}",
        "a.yaml:4:86: spec.strategies.dontschedule.rules[0].target: must be a whole number, not 1.5",
    ),
    "no rules at all": (
        "{dontschedule: {}}",
        "a.yaml:4:35: spec.strategies.dontschedule.rules: is missing; write its metricname and operator",
    ),
    "more metrics than a policy has": (
        "{dontschedule: {rules: [" + ", ".join(f"{{metricname: m{at}, operator: Equals}}" for at in range(17)) + "]}}",
        "dontschedule.rules: reads more than 16 metrics, which is as many as a policy has; split the object, so that",
    ),
    "more rules for all of them than a filter has": (
        "{dontschedule: {logicalOperator: allOf, rules: ["
        + ", ".join(f"{{metricname: a, operator: Equals, target: {at}}}" for at in range(17))
        + "]}}",
        "rules: has 17 different rules, and a filter has at most 16; allOf cannot be split into several filters",
    ),
    "more rules than a policy has": (
        "{dontschedule: {rules: ["
        + ", ".join(f"{{metricname: a, operator: Equals, target: {at}}}" for at in range(32 * 16 + 1))
        + "]}}",
        "spec: needs more than 32 filters, which is as many as a policy has; split the object",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_field_and_the_fix(case: str) -> None:
    strategies, want = WRONG[case]
    [fault] = imported(tas(strategies)).faults
    assert want in fault


def test_a_name_that_no_label_can_hold_is_an_error() -> None:
    [fault] = imported(tas("{}", f"{{name: {'x' * 64}}}")).faults
    assert fault.startswith("a.yaml:3:18: metadata.name: must have at most 63 characters, not 64")


_METRICS = st.from_regex(r"[-a-zA-Z0-9_]{1,8}", fullmatch=True)
_RULES = st.lists(
    st.fixed_dictionaries(
        {"metricname": _METRICS, "operator": st.sampled_from(["LessThan", "GreaterThan", "Equals"])},
        optional={
            "target": st.integers(-(10**18), 10**18),
            "labels": st.lists(st.from_regex(r"[a-z]{1,3}=[a-z]{1,3}", fullmatch=True), max_size=2),
        },
    ),
    max_size=5,
)
_STRATEGY = st.fixed_dictionaries({"rules": _RULES}, optional={"logicalOperator": st.sampled_from(["anyOf", "allOf"])})
_TAS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("telemetry.intel.com/v1alpha1"),
        "kind": st.just("TASPolicy"),
        "metadata": st.fixed_dictionaries(
            {"name": st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)},
            optional={"namespace": st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)},
        ),
        "spec": st.fixed_dictionaries(
            {
                "strategies": st.dictionaries(
                    st.sampled_from(["dontschedule", "scheduleonmetric", "deschedule", "labeling", "other"]), _STRATEGY
                )
            }
        ),
    }
)
_NOISE = {
    "uid": "0b1c",
    "resourceVersion": "71",
    "generation": 2,
    "creationTimestamp": "2027-01-15T22:00:00Z",
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    "managedFields": [{"manager": "kubectl"}],
}


@given(_TAS)
def test_each_rule_is_in_the_policy_or_in_a_comment(policy: dict[str, Any]) -> None:
    found = imported(to_yaml(policy))
    assert found.faults == ()
    compared, ordered = set(), set()
    for one in found.policies:
        check(one)
        metrics = {data["name"]: data["prometheus"]["query"] for data in one["spec"]["data"]}
        for rule in one["spec"].get("filters", ()):
            assert rule["telemetry"]["rejectWhen"] == (
                "AllOf" if policy["spec"]["strategies"]["dontschedule"].get("logicalOperator") == "allOf" else "AnyOf"
            )
            compared |= {
                (metrics[each["value"]], each["operator"], each["target"]) for each in rule["telemetry"]["rules"]
            }
        ordered |= {
            (metrics[each["telemetry"]["value"]], each["telemetry"]["prefer"]) for each in one["spec"].get("scores", ())
        }
    directions = {"LessThan": "Lowest", "GreaterThan": "Highest"}
    for kind, strategy in policy["spec"]["strategies"].items():
        for place, rule in enumerate(strategy["rules"]):
            query = promql_metric(rule["metricname"])
            if kind == "dontschedule":
                assert (query, rule["operator"], rule.get("target", 0)) in compared
            elif kind == "scheduleonmetric" and not place and rule["operator"] in directions:
                assert (query, directions[rule["operator"]]) in ordered
            else:
                target = f" {rule['target']}" if "target" in rule else ""
                assert f"{rule['metricname']} {rule['operator']}{target}" in found.comments
                assert all(label in found.comments for label in rule.get("labels", ()))


@given(_TAS)
def test_what_a_cluster_adds_to_an_object_changes_nothing(policy: dict[str, Any]) -> None:
    """Objects come from the files of their owners, and from `kubectl get -o yaml` or `-o json`."""
    want = imported(to_yaml(policy))
    assert imported(to_yaml(policy)) == want
    exported = {**policy, "metadata": {**policy["metadata"], **_NOISE}, "status": {"message": "x"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [exported], "metadata": {"resourceVersion": ""}}
    for text in (to_yaml(exported), to_yaml(listed), json.dumps(exported), json.dumps(listed, indent=2)):
        found = imported(text)
        assert re.sub(r"a\.yaml:\d+", "a.yaml:1", found.text) == want.text
