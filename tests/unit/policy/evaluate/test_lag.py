"""Pods placed since a value was measured, or up to its lag before, count with their requests: until a later value."""

from collections.abc import Mapping

import pytest

from fairlead.policy.nodes.polls import PrometheusPoll, Reading
from fairlead.policy.views.node_view import NodeView
from support.policy import NOW, SECOND, Evaluation, node, on_node, pod, policy

LOAD = PrometheusPoll("default", "load", "instance", None, 15)
LAG_S, PLACED_S = 10, 5
SAFE = policy(
    data=[{"name": "load", "prometheus": {"query": "load"}, "maxAge": "60s"}],
    filters={"safe": {"safe": {"resources": [{"name": "cpu", "mean": "load", "measure": "Used"}], "lag": f"{LAG_S}s"}}},
)
REQUEST = 0.5
"""Of the pod that is asked about: with it and one other on the node, 90 % of 8 cores are exceeded."""


def _node(name: str, *placed: int) -> NodeView:
    seen = node(name)
    entries = [on_node(f"{name}-{at}", NOW + at * SECOND) for at in placed]
    newest = max((NOW + at * SECOND for at in placed), default=0)
    return NodeView(
        seen.node,
        pods=[one.pod for one in entries],
        entries=entries,
        allocatable=seen.allocatable,
        newest_placed=newest,
    )


def _cluster() -> Evaluation:
    """A node on which a pod was placed, and one without pods, whose load was measured before."""
    made = Evaluation([SAFE], [_node("taken", PLACED_S), _node("empty")])
    _asked(made, 0)  # the rules are known before anything is measured
    _measure(made, 0)
    return made


def _measure(cluster: Evaluation, second: int, load: float = 6.0) -> None:
    cluster.nodes.publish({LOAD: Reading({"taken": load, "empty": load}, NOW + second * SECOND)}, NOW + 20 * SECOND)


def _asked(cluster: Evaluation, second: int) -> Mapping[str, str]:
    return cluster.reasons(pod(request={"cpu": REQUEST}), NOW + second * SECOND)


def _evaluations(cluster: Evaluation) -> int:
    return sum(cluster.evaluator.tally.evaluations.values())


REFUSED = {"taken": "p/safe: overload risk on cpu"}


def test_a_later_value_of_the_same_size_lets_pods_on_again() -> None:
    cluster = _cluster()
    assert _asked(cluster, 6) == REFUSED
    before = _evaluations(cluster)
    _measure(cluster, PLACED_S + LAG_S)
    assert _asked(cluster, 20) == {}, "the pod is in the value now"
    assert _evaluations(cluster) == before + 1, "the other node is as it was"


@pytest.mark.parametrize("second", [1, PLACED_S + LAG_S - 1])
def test_nothing_is_computed_again_while_the_pod_still_counts(second: int) -> None:
    cluster = _cluster()
    assert _asked(cluster, 6) == REFUSED
    before = _evaluations(cluster)
    _measure(cluster, second)
    assert _asked(cluster, 20) == REFUSED
    assert _evaluations(cluster) == before


def test_a_value_that_was_measured_earlier_makes_it_count_again() -> None:
    cluster = _cluster()
    _measure(cluster, PLACED_S + LAG_S)
    assert _asked(cluster, 20) == {}
    _measure(cluster, 0)
    assert _asked(cluster, 20) == REFUSED
