"""Reasons why a policy does not apply to a pod."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.explain.mismatch import explain_mismatch
from support.policy import NOW, pod, policy

LABELS = {"tier": "gold", "app": "web"}
IMPORTANT = {"important": "pod.spec.priority > 100"}


@pytest.mark.parametrize(
    ("spec", "want"),
    {
        "no match at all": ({}, None),
        "everything holds": ({"match": {"namespaces": ["ml"], "podSelector": {"matchLabels": {"tier": "gold"}}}}, None),
        "it is off": ({"mode": "Disabled"}, "its mode is Disabled"),
        "another scheduler": (
            {"schedulerName": "gpu"},
            "it applies to pods of the scheduler gpu, and this pod names fairlead",
        ),
        "another namespace": ({"match": {"namespaces": ["b"]}}, "it applies to pods in the namespace b"),
        "other namespaces": ({"match": {"namespaces": ["b", "a"]}}, "it applies to pods in the namespaces a, b"),
        "labels of the namespace": (
            {"match": {"namespaceSelector": {"matchLabels": {"team": "x"}}}},
            "its namespaceSelector does not match the labels of ml: team=y",
        ),
        "labels of the pod": (
            {"match": {"podSelector": {"matchLabels": {"tier": "base"}}}},
            "its podSelector does not match the pod's labels: app=web, tier=gold",
        ),
        "a condition": ({"match": {"conditions": IMPORTANT}}, "its condition important is false"),
        "a condition that raises": ({"match": {"conditions": {"c": "pod.metadata.labels['no'] == ''"}}}, None),
    }.values(),
)
def test_the_reason_is_said(spec: dict[str, Any], want: str | None) -> None:
    subject = pod(labels=LABELS, of_namespace={"team": "y"})
    found = explain_mismatch(policy(**spec), subject, "fairlead", NOW)
    assert (found and found.why) == want


def test_a_condition_says_what_it_compared() -> None:
    found = explain_mismatch(policy(match={"conditions": IMPORTANT}), pod(priority=7), "fairlead", NOW)
    assert found is not None
    assert [[(change.text, change.left) for change in way] for way in found.ways] == [[("pod.spec.priority > 100", 7)]]


_SELECTORS = st.sampled_from([None, {}, {"matchLabels": {"team": "x"}}, {"matchLabels": {"team": "y"}}])
_CONDITIONS = st.lists(st.sampled_from(["true", "false", "pod.metadata.labels['no'] == ''"]), max_size=3)


@given(
    st.sampled_from([None, ["ml"], ["b"]]), _SELECTORS, _SELECTORS, _CONDITIONS, st.sampled_from([None, {"team": "x"}])
)
def test_there_is_a_reason_exactly_where_the_policy_is_not_for_the_pod(
    namespaces: Any, of_namespace: Any, of_pod: Any, conditions: list[str], labels: Any
) -> None:
    written = {"namespaces": namespaces, "namespaceSelector": of_namespace, "podSelector": of_pod}
    match = {key: value for key, value in written.items() if value is not None}
    match["conditions"] = {f"c{at}": text for at, text in enumerate(conditions)}
    one, subject = policy(match=match), pod(labels={"team": "x"}, of_namespace=labels)
    is_for = bool(policy_set([one]).matching(subject, "fairlead", NOW))
    assert (explain_mismatch(one, subject, "fairlead", NOW) is None) is is_for
