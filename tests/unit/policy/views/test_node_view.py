"""Pods and nodes as rules see them."""

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import placed_pod
from fairlead.policy.views.pod_view import PodView
from fairlead.policy.views.policy_data import Data, MissingDataError
from fairlead.strategies.facts import ControllerRef, NodeCondition, Unknown
from support.policy import node, placed, pod

AGENT = {
    "metadata": {
        "name": "agent",
        "uid": "u-agent",
        "ownerReferences": [{"kind": "Job", "name": "no"}, {"kind": "DaemonSet", "name": "agent", "controller": True}],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Other", "status": "False"},
        ],
    },
}


def test_free_is_what_is_allocatable_and_not_requested_in_decimal() -> None:
    view = NodeView(
        node().node,
        allocatable={"cpu": 1.0, "memory": 2.0**40, "gpu": 0.0},
        requested={"cpu": 0.9, "memory": 1.0, "x": 5.0},
    )
    assert view.free == {"cpu": 0.1, "memory": 2.0**40 - 1.0, "gpu": 0.0}
    assert view.free is view.free


def test_free_may_be_less_than_nothing() -> None:
    assert node(cpu=1.0, used=1.5).free == {"cpu": -0.5}


def test_without_some_pods_the_rest_is_as_it_was() -> None:
    view = node(pods=[placed("a"), placed("b")], cpu=1.0, used=0.3, labels={"k": "v"}).with_data(Data({"d": 1.0}))
    _ = view.free
    after = view.without({"u-a"}, [{"cpu": 0.1, "new": 1.0}])
    assert [one.name for one in after.pods] == ["b"]
    assert after.requested == {"cpu": 0.2, "new": -1.0}
    assert after.free == {"cpu": 0.8}
    assert (after.data["d"], after.labels) == (1.0, {"k": "v"})
    assert view.requested == {"cpu": 0.3}


def test_a_node_facing_a_victim_is_the_same_node() -> None:
    victim = placed("a")
    view = node(pods=[victim])
    assert view.with_victim(victim).victim is victim
    assert view.with_victim(victim).with_data(Data({"d": 1.0})).victim is victim
    assert view.victim is None


def test_pods_are_found_by_their_controller_in_their_namespace() -> None:
    agent, other = placed_pod(AGENT), placed("x")
    view = node(pods=[agent, other])
    daemon = ControllerRef("DaemonSet", "agent")
    assert [*view.controlled("default", daemon)] == [agent]
    assert [*view.controlled("ml", daemon)] == []
    assert [*view.without({"u-agent"}).controlled("default", daemon)] == []


def test_a_pod_on_a_node_tells_what_strategies_ask() -> None:
    agent, new = placed_pod(AGENT), placed_pod({"metadata": {"name": "new", "namespace": None}})
    assert (agent.ready, agent.phase, agent.deleting, agent.controller) == (
        True,
        "Running",
        False,
        ControllerRef("DaemonSet", "agent"),
    )
    assert agent.ready_since == 1_767_225_600 * 10**9
    assert (new.ready, new.ready_since, new.phase, new.controller, new.namespace) == (False, None, "", None, "default")
    assert dict(new.labels) == {}


def test_conditions_are_found_by_type() -> None:
    view = node(conditions={"Ready": ("True", "1970-01-01T00:00:01Z")})
    assert view.condition("Ready") == NodeCondition("True", 10**9)
    assert view.condition("Other") is None
    assert node().condition("Ready") is None


def test_data_say_why_there_is_no_value() -> None:
    stale = Unknown("data load", "is stale")
    data = Data({"watts": 1.5}, {"load": stale})
    assert (data("watts"), data("load"), str(data("other"))) == (1.5, stale, "data other is missing")
    assert "load" not in data
    assert data.get("load") is None
    with pytest.raises(MissingDataError, match="data load is stale"):
        _ = data["load"]


def test_a_pod_without_a_namespace_is_in_the_default_one() -> None:
    assert PodView(from_json("Pod", {})).namespace == "default"
    assert not pod().knows_namespace
    assert pod(of_namespace={}).knows_namespace


def test_since_is_known_where_somebody_saw_it() -> None:
    view = NodeView(node().node, since={("labels", "gpu", None): 5})
    assert view.since("labels", "gpu", None) == 5
    assert view.with_data(Data()).since("labels", "gpu", None) == 5
    assert view.without(()).since("labels", "gpu", "a") is None
