"""Evaluations of rules, counted, and a cluster on which to count them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlead.strategies.reads import NodeChange
from support.policy.asking import Evaluation
from support.policy.building import node, policy

GPU: Final = NodeChange(node=frozenset({("metadata", "labels", "gpu")}))


@contextmanager
def evaluations_in(cluster: Evaluation) -> Iterator[dict[str, int]]:
    """Count how often each rule is evaluated meanwhile."""
    before = dict(cluster.evaluator.tally.evaluations)
    found: dict[str, int] = {}
    yield found
    for rule, count in cluster.evaluator.tally.evaluations.items():
        if count != before.get(rule, 0):
            found[rule[1]] = count - before.get(rule, 0)


def gpu_cluster(**options: int) -> Evaluation:
    """Return twenty nodes, and a policy with three filters and two scores."""
    rules = policy(
        filters={
            "gpu": "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')",
            "zone": "node.metadata.labels[?'zone'].orValue('z1') == 'z1'",
            "room": "free['cpu'] > 1.0",
        },
        scores={"gpus": "node.metadata.labels[?'gpu'].hasValue() ? 50.0 : 0.0", "packed": "requested['cpu']"},
    )
    return Evaluation([rules], [node(f"n{at}", labels={"gpu": "a"}) for at in range(20)], **options)
