"""A policy, a pod and a node with pods on it, to be explained."""

from collections.abc import Sequence
from typing import Any

from fairlead.cel.values.structs import from_json
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.explain.explainer import explain
from fairlead.policy.explain.explanation import Counterfactual, Element, NodeExplained
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import placed_pod
from fairlead.policy.views.pod_view import PodView
from support.policy.building import NOW, policy

POD = {"metadata": {"name": "p", "labels": {"gpu": "a100"}}, "spec": {"priority": 5}}
NODE = {
    "metadata": {
        "name": "n",
        "labels": {"gpu": "t4", "zone": "z1"},
        "creationTimestamp": "2027-01-15T06:59:59Z",
    }
}
OTHER = {
    "metadata": {"name": "r", "uid": "2"},
    "spec": {"priority": 4, "containers": [{"name": "main", "image": "img"}]},
}
ON_IT = [{"metadata": {"name": "q", "uid": "1"}, "spec": {"priority": 3}}]
Q, R = (Element("pods", 0, "default/q"),), (Element("pods", 1, "default/r"),)
ZONE = (Element("node.metadata.labels", 1, "zone"),)


def explained(
    spec: dict[str, Any], node: object = None, pod: object = None, on_it: Sequence[object] = ON_IT
) -> NodeExplained:
    """Return the explanation of one node."""
    policies, nodes, facts = explain_inputs(spec, node, pod, on_it)
    return explain(facts, policies.matching(facts, "fairlead", NOW), nodes, "n", NOW)


def explain_inputs(
    spec: dict[str, Any], node: object = None, pod: object = None, on_it: Sequence[object] = ON_IT
) -> tuple[PolicySet, Nodes, PodView]:
    """Return a policy, a node and a pod."""
    nodes = Nodes()
    view = NodeView(
        from_json("Node", node or NODE),
        pods=[placed_pod(each) for each in on_it],
        allocatable={"cpu": 8.0},
        requested={"cpu": 7.0},
    )
    nodes.put(view)
    return policy_set([policy("policy", **spec)]), nodes, PodView(from_json("Pod", pod or POD))


def changes_of(expression: str, on_it: Sequence[object] = ON_IT) -> list[Counterfactual]:
    """Return the changes that would let a rejecting filter pass."""
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}, on_it=on_it).filters
    assert rule.outcome == "Rejected"
    return list(rule.changes)
