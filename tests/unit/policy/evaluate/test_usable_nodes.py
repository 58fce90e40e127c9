"""Which nodes pods of a policy may use, as far as its filters about nodes alone can tell."""

from typing import Any

import pytest

from fairlead.policy.evaluate.usable_nodes import UsableNodes
from support.policy import NOW, node, policy

RED = "node.metadata.labels[?'tenant'].orValue('') == 'red'"
QUERY: dict[str, Any] = {"load": {"prometheus": {"query": "load"}}}


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
