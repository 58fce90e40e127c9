"""Which nodes pods of a policy may use, as far as its filters about nodes alone can tell."""

from typing import Any

import pytest

from fairlead.webhook.measured_data.usable_nodes import NAMESPACES_MAX, UsableNodes, namespaces_of
from support.policy import NOW, node, policy
from support.policy.building import ns

RED = "node.metadata.labels[?'tenant'].orValue('') == 'red'"
QUERY: dict[str, Any] = {"load": {"prometheus": {"query": "load"}}}


SHADOW: dict[str, Any] = {"mode": "Shadow"}


@pytest.mark.parametrize(
    ("spec", "usable"),
    [
        pytest.param({"filters": {"f": RED}}, ["red"], id="in force"),
        pytest.param({"filters": {"f": RED}} | SHADOW, ["red"], id="in shadow with its policy"),
        pytest.param({"filters": {"f": {"expression": RED} | SHADOW}}, ["red"], id="in shadow as all its rules are"),
        pytest.param(
            {"filters": {"f": {"expression": RED} | SHADOW}, "scores": {"s": "data.load"}},
            ["blue", "red"],
            id="in shadow beside a rule that decides on other nodes",
        ),
    ],
)
def test_filters_in_shadow_count_as_under_enforce_unless_rules_decide_without_them(
    spec: dict[str, Any], usable: list[str]
) -> None:
    found = UsableNodes(policy(data=QUERY, **spec))
    nodes = [node("red", labels={"tenant": "red"}), node("blue")]
    assert sorted(one.name for one in nodes if found(one, NOW)) == usable
    assert found.are_all == (len(usable) == 2)


@pytest.mark.parametrize(
    ("filters", "usable"),
    [
        pytest.param({"f": RED}, ["red"], id="by a label"),
        pytest.param({"f": RED, "g": "node.metadata.name != 'red'"}, [], id="by each of several filters"),
        pytest.param({"f": "allocatable['cpu'] > 4.0 && node.metadata.name == 'blue'"}, ["blue"], id="by its size"),
        pytest.param({"f": "node.metadata.labels['tenant'] == 'red'"}, ["blue", "red"], id="an error decides nothing"),
        pytest.param({"f": f"{RED} && data.load < 0.5"}, ["blue", "red"], id="what reads values needs them"),
        pytest.param({"f": f"{RED} || pod.metadata.name == 'x'"}, ["blue", "red"], id="another pod may pass"),
        pytest.param({"f": f"{RED} || free['cpu'] > 1.0"}, ["blue", "red"], id="it changes with what runs there"),
        pytest.param({"f": f"{RED} || now.getHours() > 3"}, ["blue", "red"], id="it changes with time"),
        pytest.param({"f": "true"}, ["blue", "red"], id="nothing is read"),
    ],
)
def test_a_node_counts_unless_a_filter_rejects_it_for_every_pod(filters: dict[str, str], usable: list[str]) -> None:
    found = UsableNodes(policy(data=QUERY, filters=filters))
    nodes = [node("red", labels={"tenant": "red"}), node("blue")]
    assert sorted(one.name for one in nodes if found(one, NOW)) == usable
    assert found.are_all is (usable == ["blue", "red"] and "labels['tenant']" not in filters["f"])


def test_a_node_that_changes_is_asked_about_again() -> None:
    found = UsableNodes(policy(data=QUERY, filters={"f": RED}))
    assert not found(node("n"), NOW)
    assert found(node("n", labels={"tenant": "red"}), NOW)
    assert not found(node("n"), NOW)


TENANT = "namespaceObject.metadata.labels[?'tenant'].orValue('') == node.metadata.labels[?'tenant'].orValue('')"
RED_ONLY: dict[str, Any] = {"match": {"namespaces": ["red"]}}
NAMED = "pod.metadata.namespace == node.metadata.name"
LABELLED = {"namespaceSelector": {"matchLabels": {"tenant": "red"}}}
NAMESPACES = {name: ns(name, {"tenant": name}) for name in ("red", "blue", "green")}


@pytest.mark.parametrize(
    ("own", "other", "usable"),
    [
        pytest.param({**RED_ONLY, "filters": {"f": TENANT}}, {}, ["red"], id="by the labels of its namespace"),
        pytest.param({**RED_ONLY, "filters": {"f": NAMED}}, {}, ["red"], id="by the name of its namespace"),
        pytest.param({"filters": {"f": TENANT}}, {}, ["blue", "red"], id="a pod may come from any namespace"),
        pytest.param({"match": LABELLED, "filters": {"f": TENANT}}, {}, ["red"], id="the namespaces that it selects"),
        pytest.param(
            {"match": {"namespaces": ["red", "blue"]}, "filters": {"f": TENANT}}, {}, ["blue", "red"], id="several"
        ),
        pytest.param(
            {"match": {"namespaces": ["red", "gone"]}, "filters": {"f": TENANT}},
            {},
            ["blue", "red"],
            id="one is unknown",
        ),
        pytest.param(RED_ONLY, {"filters": {"f": TENANT}}, ["red"], id="another policy rejects them"),
        pytest.param({}, {"filters": {"f": RED}}, ["red"], id="another policy rejects them for all pods"),
        pytest.param(RED_ONLY, {"filters": {"f": TENANT}, "mode": "Disabled"}, ["blue", "red"], id="not enforced"),
        pytest.param(RED_ONLY, {"filters": {"f": TENANT}, "mode": "Shadow"}, ["blue", "red"], id="another in shadow"),
        pytest.param(
            RED_ONLY,
            {"filters": {"f": {"expression": TENANT, "mode": "Shadow"}}},
            ["blue", "red"],
            id="another's rule in shadow",
        ),
        pytest.param(
            RED_ONLY, {"filters": {"f": TENANT}, "match": {"namespaces": ["blue"]}}, ["blue", "red"], id="not its pods"
        ),
        pytest.param(RED_ONLY, {"filters": {"f": TENANT}, "match": LABELLED}, ["red"], id="it selects the namespace"),
        pytest.param(
            RED_ONLY,
            {"filters": {"f": TENANT}, "match": {"podSelector": {"matchLabels": {"a": "b"}}}},
            ["blue", "red"],
            id="some of its pods",
        ),
        pytest.param(
            RED_ONLY,
            {"filters": {"f": TENANT}, "match": {"conditions": {"c": "pod.spec.priority > 1"}}},
            ["blue", "red"],
            id="pods by a condition",
        ),
        pytest.param({}, {"filters": {"f": RED}, "match": LABELLED}, ["blue", "red"], id="pods of some namespaces"),
    ],
)
def test_filters_of_all_policies_decide_for_the_namespaces_that_one_matches(
    own: dict[str, Any], other: dict[str, Any], usable: list[str]
) -> None:
    mine = policy(**{"data": QUERY, "filters": {"g": "data.load < 0.5"}, **own})
    others = [mine, policy("other", **other)] if other else []
    found = UsableNodes(mine, others, namespaces_of(mine, NAMESPACES))
    nodes = [node("red", labels={"tenant": "red"}), node("blue", labels={"tenant": "blue"})]
    assert sorted(one.name for one in nodes if found(one, NOW)) == usable


def test_many_namespaces_are_taken_for_any() -> None:
    made = policy(data=QUERY, match={"namespaceSelector": {}}, filters={"f": TENANT})
    many = {f"ns-{at}": ns(f"ns-{at}", {}) for at in range(NAMESPACES_MAX + 1)}
    assert UsableNodes(made, (), namespaces_of(made, many)).are_all
    del many["ns-0"]
    assert not UsableNodes(made, (), namespaces_of(made, many)).are_all
