"""With the real scheduler, policies decide where pods go on kwok nodes, whom they evict, and what users read."""

from collections.abc import Mapping, Sequence

import pytest

from extender import Stage
from support.process.serving import Serving
from testbed.api import Api, Object
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

_GPU: Object = {
    "name": "gpu-class",
    "expression": "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels['gpu']",
    "reason": "wrong GPU class",
}
_PERMITTED: Object = {
    "name": "permitted",
    "expression": "node.metadata.labels['pool'] == 'ours'",
    "reason": "not our pool",
}
_POINTS: Object = {"name": "points", "weight": 20, "expression": "double(node.metadata.labels['points'])"}


def _label(api: Api, nodes: Sequence[str], **labels: str) -> None:
    for node in nodes:
        api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def test_filter_score_and_binding_decide(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    nodes = kwok_nodes(6)
    for number, node in enumerate(nodes):
        _label(stage.api, [node], gpu="ab"[number % 2], points=str(10 * number))
    annotation = {"key": "fairlead.dev/class", "expression": "node.metadata.labels['gpu'] + ' by points'"}
    serving.put("gpu", filters=[_GPU], scores=[_POINTS], binding={"annotations": [annotation]})
    serving.start()
    stage.start(*serving.entries())
    for gpu, best in {"a": nodes[4], "b": nodes[5]}.items():
        for number in range(3):
            name = f"{gpu}-{number}"
            stage.make_pod(name, labels={"gpu": gpu})
            assert stage.placed(name) == best
            assert stage.pod(name)["metadata"]["annotations"] == {"fairlead.dev/class": f"{gpu} by points"}
            assert stage.events(name) == {("Scheduled", f"Successfully assigned {stage.name}/{name} to {best}")}


def test_nodes_fill_in_the_order_of_all_points(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    """Two policies add up; the lowest total is shifted to zero and not sent; each node takes one pod."""
    nodes = kwok_nodes(5, equal(pods=1))
    for node, points in zip(nodes, (40, 0, 20, 50, 30), strict=True):
        _label(stage.api, [node], points=str(points))
    serving.put("one", scores=[_POINTS])
    serving.put(
        "two",
        failurePolicy="Ignore",
        scores=[_POINTS | {"expression": "100.0 - 2.0 * double(node.metadata.labels['points'])"}],
    )
    serving.start()
    stage.start(*serving.entries())
    seen = []
    for number in range(len(nodes)):
        stage.make_pod(f"web-{number}")
        seen.append(stage.placed(f"web-{number}"))
    assert seen == [nodes[index] for index in (1, 2, 4, 0, 3)]
    # of the last pod the scheduler has one node left, and asks for no scores
    ahead = sum(serving.metric("fairlead_webhook_rehearsals_total", result=one) for one in ("hit", "refreshed"))
    assert ahead + serving.metric("fairlead_webhook_rehearsals_total", result="miss") == len(nodes) - 1
    assert ahead > 0, "the calls are those that were expected"


_INTREE = 200
"""What the scheduler gives the only node of a preferred affinity: 100 points, and the weight of its plugin is 2."""
_WEIGHTS = {_INTREE // 100 - 1: 1, _INTREE // 100 + 1: 0}


def test_a_weight_is_as_that_of_a_plugin_of_the_scheduler(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """We prefer the first node, the pods themselves the second."""
    nodes = kwok_nodes(2)
    first = {"name": "first", "expression": f"node.metadata.name == '{nodes[0]}' ? 100.0 : 0.0"}
    for weight in _WEIGHTS:
        match = {"podSelector": {"matchLabels": {"weight": str(weight)}}}
        serving.put(f"weight-{weight}", match=match, scores=[first | {"weight": weight}])
    serving.start()
    stage.start(*serving.entries())
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [nodes[1]]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [term]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    for weight, want in _WEIGHTS.items():
        stage.make_pod(f"web-{weight}", affinity=affinity, labels={"weight": str(weight)})
        assert stage.placed(f"web-{weight}") == nodes[want]


def test_refused_pods_show_every_reason_in_their_event(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    """Those of both gates, though the first leaves nodes for the second, which leaves none."""
    nodes = kwok_nodes(5)
    _label(stage.api, nodes[:3], pool="ours", gpu="a")
    _label(stage.api, nodes[3:], pool="theirs", gpu="a")
    serving.put("first", filters=[_PERMITTED])
    serving.put("second", failurePolicy="Ignore", filters=[_GPU])
    serving.start()
    stage.start(*serving.entries())
    stage.make_pod("web", labels={"gpu": "b"})
    want = "0/5 nodes are available: 2 not our pool, 3 wrong GPU class."
    assert stage.refusal("web").startswith(want)
    assert {(reason, note.startswith(want)) for reason, note in stage.events("web")} == {("FailedScheduling", True)}


_VETO = {"filters": [_PERMITTED]}
_PROTECT = {
    "preemption": {
        "protect": [{"name": "keepers", "expression": "victim.metadata.labels[?'keep'].orValue('') == 'true'"}]
    }
}
_PREEMPTIONS: Mapping[str, Object] = {
    "a filter": _VETO,
    "a filter of a policy that may be ignored": _VETO | {"failurePolicy": "Ignore"},
    "a protection": _PROTECT,
}


@pytest.mark.parametrize("case", _PREEMPTIONS)
def test_preemption_evicts_on_permitted_nodes_only(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, case: str
) -> None:
    """All nodes are full and half of them vetoed, on which it would cost the scheduler fewer victims."""
    nodes = kwok_nodes(4, equal(cpu="2"))
    vetoed, permitted = nodes[:2], nodes[2:]
    _label(stage.api, vetoed, pool="theirs")
    _label(stage.api, permitted, pool="ours")
    for node in vetoed:
        stage.make_pod(f"large-{node}", on=node, cpu="2", labels={"keep": "true"})
    for node in permitted:
        stage.make_pods([f"small-{node}-{number}" for number in range(2)], on=node, cpu="1")
    serving.put("veto", **_PREEMPTIONS[case])
    serving.start()
    stage.start(*serving.entries())
    before = stage.living()
    stage.make_pod("urgent", cpu="2", urgent=True)
    node = stage.placed("urgent")
    assert node in permitted
    assert stage.living() == before - {f"small-{node}-0", f"small-{node}-1"} | {"urgent"}


def test_nobody_dies_where_everybody_is_protected(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    (node,) = kwok_nodes(1, equal(cpu="2"))
    stage.make_pod("keeper", on=node, cpu="2", labels={"keep": "true"})
    serving.put("keep", **_PROTECT)
    serving.start()
    stage.start(*serving.entries())
    stage.make_pod("urgent", cpu="2", urgent=True)
    assert stage.refusal("urgent").endswith("preemption: no candidate node for preemption")
    assert stage.living() == {"keeper", "urgent"}


def test_a_pod_whose_victims_are_protected_no_longer_is_retried_when_any_pod_leaves_a_node(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """The scheduler's own filter rejected it, so that it is not woken as pods are that rules reject."""
    full, other = kwok_nodes(2, equal(cpu="2"))
    keep = {"keep": "true"}
    stage.make_pod("keeper", on=full, cpu="2", labels=keep)
    stage.make_pod("large", on=other, cpu="1900m", labels=keep)
    stage.make_pod("small", on=other, cpu="100m", labels=keep)
    serving.put("keep", **_PROTECT)
    serving.start()
    stage.start(*serving.entries())
    stage.make_pod("urgent", cpu="2", urgent=True)
    assert stage.refusal("urgent").endswith("preemption: no candidate node for preemption")
    serving.edit(lambda: serving.put("keep", filters=[{"name": "any", "expression": "true"}]))
    # a pod that a rule rejected is retried for this
    stage.api.patch(f"/api/v1/nodes/{full}", {"metadata": {"annotations": {"changed": ""}}})
    stage.make_pod("later")
    stage.placed("later")
    assert "keeper" in stage.living()
    assert not stage.pod("urgent")["spec"].get("nodeName")
    stage.api.delete(f"{stage.path}/small", gracePeriodSeconds="0")
    assert stage.placed("urgent") in (full, other)


def test_no_version_up_to_now_evicts_for_a_refusal_that_evicting_would_cure(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """Decision 12: it would be an error for every node. So such a refusal is told as one that nothing cures."""
    for node in kwok_nodes(3):
        stage.make_pod(f"noisy-{node}", on=node, labels={"noise": "loud"})
    quiet = "!pods.exists(one, one.metadata.labels[?'noise'].orValue('') == 'loud')"
    serving.put("quiet", filters=[{"name": "quiet", "expression": quiet, "reason": "too noisy", "resolvable": True}])
    serving.start()
    stage.start(*serving.entries())
    before = stage.living()
    stage.make_pod("urgent", urgent=True)
    message = stage.refusal("urgent")
    assert message.startswith("0/3 nodes are available: 3 too noisy")
    assert message.endswith("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
    assert stage.living() == before | {"urgent"}


def test_a_rule_edit_takes_effect_on_the_next_pod(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    """The scheduler is not told of it."""
    nodes = kwok_nodes(4)
    _label(stage.api, nodes[:1], pool="ours")
    _label(stage.api, nodes[1:2], pool="theirs")
    _label(stage.api, nodes[2:], pool="other")
    serving.put("pool", filters=[_PERMITTED])
    serving.start()
    stage.start(*serving.entries())
    stage.make_pod("before")
    assert stage.placed("before") == nodes[0]
    theirs = _PERMITTED | {"expression": "node.metadata.labels['pool'] == 'theirs'"}
    serving.edit(lambda: serving.put("pool", filters=[theirs]))
    stage.make_pod("after")
    assert stage.placed("after") == nodes[1]


def test_pods_are_bound_also_when_their_policies_are_off_or_gone(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """The scheduler's configuration, which says that we bind, is not ours to change."""
    nodes = kwok_nodes(2)
    first = {"name": "first", "expression": f"node.metadata.name == '{nodes[0]}'"}
    serving.put("pool", filters=[first])
    serving.start()
    stage.start(*serving.entries())
    serving.edit(lambda: serving.put("pool", mode="Disabled", filters=[first]))
    stage.make_pod("off")
    stage.placed("off")
    serving.edit((serving.policies / "pool.yaml").unlink)
    stage.make_pod("gone")
    stage.placed("gone")


_RAISES = "node.metadata.labels['nobody-has-this'] == 'x'"
_RAISING: Mapping[str, tuple[Object, str]] = {
    "rejects": ({"filters": [{"name": "odd", "expression": _RAISES, "reason": "odd"}]}, "3 rule odd cannot be decided"),
    "passes": ({"filters": [{"name": "odd", "expression": _RAISES, "onError": "Pass"}]}, ""),
    "scores": ({"scores": [{"name": "odd", "expression": f"{_RAISES} ? 1.0 : 2.0"}]}, ""),
    "protects": ({"preemption": {"protect": [{"name": "odd", "expression": _RAISES}]}}, ""),
    "annotates": (
        {"binding": {"annotations": [{"key": "fairlead.dev/odd", "expression": "node.metadata.labels['odd']"}]}},
        "",
    ),
    "matches": (
        {
            "match": {"conditions": [{"name": "odd", "expression": "pod.metadata.labels['odd'] == 'x'"}]},
            "filters": [{"name": "all", "expression": "true"}],
        },
        "3 cannot tell whether policy matches applies to this pod",
    ),
}


def test_a_rule_that_raises_on_every_node_does_what_its_policy_says(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    kwok_nodes(3)
    for case, (spec, _) in _RAISING.items():
        match = {"podSelector": {"matchLabels": {"case": case}}} | spec.get("match", {})
        serving.put(case, **spec | {"match": match})
    serving.start()
    stage.start(*serving.entries())
    for case in _RAISING:
        stage.make_pod(case, labels={"case": case})
    for case, (_, refusal) in _RAISING.items():
        if refusal:
            assert stage.refusal(case).startswith(f"0/3 nodes are available: {refusal}")
        else:
            assert stage.placed(case)
            assert "fairlead.dev/odd" not in stage.pod(case)["metadata"].get("annotations", {})


_NODES, _PODS, _MANY = 30, 150, 27


def test_equal_pods_on_equal_nodes_use_as_many_nodes_as_without_us(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    """Nodes so large that no pod changes an in-tree score; the ballast takes those off their maximum.

    Without any extender the scheduler treats equal pods in batches and may use few nodes: so they are also compared
    with what lots would use.
    """
    for node in kwok_nodes(_NODES, equal(cpu="1000000", memory="1Pi", pods=1000)):
        stage.make_pod(f"ballast-{node}", on=node, cpu="1000")
    serving.put("passes", filters=[{"name": "all", "expression": "true"}])
    serving.put("scores", scores=[{"name": "equal", "expression": "double(node.metadata.name.size())"}])
    serving.start()
    plain = f"{stage.name}-plain"
    stage.start(profiles=[{"schedulerName": plain}])
    stage.start(*serving.entries())
    stage.make_pods([f"plain-{number}" for number in range(_PODS)], scheduler=plain)
    stage.make_pods([f"ours-{number}" for number in range(_PODS)])
    stage.all_placed()
    placed = [(pod.partition("-")[0], node) for pod, node in stage.places().items()]
    used = {whose: len({node for one, node in placed if one == whose}) for whose in ("plain", "ours")}
    print(f"nodes used of {_NODES}: {used}")  # pytest -rP shows it
    assert used["ours"] >= max(_MANY, used["plain"] - _NODES + _MANY)
