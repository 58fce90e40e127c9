"""What is said of a snapshot is what the webhook answers the scheduler."""

import json
import random
from typing import Any

import pytest

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.simulation.simulation import Simulation
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, FailurePolicy
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import build_serving_state as answering
from support.policy import NOW, Endless, policy
from support.policy.asking import NEVER
from support.simulation.snapshot import Object, node, pod, simulation, written

GATES: tuple[FailurePolicy, ...] = ("Fail", "Ignore")
CALLER = Caller(schedulers=frozenset({"fairlead"}), wants_all_reasons=True)
POLICIES = [
    policy(
        "gpu",
        priority=1,
        filters={
            "class": {"expression": "node.metadata.labels[?'gpu'].orValue('') != 'v100'", "reason": "wrong class"},
            "room": {"expression": "free['cpu'] >= 2.0", "reason": "too full", "resolvable": True},
        },
        scores={"roomy": {"expression": "free['cpu']", "normalize": "MinMax"}, "even": "double(pods.size()) * 30.0"},
    ),
    policy(
        "few",
        failurePolicy="Ignore",
        filters={"few": {"expression": "pods.size() < 3", "reason": "too many pods"}},
        scores={"ranked": {"expression": "double(node.metadata.name.size())", "normalize": "Rank", "weight": 2}},
    ),
    policy("doubtful", match={"conditions": {"c": "pod.metadata.labels['odd'] == 'yes'"}}, filters={"x": "true"}),
]


@pytest.mark.parametrize("seed", range(12))
def test_the_webhook_says_the_same_of_random_clusters(seed: int) -> None:
    there, asked = _random(random.Random(seed))  # noqa: S311
    when = CallClock(NOW, Endless(), NEVER)
    asking = answering(
        there.policies, there.mirror.nodes, there.mirror, CircuitBreaker(), NodeNameCache(), RuleErrorTally()
    )
    judged = there.judge(written(asked))

    left, refused = there.names, dict[str, list[str]]()
    for gate in GATES:
        body = json.dumps({"Pod": asked, "Nodes": None, "NodeNames": left}).encode()
        reply = json.loads(verbs.filter(body, asking, CALLER, gate, when).body)
        left = reply["NodeNames"] or []
        for name, why in ((reply["FailedNodes"] or {}) | (reply["FailedAndUnresolvableNodes"] or {})).items():
            refused.setdefault(name, []).append(why)
    assert [one.name for one in judged.nodes if one.passed] == left
    for one in judged.nodes:
        assert [reason for reason in refused.get(one.name, []) if reason not in one.reasons] == []
        assert bool(one.reasons) is (one.name in refused)

    fitting = [one.name for one in judged.left]
    body = json.dumps({"Pod": asked, "Nodes": None, "NodeNames": fitting}).encode()
    sent = {one["Host"]: one["Score"] for one in json.loads(verbs.prioritize(body, asking, CALLER, when).body)}
    wanted = on_the_wire([one.score or 0.0 for one in judged.left])
    assert [sent.get(name, 0) for name in fitting] == wanted


def _random(chance: random.Random) -> tuple[Simulation, Object]:
    nodes = [
        node(
            f"n{at}{'x' * chance.randrange(3)}",
            labels=chance.choice([{}, {"gpu": "t4"}, {"gpu": "v100"}]),
            room={"cpu": str(chance.choice([2, 4, 8, 16]))},
            unschedulable=chance.random() < 0.1,
        )
        for at in range(12)
    ]
    names = [one["metadata"]["name"] for one in nodes]
    placed = [
        pod(f"on-{at}", on=chance.choice(names), asks={"cpu": chance.choice(["500m", "1", "2"])}) for at in range(20)
    ]
    labels: dict[str, Any] = chance.choice([{}, {"odd": "yes"}, {"odd": "no"}])
    return simulation(*nodes, *placed, policies=POLICIES), pod("asked", labels=labels, asks={"cpu": "1"})
