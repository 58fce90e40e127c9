"""Gauge of the domains of nodes that scores by topology tell apart."""

from types import SimpleNamespace
from typing import Any

from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.node_table import Nodes
from fairlead.webhook.serving.serving_gauges import serving_gauges
from support.policy import node, pod, policy
from support.policy.asking import scored


def domains(state: object) -> dict[tuple[str, ...], float]:
    reloader: Any = SimpleNamespace(state=state, open_circuits=list, cache_counts=None)
    store: Any = SimpleNamespace(states={})
    (gauge,) = (one for one in serving_gauges(store, reloader) if one.name == "fairlead_topology_domains")
    return {**gauge.ask()}


def test_domains_of_all_levels_are_counted() -> None:
    nodes = Nodes()
    for name, rack in {"a": "r1", "b": "r1", "c": "r2"}.items():
        nodes.put(node(name, labels={"block": "b1", "rack": rack}))
    nodes.put(node("d", labels={"block": "b2"}))
    near = policy(scores={"near": {"topology": {"levels": ["block", "rack"], "group": "'g'", "size": "2"}}, "c": "1.0"})
    policies = policy_set([near])
    evaluator = Evaluator(policies, nodes)
    state = SimpleNamespace(scores=evaluator, policies=policies)
    assert domains(None) == {}
    assert domains(state) == {("p", "near"): 0}
    scored(evaluator, pod(), ["a"])
    assert domains(state) == {("p", "near"): 3}
