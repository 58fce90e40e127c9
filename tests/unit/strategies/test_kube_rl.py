"""Strategy `kubeRL`, through the custom resource: rows that were computed by a model that shares no code with it."""

from collections.abc import Iterable
from typing import Any

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.learned.pair import NOTHING, Observation, count, node_key, written
from fairlead.learned.pairs import Key, Pairs, shard_of
from fairlead.policy.columns.rule_errors import RuleFailures
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.explain.explainer import explain
from fairlead.strategies.reads import usual_type
from fairlead.webhook.learning.followed_rules import followed_rules
from support.policy import NOW, SECOND, Evaluation, faults, node, ns, pod, policy

HOUR = 3600
START = NOW // SECOND
TRAIN = pod(labels={"app": "train"})
Outcome = tuple[str, float, int]
"""Node, reward, and seconds after START."""


def rule(**params: Any) -> CompiledPolicy:
    return policy(scores={"works": {"kubeRL": params}})


def pairs_of(outcomes: Iterable[Outcome], half_life_s: int, kind: str = "ml/train") -> Pairs:
    found: dict[Key, Any] = {}
    for place, (name, reward, after) in enumerate(outcomes):
        key = kind, node_key(f"u-{name}")
        one = Observation(kind, "ml", key[1], START + after, f"id-{place}", reward)
        found[key] = written(count(found.get(key, NOTHING), [one], half_life_s, START + after).pair)
    return found


def learn(cluster: Evaluation, one: CompiledPolicy, pairs: Pairs | None) -> None:
    """Publish what a rule has learned, in the parts in which it is published."""
    (followed,) = followed_rules([one])
    table = followed.table
    cluster.nodes.learned.keep([table])
    if pairs is None:
        cluster.nodes.put_learned(table, 0, None)
        return
    for number in range(16):
        cluster.nodes.put_learned(table, number, {key: pair for key, pair in pairs.items() if shard_of(key) == number})


def cluster_of(one: CompiledPolicy, names: str = "abc") -> Evaluation:
    return Evaluation([one], [node(name, uid=f"u-{name}") for name in names])


def test_each_outcome_changes_the_mean_reward() -> None:
    rewards = (0.0, 0.0, 0.0, 1.0, 1.0)
    points = []
    for number in range(len(rewards) + 1):
        one = rule()
        cluster = cluster_of(one)
        learn(cluster, one, pairs_of([("a", reward, 0) for reward in rewards[:number]], 6 * HOUR))
        points.append(cluster.scores(TRAIN))
    assert points == [[score, 100.0, 100.0] for score in (100.0, 50.0, 33.0, 25.0, 40.0, 50.0)]


@pytest.mark.parametrize(("after", "score"), [(12 * HOUR, 67.0), (30 * HOUR, 72.0)])
def test_outcomes_fade(after: int, score: float) -> None:
    one = rule(priorPercent=80, halfLife="12h")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0), ("a", 0.5, 6 * HOUR), ("a", 1.0, 12 * HOUR)], 12 * HOUR))
    assert cluster.scores(TRAIN, now=NOW + after * SECOND) == [score, 80.0, 80.0]


def test_a_kept_score_changes_when_its_time_has_come() -> None:
    one = rule(priorPercent=80, halfLife="12h")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0), ("a", 0.5, 6 * HOUR), ("a", 1.0, 12 * HOUR)], 12 * HOUR))
    found = [cluster.scores(TRAIN, now=NOW + at * SECOND)[0] for at in (12 * HOUR, 48_567, 48_569, 30 * HOUR, 117_384)]
    assert found == [67.0, 67.0, 68.0, 72.0, 73.0]


def test_an_outcome_ahead_of_the_clock_weighs_one() -> None:
    one = rule(halfLife="10m")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 300)], 600))
    assert cluster.scores(TRAIN) == [50.0, 100.0, 100.0]


@pytest.mark.parametrize(("days", "score"), [(0, 25.0), (1, 40.0), (2, 57.0), (3, 73.0)])
def test_a_node_on_which_pods_failed_is_tried_again(days: int, score: float) -> None:
    one = rule(halfLife="24h")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0)] * 3, 24 * HOUR))
    assert cluster.scores(TRAIN, now=NOW + days * 24 * HOUR * SECOND)[0] == score


@pytest.mark.parametrize(
    ("who", "kind"),
    [
        (pod(labels={"podtype": "a", "app": "b", "name": "c"}), "ml/a"),
        (pod(labels={"app": "b", "name": "c"}), "ml/b"),
        (pod(labels={"name": "c"}), "ml/c"),
        (pod(labels={"app": ""}), ""),
        (pod(namespace="batch", labels={"app": "b"}), "batch/b"),
        (pod(), ""),
    ],
)
def test_the_usual_type_is_one_of_its_namespace(who: Any, kind: str) -> None:
    assert usual_type(who) == kind


def test_a_pod_of_another_type_knows_nothing_of_it() -> None:
    one = rule()
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0)], 6 * HOUR))
    assert cluster.scores(pod(labels={"app": "serve"})) == [100.0] * 3
    assert cluster.scores(pod(namespace="other", labels={"app": "train"})) == [100.0] * 3


def test_a_type_by_an_expression_of_the_pod_and_its_namespace() -> None:
    one = rule(type="namespaceObject.metadata.labels[?'team'].orValue('') + pod.metadata.labels[?'kind'].orValue('')")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0)], 6 * HOUR, kind="red-x"))
    assert cluster.scores(pod(labels={"kind": "-x"}, of_namespace={"team": "red"})) == [50.0, 100.0, 100.0]
    assert cluster.scores(pod(labels={"kind": "-x"}, of_namespace={"team": "blue"})) == [100.0] * 3
    assert ns() is not None


def test_a_pod_without_a_type_gets_nothing_and_that_is_no_error() -> None:
    one = rule()
    cluster = cluster_of(one)
    learn(cluster, one, {})
    assert cluster.scores(pod()) == [0.0] * 3
    assert cluster.evaluator.tally.drain() == []


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("pod.metadata.labels['missing']", "no such key: 'missing'"),
        ("'x'.replace('x', pod.metadata.labels['long'])", "the pod's type has more than 128 characters"),
    ],
)
def test_a_type_that_cannot_be_told_is_an_error_of_the_rule(kind: str, why: str) -> None:
    one = rule(type=kind)
    cluster = cluster_of(one)
    learn(cluster, one, {})
    assert cluster.scores(pod(labels={"long": "y" * 129})) == [0.0] * 3
    (failure,) = cluster.evaluator.tally.drain()
    assert isinstance(failure, RuleFailures)
    assert (failure.count, failure.last_message) == (3, why)


def test_what_cannot_be_read_adds_nothing() -> None:
    one = rule()
    cluster = cluster_of(one)
    learn(cluster, one, None)
    assert cluster.scores(TRAIN) == [0.0] * 3
    assert [each.last_message for each in cluster.evaluator.tally.drain()] == ["the learned state cannot be read"]
    learn(cluster, one, pairs_of([("a", 0.0, 0)], 6 * HOUR))
    assert cluster.scores(TRAIN) == [50.0, 100.0, 100.0]


def test_a_node_that_is_made_again_begins_anew() -> None:
    one = rule()
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0)], 6 * HOUR))
    assert cluster.scores(TRAIN) == [50.0, 100.0, 100.0]
    cluster.nodes.remove("a")
    cluster.nodes.put(node("a", uid="u-another"))
    assert cluster.scores(TRAIN) == [100.0] * 3


def test_a_publication_computes_the_nodes_that_it_changes_and_no_others() -> None:
    one = rule()
    cluster = cluster_of(one, names="abcdefgh")
    learn(cluster, one, pairs_of([("a", 0.0, 0), ("b", 1.0, 0)], 6 * HOUR))
    cluster.scores(TRAIN)
    before = cluster.evaluator.tally.evaluations["p", "works"]
    learn(cluster, one, pairs_of([("a", 0.0, 0), ("b", 0.0, 0), ("c", 0.5, 0)], 6 * HOUR))
    assert cluster.scores(TRAIN) == [50.0, 50.0, 75.0, *[100.0] * 5]
    assert cluster.evaluator.tally.evaluations["p", "works"] == before + 2


def test_explain_shows_the_numbers_of_the_formula() -> None:
    one = rule(priorPercent=80, halfLife="12h")
    cluster = cluster_of(one)
    learn(cluster, one, pairs_of([("a", 0.0, 0), ("a", 0.5, 6 * HOUR), ("a", 1.0, 12 * HOUR)], 12 * HOUR))
    now = NOW + 12 * HOUR * SECOND
    (found,) = explain(TRAIN, cluster.matched(TRAIN), cluster.nodes, "a", now).scores
    assert found.value == 67.0
    assert found.noted is not None
    values = dict(found.noted.values)
    assert values == {
        "type": "ml/train",
        "value": pytest.approx(0.671494, abs=1e-6),
        "rewards": pytest.approx(1.353553, abs=1e-6),
        "outcomes": pytest.approx(2.207107, abs=1e-6),
        "age_s": 0.0,
    }


def test_a_rule_with_a_table_of_another_meaning_uses_none() -> None:
    one, edited = rule(), rule(settle="1m")
    cluster = cluster_of(edited)
    learn(cluster, one, pairs_of([("a", 0.0, 0)], 6 * HOUR))
    assert cluster.scores(TRAIN) == [0.0] * 3


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"type": "node.metadata.name"}, "type"),
        ({"type": "1 + 1"}, "type"),
        ({"type": "pod."}, "type"),
    ],
)
def test_a_bad_type_is_refused_with_its_field(params: dict[str, Any], field: str) -> None:
    found = faults(scores={"works": {"kubeRL": params}})
    assert [*found] == [f"spec.scores[0].kubeRL.{field}"]


def test_it_is_no_filter() -> None:
    with pytest.raises(InvalidObjectError, match=r"spec\.filters\[0\]\.kubeRL: .*belongs in spec\.scores"):
        faults(filters={"works": {"kubeRL": {}}})
