"""pigeon through the custom resource: worked examples, who belongs to the system, and what explain shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.learned.demands import NO_DEMANDS, Demands, unite
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.explain.explainer import explain, explain_compared, explain_scores
from fairlead.policy.nodes.node_table import RequestNodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.builtin.pigeon import NO_NODE, OUTSIDE
from support.policy import NOW, Evaluation, faults, pod, policy
from support.policy.asking import scored
from support.policy.machines import cores, learn, machine

TENS = [cores("a", 2.0, 10.0), cores("b", 5.0, 10.0), cores("c", 8.0, 10.0)]
ONES = [cores("a", 0.2, 1.0), cores("b", 0.5, 1.0), cores("c", 0.8, 1.0)]
EIGHTS = [cores("a", 2.0, 8.0), cores("b", 5.0, 8.0), cores("c", 12.0, 16.0)]
EQUAL: Demands = {(at, "u"): (0.1,) for at in range(20)}
MIXED: Demands = {(at, "u"): (0.05 if at < 90 else 0.5,) for at in range(100)}
FOUR: Demands = {(at, f"u{at}"): (amount,) for at, amount in enumerate([4.0, 0.5, 1.0, 2.0])}
THREE = {"objective": "Adaptive", "samples": 3, "minSamples": 3}


def cluster(nodes: Sequence[NodeView], demands: Demands = NO_DEMANDS, **params: Any) -> Evaluation:
    """Nodes and a policy with one score; it goes by cpu alone unless resources are given."""
    rule = {"pigeon": {"resources": ["cpu"], **params}}
    found = Evaluation([policy(scores={"s": rule})], nodes)
    learn(found.nodes, demands)
    return found


def asking(cpu: float, **more: float) -> Any:
    return pod(request={"cpu": cpu, **more})


_ROWS: dict[str, tuple[Evaluation, Any, list[float]]] = {
    "Balance spreads": (cluster(TENS, objective="Balance"), asking(1.0), [100.0, 51.3103, 10.0]),
    "Consolidate packs": (cluster(TENS, objective="Consolidate"), asking(1.0), [10.0, 53.3053, 100.0]),
    "Adaptive spreads equal pods": (cluster(ONES, EQUAL), asking(0.1), [100.0, 51.3103, 10.0]),
    "Adaptive packs a mixture": (cluster(ONES, MIXED), asking(0.1), [10.0, 58.6897, 100.0]),
    "Adaptive learns from the newest pods": (cluster(EIGHTS, FOUR, **THREE), asking(1.0), [10.0, 92.9210, 100.0]),
    "a floor counts, and decides whether a pod fits": (
        cluster(
            [cores("a", 7.6, 8.0), cores("b", 4.0, 8.0), cores("c", 1.0, 8.0)],
            objective="Balance",
            floors=[{"name": "cpu", "quantity": "500m"}],
        ),
        asking(0.0),
        [0.0, 10.0, 100.0],
    ),
    "a request above the floor counts itself": (
        cluster(TENS, objective="Balance", floors=[{"name": "cpu", "quantity": "1m"}]),
        asking(1.0),
        [100.0, 51.3103, 10.0],
    ),
    "a pod that fills a node to the brim fits": (
        cluster([cores("a", 0.7, 1.0), cores("b", 0.1, 1.0)], objective="Balance"), asking(0.3), [10.0, 100.0],
    ),
    "what is rounded away does not keep it from that": (
        cluster([cores("a", 0.1 * 7, 1.0), cores("b", 0.1, 1.0)], objective="Balance"), asking(0.3), [10.0, 100.0],
    ),
    "a pod that is larger than what is left does not": (
        cluster([cores("a", 0.7, 1.0), cores("b", 0.1, 1.0)], objective="Balance"), asking(0.3 + 5e-9), [0.0, 100.0],
    ),
    "nodes of several sizes": (
        cluster([cores("a", 1.0, 2.0), cores("b", 4.0, 8.0), cores("c", 8.0, 16.0)], objective="Balance"),
        asking(0.5),
        # The deviations with the pod on a, b and c are 0.117851, 0.029463 and 0.014731.
        [10.0, 87.1429, 100.0],
    ),
    "less than nothing is requested": (
        cluster([cores("a", -1.0, 10.0), cores("b", 5.0, 10.0)], objective="Balance"), asking(10.5), [100.0, 0.0],
    ),
    "a pod that fits nowhere": (cluster(TENS, objective="Consolidate"), asking(11.0), [0.0, 0.0, 0.0]),
    "a pod that changes nothing": (cluster(TENS, objective="Balance"), asking(0.0), [100.0, 100.0, 100.0]),
    "nodes that are alike": (
        cluster([cores(name, 0.1 + 0.2, 1.0) for name in "abc"], objective="Consolidate"),
        asking(0.0),
        [100.0, 100.0, 100.0],
    ),
    "Consolidate of empty nodes": (
        cluster([cores("a", 0.0, 1.0), cores("b", 0.0, 2.0)], objective="Consolidate"), asking(0.0), [100.0, 100.0],
    ),
    "Consolidate of nodes of which the pod fills the last": (
        cluster([cores("a", 1.0, 1.0), cores("b", 0.5, 1.0)], objective="Consolidate"), asking(0.5), [0.0, 100.0],
    ),
    "more is requested than there is": (
        cluster([cores(name, used, 10.0) for name, used in zip("abcd", (12.0, 8.0, 5.0, 2.0), strict=True)],
                objective="Balance"),
        asking(1.0),
        # The deviations with the pod on b, c and d, and a at 1, are 0.320156, 0.295804 and 0.269258.
        [0.0, 10.0, 53.0604, 100.0],
    ),
    "the first resource is the prime one": (
        cluster(
            [
                machine("a", {"memory": (1.0, 10.0), "cpu": (9.0, 10.0)}),
                machine("b", {"memory": (5.0, 10.0), "cpu": (1.0, 10.0)}),
            ],
            objective="Balance",
            resources=["memory", "cpu"],
        ),
        asking(1.0, memory=1.0),
        [100.0, 10.0],
    ),
    "the pod has to fit in each": (
        cluster(
            [
                machine("a", {"memory": (1.0, 10.0), "cpu": (9.5, 10.0)}),
                machine("b", {"memory": (5.0, 10.0), "cpu": (1.0, 10.0)}),
            ],
            objective="Balance",
            resources=["memory", "cpu"],
        ),
        asking(1.0, memory=1.0),
        [0.0, 100.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "who", "want"), _ROWS.values(), ids=_ROWS)
def test_rows(found: Evaluation, who: Any, want: list[float]) -> None:
    assert found.scores(who) == pytest.approx(want, abs=1e-3)


def test_what_is_learned_may_be_heard_in_any_order_and_twice() -> None:
    heard = [dict([one]) for one in FOUR.items()]
    led = [unite(unite({}, heard[first], 3), heard[last], 3) for first, last in ((3, 1), (2, 0))]
    for united in (unite(led[0], led[1], 3), unite(led[1], {**led[0], **led[1]}, 3)):
        assert cluster(EIGHTS, united, **THREE).scores(asking(1.0)) == pytest.approx([10.0, 92.9210, 100.0], abs=1e-3)


@pytest.mark.parametrize(
    ("params", "known", "decides"),
    [
        ({}, 9, False),
        ({}, 10, True),
        ({"samples": 4}, 3, False),
        ({"samples": 4}, 4, True),
        ({"minSamples": 1}, 0, False),
        ({"minSamples": 1}, 1, True),
        ({"objective": "Balance", "minSamples": 1}, 0, True),
    ],
)
def test_adaptive_adds_nothing_before_it_knows_enough_pods(params: dict[str, Any], known: int, decides: bool) -> None:
    found = cluster(ONES, {one: EQUAL[one] for one in list(EQUAL)[:known]}, **params)
    assert (found.scores(asking(0.1)) != [0.0, 0.0, 0.0]) == decides


_OTHERS = {
    "that has not the label": machine("x", {"cpu": (9.0, 10.0)}, labels={"pool": "web"}),
    "without any label": machine("x", {"cpu": (9.0, 10.0)}),
    "that is not ready": machine("x", {"cpu": (9.0, 10.0)}, labels={"pool": "batch"}, ready="False"),
    "of which nobody knows": machine("x", {"cpu": (9.0, 10.0)}, labels={"pool": "batch"}, ready="Unknown"),
    "that is cordoned": machine("x", {"cpu": (9.0, 10.0)}, labels={"pool": "batch"}, is_cordoned=True),
    "that has none of it": machine("x", {"cpu": (0.0, 0.0)}, labels={"pool": "batch"}),
    "that does not have the resource": machine("x", {"memory": (1.0, 2.0)}, labels={"pool": "batch"}),
}
BATCH = [
    machine("a", {"cpu": (2.0, 10.0)}, labels={"pool": "batch"}),
    machine("b", {"cpu": (5.0, 10.0)}, labels={"pool": "batch"}, ready=""),
    machine("c", {"cpu": (8.0, 10.0)}, labels={"pool": "batch"}),
]


@pytest.mark.parametrize("other", _OTHERS.values(), ids=_OTHERS)
def test_a_node_outside_counts_for_nothing_and_gets_the_mean(other: NodeView) -> None:
    found = cluster([*BATCH, other], objective="Balance", system={"matchLabels": {"pool": "batch"}})
    scores = [100.0, 51.3103, 10.0, (100.0 + 51.3103 + 10.0) / 3]
    assert found.scores(asking(1.0)) == pytest.approx(scores, abs=1e-3)
    assert found.scores(asking(1.0), ["x"]) == [0.0]


def test_nodes_that_are_not_asked_about_count() -> None:
    found = cluster([*TENS, cores("d", 10.0, 10.0)], objective="Balance")
    # The deviations are 0.269258, 0.295804 and 0.320156.
    assert found.scores(asking(1.0), ["c", "b", "a"]) == pytest.approx([10.0, 53.0604, 100.0], abs=1e-3)


def test_a_call_about_one_node() -> None:
    found = cluster(TENS, objective="Balance")
    assert found.scores(asking(1.0), ["c"]) == [100.0]
    assert found.scores(asking(3.0), ["c"]) == [0.0]


def test_a_call_that_brings_its_own_nodes_is_about_the_clusters_system() -> None:
    found = cluster(TENS, objective="Balance")
    brought = RequestNodes(found.nodes)
    brought.put(machine("c", {"cpu": (0.0, 99.0)}))  # it counts as the cluster knows it
    brought.put(machine("b", {"cpu": (5.0, 10.0)}, uid="another"))
    brought.put(machine("x", {"cpu": (0.0, 10.0)}))
    evaluator = Evaluator(found.evaluator.policies, brought)
    assert scored(evaluator, asking(1.0), ["c"]) == [100.0]
    assert scored(evaluator, asking(3.0), ["c", "b", "x"]) == [0.0, 0.0, 0.0]
    brought.put(machine("a", {"cpu": (0.0, 99.0)}))
    assert scored(evaluator, asking(1.0), ["a", "c", "b", "x"]) == [100.0, 10.0, 55.0, 55.0]


@pytest.mark.parametrize("objective", ["Balance", "Consolidate", "Adaptive"])
def test_an_empty_system_adds_nothing(objective: str) -> None:
    found = cluster(TENS, EQUAL, objective=objective, system={"matchLabels": {"pool": "batch"}})
    assert found.scores(asking(1.0)) == [0.0, 0.0, 0.0]
    (row, *_) = explain_scores(asking(1.0), found.matched(asking(1.0)), found.nodes, ["a"], NOW)
    assert row.scores[0].why == str(NO_NODE)


def noted(found: Evaluation, who: Any, name: str) -> Mapping[str, object]:
    """What explain shows of a node."""
    matched = found.matched(who)
    compared = explain_compared(who, matched, found.nodes, found.names, NOW)
    (of_node,) = explain(who, matched, found.nodes, name, NOW, compared).scores
    assert of_node.noted is not None
    return {key: value for key, value in of_node.noted.values.items() if value is not None}


def test_explain_shows_every_number_of_balance() -> None:
    assert noted(cluster(TENS, objective="Balance"), asking(1.0), "b") == {
        "objective": "Balance",
        "resources": ("cpu",),
        "request": [1.0],
        "nodes": 3,
        "mean": (0.5,),
        "requested": (5.0,),
        "allocatable": (10.0,),
        "shares": (0.5,),
        "sharesWithPod": (0.6,),
        "fits": True,
        "v": pytest.approx(0.249444, abs=1e-5),
    }


def test_explain_shows_every_number_of_adaptive() -> None:
    assert noted(cluster(EIGHTS, FOUR, **THREE), asking(1.0), "a") == {
        "objective": "Adaptive",
        "resources": ("cpu",),
        "request": [1.0],
        "nodes": 3,
        "mean": (pytest.approx(0.541667, abs=1e-5),),
        "pods": 3,
        "minSamples": 3,
        "meanRequest": (pytest.approx(1.166667, abs=1e-5),),
        "meanCapacity": (pytest.approx(32 / 3),),
        "gammaDemand": pytest.approx(0.534522, abs=1e-5),
        "requested": (2.0,),
        "allocatable": (8.0,),
        "shares": (0.25,),
        "sharesWithPod": (0.375,),
        "fits": True,
        "gammaSystem": pytest.approx(0.267261, abs=1e-5),
        "v": pytest.approx(0.267261, abs=1e-5),
    }


def test_explain_shows_where_the_pod_does_not_fit_and_who_is_outside() -> None:
    found = cluster([*TENS, machine("x", {})], objective="Balance")
    shown = noted(found, asking(3.0), "c")
    assert (shown["fits"], shown["sharesWithPod"], "v" in shown) == (False, (1.1,), False)
    rows = explain_scores(asking(3.0), found.matched(asking(3.0)), found.nodes, ["c", "x"], NOW)
    assert [(row.scores[0].value, row.scores[0].why) for row in rows] == [(0.0, ""), (None, str(OUTSIDE))]


def test_explain_shows_how_many_pods_are_known() -> None:
    found = cluster(EIGHTS, {one: EQUAL[one] for one in list(EQUAL)[:4]})
    assert (noted(found, asking(1.0), "a")["pods"], noted(found, asking(1.0), "a")["minSamples"]) == (4, 10)
    (row,) = explain_scores(asking(1.0), found.matched(asking(1.0)), found.nodes, ["a"], NOW)
    assert row.scores[0].why == "the rule knows fewer than 10 pods"


_BAD = {
    "a resource twice": ({"resources": ["cpu", "cpu"]}, "resources[1]", "'cpu' is a duplicate"),
    "a floor twice": (
        {"floors": [{"name": "cpu", "quantity": "1"}, {"name": "cpu", "quantity": "2"}]},
        "floors[1]",
        "name 'cpu' is a duplicate",
    ),
    "a floor of what is not listed": (
        {"resources": ["cpu"], "floors": [{"name": "memory", "quantity": "1"}]},
        "floors[0].name",
        "a floor is of a resource that counts",
    ),
    "a floor of what is not listed by default": (
        {"floors": [{"name": "pods", "quantity": "1"}]}, "floors[0].name", "a floor is of a resource that counts",
    ),
    "more pods than are known": ({"samples": 20, "minSamples": 21}, "minSamples", "minSamples is at most samples"),
    "more pods than are known by default": ({"minSamples": 101}, "minSamples", "minSamples is at most samples"),
}  # fmt: skip


@pytest.mark.parametrize(("params", "field", "want"), _BAD.values(), ids=_BAD)
def test_what_is_written_wrongly_is_refused(params: dict[str, Any], field: str, want: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        policy(scores={"s": {"pigeon": params}})
    (said,) = refused.value.errors
    assert str(said).startswith(f"spec.scores[0].pigeon.{field}: {want}")


def test_a_rule_with_normalize_does_not_compile() -> None:
    assert faults(scores={"s": {"pigeon": {}, "normalize": "MinMax"}}) == {
        "spec.scores[0].normalize": (
            "pigeon has objective, which stands in place of normalize; leave out normalize or objective"
        )
    }


def test_status_says_what_the_rule_uses() -> None:
    (report,) = policy(scores={"s": {"pigeon": {"resources": ["cpu"]}}}).reports
    assert report.uses == ("learned requests.cpu", "request.cpu", "system.cpu")
