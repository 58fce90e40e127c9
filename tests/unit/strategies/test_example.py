"""The example is what a user would apply, so it has to say something true."""

from pathlib import Path

import yaml

from fairlead.api.v1alpha1 import policy_model
from fairlead.strategies import installed
from fairlead.strategies.node_readiness_params import NodeReadiness
from fairlead.strategies.seam import PASS, Condition, Controller, Reject
from strategykit.facts import Node, OnNode, Pod

_EXAMPLE = Path(__file__).parents[3] / "examples" / "node-readiness.yaml"
_SECOND = 1_000_000_000
_NOW = 1_800_000_000 * _SECOND


def test_the_example_waits_for_what_it_names() -> None:
    strategies = {strategy.name: strategy for strategy in installed()}
    model = policy_model(filters={name: one.params for name, one in strategies.items() if one.filter}, scores={})
    policy = model.model_validate(yaml.safe_load(_EXAMPLE.read_text()))
    [rule] = policy.spec.filters
    assert rule.strategy
    name, params = rule.strategy
    assert isinstance(params, NodeReadiness)
    compiled = strategies[name].filter
    assert compiled
    decide = compiled(params).for_pod(Pod())
    cilium = OnNode(controller=Controller("DaemonSet", "cilium"))
    mirror = OnNode(namespace="registry", labels={"app.kubernetes.io/name": "registry-mirror"})
    node = Node(
        labels={"example.org/images-warm": "true"},
        stamps={("labels", "example.org/images-warm"): 0},
        pods=[cilium, mirror],
        conditions={"NetworkUnavailable": Condition("False", _NOW - 5 * _SECOND)},
    )
    assert decide(Node(), _NOW) == Reject("daemon cilium is not ready")
    assert decide(node, _NOW) == Reject("waiting after becoming ready", until=_NOW + 15 * _SECOND)
    assert decide(node, _NOW + 15 * _SECOND) is PASS
