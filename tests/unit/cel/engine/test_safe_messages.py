"""No value of a fact is told to those who may read the status of a policy."""

from typing import Any

import pytest

from fairlead.cel.engine.safe_messages import OF_KIND, stable
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.policy.evaluate.annotations import annotations
from support.policy import NOW, SECOND, Evaluation, node, pod, policy

SECRET = "hunter2"

RULES = {
    "node.metadata.labels[pod.metadata.labels['x']] == ''": "no such key",
    "node.metadata.labels['gpu'] == ''": "no such key: 'gpu'",
    "node.metadata.labels.gpu == ''": "no such key: 'gpu'",
    "{'a': 1}[pod.metadata.labels['x']] == 1": "no such key",
    "int(pod.metadata.labels['x']) == 1": "cannot convert string to int",
    "double(pod.metadata.labels['x']) == 1.0": "cannot convert string to double",
    "ip(pod.metadata.labels['x']).family() == 4": "cannot convert string to IP address",
    "cidr(pod.metadata.labels['x']).prefixLength() == 4": "cannot convert string to CIDR",
    "semver(pod.metadata.labels['x']).major() == 1": "cannot convert string to version",
    "quantity(pod.metadata.labels['x']).isGreaterThan(quantity('1'))": "a value cannot be converted",
    "timestamp(pod.metadata.labels['x']) < now": "String to Timestamp conversion failed",
    "duration(pod.metadata.labels['x']) < duration('1s')": "String to Duration conversion failed",
    "'a'.matches(pod.metadata.labels['x'] + '(')": "not a regular expression, or not a replacement for it",
    "pod.metadata.labels['x'].charAt(100) == ''": "a function does not take this argument",
    "[1][pod.metadata.labels['x'].size()] == 1": "an index is outside of its list",
    "{pod.metadata.labels['x']: 1, pod.metadata.labels['x']: 2}.size() == 1": "a key stands twice in a map",
    "lists.range(pod.metadata.labels['x'].size() * 1000000).size() == 1": "the expression costs too much",
    "data[pod.metadata.labels['x']] == 1.0": "data has no entry of that name",
    "data['load'] == 1.0": "data load is missing",
    "1 / (pod.metadata.labels['x'].size() - 7) == 1": "divide by zero",
    "dyn(pod.metadata.labels['x']) < 1": "No matching overloads found : <(string, int)",
}


@pytest.mark.parametrize(("text", "want"), RULES.items())
def test_what_the_status_says(text: str, want: str) -> None:
    rules = policy(filters={"f": text}, data=[{"name": "load", "nodeLabel": {"key": "load"}}])
    cluster = Evaluation([rules], [node("a")])
    cluster.filter(pod(labels={"x": SECRET}))
    assert [one.last_message for one in cluster.evaluator.tally.drain()] == [want]


@pytest.mark.parametrize("text", RULES)
def test_and_what_everybody_is_told(text: str) -> None:
    """Reasons, and what the annotation and the condition say that need it."""
    rule = {"expression": f"string({text})", "onError": "Reject"}
    if "data" not in text:
        match: dict[str, Any] = {"conditions": {"c": text.replace("node.metadata", "namespaceObject.metadata")}}
        cluster = Evaluation([policy(match=match, filters={"f": "true"})], [node("a")])
        cluster.filter(pod(labels={"x": SECRET}))
        assert SECRET not in repr(cluster.evaluator.tally.drain())
    cluster = Evaluation(
        [policy(annotations={"fairlead.dev/x": rule}, data=[{"name": "load", "nodeLabel": {"key": "l"}}])], [node("a")]
    )
    made = annotations(
        pod(labels={"x": SECRET}), cluster.matched(pod()), cluster.nodes, "a", now=NOW, tally=cluster.evaluator.tally
    )
    assert made.refusal is not None
    assert SECRET not in made.refusal + repr(cluster.evaluator.tally.drain())


def test_a_name_that_a_pod_chooses_is_not_told() -> None:
    ready = {"nodeReadiness": {"labels": [{"key": "a"}], "choose": {"podAnnotation": "needs"}}}
    cluster = Evaluation([policy(filters={"f": ready})], [node("a")])
    cluster.filter(pod(annotations={"needs": SECRET}), now=NOW + SECOND)
    assert SECRET not in repr(cluster.evaluator.tally.drain())


@pytest.mark.parametrize("kind", Kind)
def test_what_is_not_known_to_be_without_values_is_told_by_its_kind(kind: Kind) -> None:
    for error in (CelError(kind, f"{SECRET} is odd"), Abort(kind, f"INVALID_ARGUMENT: {SECRET}")):
        assert stable(error) == OF_KIND[kind]
