"""The cache of classes of pods is limited in bytes, which are counted and not measured."""

from collections.abc import Iterable
from sys import getsizeof
from typing import Any

import pytest

from fairlead.policy.evaluate.class_cache import BYTES, NAMED, Classes, size_of
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import LONG, policy_set
from fairlead.policy.nodes.node_table import Nodes
from support.policy import NOW, Clock, Endless, Evaluation, node, pod, policy
from support.policy.asking import NEVER, filtered

OWNER = "pod.metadata.labels['owner']"
RULES = policy(
    filters={"f": f"node.metadata.labels[?'owner'].orValue('') != {OWNER}"},
    scores={"s": f"{OWNER} == 'x' ? 1.0 : 2.0"},
)


def _cluster(limit: int, nodes: int = 500, rules: Any = RULES) -> Evaluation:
    cluster = Evaluation([rules], [node(f"n{at}") for at in range(nodes)])
    cluster.evaluator.classes.limit = limit
    return cluster


def _ask(cluster: Evaluation, owners: Iterable[object]) -> None:
    for owner in owners:
        one = pod("x", labels={"owner": str(owner)})
        cluster.filter(one)
        cluster.scores(one)


def _arrays(classes: Classes) -> int:
    """Return the bytes of verdicts and values alone."""
    verdicts = sum(getsizeof(rule.codes) for one in classes for rule in one.verdicts.rules)
    return verdicts + sum(getsizeof(rule.values) for one in classes for rule in one.scores.rules)


def test_classes_take_no_more_bytes_than_they_may() -> None:
    cluster = _cluster(limit=200_000)
    classes = cluster.evaluator.classes
    for owner in range(100):
        _ask(cluster, [owner])
        assert _arrays(classes) <= classes.size <= classes.limit
        assert classes.size == sum(one.size for one in classes)
    assert 2 < len(classes) < 100


def test_five_thousand_nodes_with_a_hundred_scores_stay_in_the_budget() -> None:
    scores = {f"s{at}": f"{OWNER} == 'x' ? 1.0 : 2.0" for at in range(25)}
    cluster = Evaluation([policy(name, scores=scores) for name in "pqrs"], [node(f"n{at}") for at in range(5_000)])
    classes = cluster.evaluator.classes
    for owner in range(18):
        cluster.scores(pod(labels={"owner": str(owner)}))
        assert _arrays(classes) <= classes.size <= BYTES
    assert 8 <= len(classes) < 18, "256 of them would be 1 GB"


def test_the_last_one_is_kept_however_large_it_is() -> None:
    cluster = _cluster(limit=1)
    for owner in "abc":
        _ask(cluster, [owner])
        assert len(cluster.evaluator.classes) == 1


def test_nodes_that_come_make_classes_go() -> None:
    cluster = _cluster(limit=200_000, nodes=10)
    _ask(cluster, range(20))
    before = len(cluster.evaluator.classes)
    for at in range(10, 1_000):
        cluster.nodes.put(node(f"n{at}"))
    assert cluster.evaluator.precompute(now=NOW, clock=Endless(), deadline_ns=NEVER)
    assert cluster.evaluator.classes.size <= 200_000
    assert len(cluster.evaluator.classes) < before


def test_what_waits_to_be_computed_counts_too() -> None:
    cluster = _cluster(limit=100_000, nodes=2_000)
    for owner in range(20):
        with pytest.raises(TooSlowError):
            cluster.filter(pod(labels={"owner": str(owner)}), clock=Clock(10**9), deadline_ns=0)
    classes = cluster.evaluator.classes
    assert sum(getsizeof(rule.waiting) for one in classes for rule in one.verdicts.rules) <= classes.size <= 100_000


def test_what_rules_have_bound_of_a_pod_counts_and_its_long_texts_are_no_part_of_a_key() -> None:
    rules = policy(filters={"f": "node.metadata.name in pod.metadata.annotations['nodes'].split(',')"})
    cluster = _cluster(2 << 20, 3, rules)
    classes = cluster.evaluator.classes
    for at in range(50):
        cluster.filter(pod(annotations={"nodes": f"n{at}," + "y," * 8_000}))
        assert classes.size <= classes.limit
    assert 1 < len(classes) < 50
    assert max(size_of(one.key) for one in classes) < 1_000
    for one in classes:
        assert size_of(*(rule.decide for rule in one.verdicts.rules)) <= one.size


def test_texts_that_agree_in_their_beginning_are_two_classes() -> None:
    cluster = Evaluation([policy(filters={"f": "pod.metadata.annotations['a'].endsWith('x')"})], [node("a")])
    for end, passed in (("x", ["a"]), ("y", []), ("x", ["a"])):
        assert cluster.filter(pod(annotations={"a": "z" * 2 * LONG + end})).passed == passed
    assert len(cluster.evaluator.classes) == 2


def test_evaluators_that_share_what_is_kept_share_the_bytes_and_nothing_else() -> None:
    classes, nodes = Classes(limit=100_000), Nodes()
    for at in range(500):
        nodes.put(node(f"n{at}"))
    names = [*nodes.slots]
    one = Evaluator(policy_set([policy(filters={"f": f"{OWNER} != ''"})]), nodes, classes=classes)
    other = Evaluator(policy_set([policy(filters={"f": f"{OWNER} == ''"})]), nodes, classes=classes)
    for owner in range(30):
        subject = pod(labels={"owner": str(owner)})
        for each, passed in ((one, 500), (other, 0)):
            found = filtered(each, subject, names)
            assert len(found.passed) == passed
            assert classes.size <= 100_000


def test_only_those_that_were_asked_last_have_names_and_none_that_are_gone() -> None:
    cluster = _cluster(limit=10**9, nodes=10)
    _ask(cluster, range(NAMED + 10))
    classes = cluster.evaluator.classes
    assert sum(one.verdicts.has_names for one in classes) == NAMED
    classes.limit = 1
    _ask(cluster, ["z"])
    assert len(classes._named) == len(classes) == 1
