"""Rows of rules that learn, through the custom resource: from what is observed, over what is published, to scores.

They were computed by a model that shares no code with it.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from fairlead.learned.content import demands_in, pairs_in
from fairlead.learned.learner import DemandLearner, PairLearner, StateWrite
from fairlead.learned.pair import Observation, node_key
from fairlead.learned.published import LearnedState, decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.explain.explainer import explain, explain_compared
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.learning.followed_rules import followed_requests, followed_rules
from support.policy import NOW, SECOND, Evaluation, node, pod, policy
from support.policy.machines import cores

HOUR = 3600
START = NOW // SECOND
TRAIN = pod(labels={"app": "train"})
X, Y, Z = (0.0, 0), (0.5, 6 * HOUR), (1.0, 12 * HOUR)
Outcome = tuple[float, int]
"""Reward, and seconds after START; it is its own id."""


def stored(write: StateWrite, rv: int) -> LearnedState:
    found = decode({**write.config_map, "metadata": {**write.config_map["metadata"], "resourceVersion": str(rv)}})
    assert found is not None
    return found


class Learning:
    """One `kubeRL` rule on the nodes a and b, and its leader."""

    def __init__(self, **params: Any) -> None:
        compiled = policy(scores={"works": {"kubeRL": params}})
        (followed,) = followed_rules([compiled])
        self.table = followed.table
        self.cluster = Evaluation([compiled], [node(name, uid=f"u-{name}") for name in "ab"])
        self.cluster.nodes.learned.keep([self.table])
        self.leader = PairLearner(followed.rule, followed.counting)
        self.leader.versions.is_listed = True
        self.states: list[LearnedState] = []

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        for reward, after in outcomes:
            one = Observation("ml/train", "ml", node_key("u-a"), START + after, f"{reward} {after}", reward)
            self.leader.observe(one)

    def publish(self, after: int) -> None:
        for write in self.leader.writes(START + after):
            self.states.append(stored(write, len(self.states) + 1))
            self.leader.accepted(write, self.states[-1])
            pairs = pairs_in(self.states[-1].document.value)
            self.cluster.nodes.put_learned(self.table, self.states[-1].number, pairs)

    def score(self, after: int) -> float:
        scores = self.cluster.scores(TRAIN, now=NOW + after * SECOND)
        return scores[0]

    def numbers(self, after: int) -> tuple[float, float, float]:
        now = NOW + after * SECOND
        (found,) = explain(TRAIN, self.cluster.matched(TRAIN), self.cluster.nodes, "a", now).scores
        assert found.noted is not None
        values: dict[str, Any] = dict(found.noted.values)
        return values["rewards"], values["outcomes"], values["value"]


AS_KUBERL_11 = (1.353553, 2.207107, 0.671494)


@pytest.mark.parametrize("heard", [(X, Y, Z), (Z, Y, X, X), (Y, Z, X, Y)], ids=["kuberl-11", "kuberl-12", "another"])
def test_outcomes_that_are_written_once_may_come_in_any_order(heard: Sequence[Outcome]) -> None:
    rule = Learning(priorPercent=80, halfLife="12h")
    rule.observe(heard)
    rule.publish(12 * HOUR)
    assert rule.numbers(12 * HOUR) == pytest.approx(AS_KUBERL_11, abs=1e-5)
    assert [rule.score(at) for at in (12 * HOUR, 48_567, 48_569, 30 * HOUR, 117_382, 117_384)] == [
        *(67.0, 67.0, 68.0),
        *(72.0, 72.0, 73.0),
    ]
    assert rule.leader.take_late() == 0


def test_an_outcome_before_what_was_left_out_of_a_write_is_late() -> None:
    rule = Learning(priorPercent=80, halfLife="12h")
    for outcome in (Z, Y, X):  # kuberl-13
        rule.observe([outcome])
        rule.publish(12 * HOUR)
    assert rule.numbers(12 * HOUR)[:2] == pytest.approx((1.353553, 1.707107), abs=1e-5)
    assert (rule.score(12 * HOUR), rule.leader.take_late(), rule.leader.pending) == (80.0, 1, 0)
    rule.observe([(1.0, 12 * HOUR + 1)])
    rule.publish(12 * HOUR + 1)
    assert [state.publication.late for state in rule.states] == [0, 0, 1]


@pytest.mark.parametrize(("days", "score"), [(0, 25.0), (1, 40.0), (2, 57.0), (3, 73.0)])
def test_failures_fade(days: int, score: float) -> None:
    rule = Learning(halfLife="24h")  # kuberl-14
    for number in range(3):
        rule.leader.observe(Observation("ml/train", "ml", node_key("u-a"), START, f"id-{number}", 0.0))
    rule.publish(0)
    assert rule.score(days * 24 * HOUR) == score


EIGHTS = [cores("a", 2.0, 8.0), cores("b", 5.0, 8.0), cores("c", 12.0, 16.0)]
FOUR = [((START + at, f"u{at}"), (amount,)) for at, amount in enumerate([4.0, 0.5, 1.0, 2.0])]
THREE = {"resources": ["cpu"], "samples": 3, "minSamples": 3}


def comparing(nodes: Sequence[NodeView], **params: Any) -> tuple[CompiledPolicy, Evaluation]:
    compiled = policy(scores={"s": {"pigeon": params}})
    return compiled, Evaluation([compiled], nodes)


def values_of(cluster: Evaluation, who: Any, names: str) -> list[dict[str, Any]]:
    """What explain shows for each node."""
    matched = cluster.matched(who)
    compared = explain_compared(who, matched, cluster.nodes, [*names], NOW)
    found = [explain(who, matched, cluster.nodes, name, NOW, compared).scores[0] for name in names]
    return [dict(one.noted.values) for one in found if one.noted is not None]


@pytest.mark.parametrize("seed", range(8))
def test_requests_may_be_heard_in_any_order_twice_and_by_two_leaders(seed: int) -> None:
    compiled, cluster = comparing(EIGHTS, **THREE)  # pigeon-11, and 13
    (followed,) = followed_requests([compiled])
    leaders = [DemandLearner(followed.rule, followed.demands.samples) for _ in range(2)]
    shuffled = random.Random(seed).sample(FOUR * 2, 8)  # noqa: S311 - a shuffle, the same each time
    for heard, leader in ((shuffled[:4], leaders[0]), (shuffled[4:], leaders[1])):
        leader.versions.is_listed = True
        for arrival, amounts in heard:
            leader.observe(arrival, amounts)
    (accepted,), (refused,) = (leader.writes(START) for leader in leaders)
    state = stored(accepted, 1)
    leaders[1].versions.refuse(refused.number)
    leaders[1].versions.was_read(refused.number, state)
    for write in leaders[1].writes(START):
        state = stored(write, 2)
    requests = LearnedRequests()
    requests.keep({followed.table: followed.demands})
    requests.put(followed.table, demands_in(state.document.value))
    cluster.nodes.learned_demands = requests
    known = requests(compiled.uid or compiled.name, "s", followed.demands)
    assert (known.number, *known.mean, *known.second[0]) == pytest.approx((3, 1.166667, 1.75), abs=1e-5)
    who = pod(request={"cpu": 1.0})
    assert cluster.scores(who) == pytest.approx([10.0, 92.921, 100.0], abs=1e-3)
    shown = values_of(cluster, who, "abc")
    assert [one["v"] for one in shown] == pytest.approx([0.267261, 0.130461, 0.118783], abs=1e-5)
    assert {round(one["gammaDemand"], 6) for one in shown} == {0.534522}


@pytest.mark.parametrize(
    ("nodes", "params", "request_", "scores", "values"),
    [
        pytest.param(
            [cores("a", 2.0, 10.0), cores("b", 5.0, 10.0), cores("c", 8.0, 10.0)],
            {},
            1.0,
            [100.0, 51.31, 10.0],
            [0.20548, 0.249444, 0.286744],
            id="pigeon-1",
        ),
        pytest.param(
            [cores("a", 7.6, 8.0), cores("b", 4.0, 8.0), cores("c", 1.0, 8.0)],
            {"floors": [{"name": "cpu", "quantity": "500m"}]},
            0.0,
            [0.0, 10.0, 100.0],
            [None, 0.337011, 0.312972],
            id="pigeon-12",
        ),
    ],
)
def test_balance(
    nodes: Sequence[NodeView], params: dict[str, Any], request_: float, scores: list[float], values: list[float | None]
) -> None:
    _, cluster = comparing(nodes, objective="Balance", resources=["cpu"], **params)
    who = pod(request={"cpu": request_})
    assert cluster.scores(who) == pytest.approx(scores, abs=1e-3)
    found = [one.get("v") for one in values_of(cluster, who, "abc")]
    assert [one is None for one in found] == [one is None for one in values]
    assert [one for one in found if one is not None] == pytest.approx([one for one in values if one], abs=1e-5)
