"""What an extender hears of Kubernetes' own groups of pods (PodGroup), which 1.37 has behind a gate that is off."""

from collections.abc import Iterator
from itertools import count

import pytest

from extender import Scene
from extender.replies import by_pod, passing, refusing
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, raised_with_groups

_MEMBERS = ("red", "green", "blue", "white")
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_numbers = count()


@pytest.fixture(scope="module")
def control_plane(this_run: str, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster that serves PodGroups."""
    with raised_with_groups(f"test-native-{this_run}", kubernetes_version, pytestconfig) as cluster:
        yield cluster


def make_group(scene: Scene, *members: str, size: int = 0, cpu: str = "1", **spec: object) -> None:
    """Make a group of these pods, which start together if there are as many as its size."""
    group = f"group-{next(_numbers)}"
    policy = {"gang": {"minCount": size or len(members)}}
    body: Object = {"metadata": {"name": group}, "spec": {"schedulingPolicy": policy} | spec}
    scene.api.create(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{scene.name}/podgroups", body)
    for name in members:
        container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
        pod: Object = {
            "schedulerName": scene.name,
            "schedulingGroup": {"podGroupName": group},
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        priority = {name: spec[name] for name in ("priorityClassName",) if name in spec}
        scene.api.create(scene.path, {"metadata": {"name": name}, "spec": pod | priority})


def names_of(scene: Scene) -> list[tuple[str, str]]:
    """Return the calls so far, each with its verb and its pod."""
    return [(call.path.rpartition("/")[2], call.pod) for call in scene.recorder.calls]


def test_each_member_is_asked_about_before_one_is_bound(scene: Scene) -> None:
    nodes = scene.make_nodes(4, cpu="1")
    scene.start(scene.recorder.entry("gate", "filter", "prioritize", "bind", weight=1))
    scene.recorder.replies["gate/bind"] = scene.bind
    make_group(scene, *_MEMBERS)
    assert sorted(scene.all_placed()) == nodes
    verbs = [verb for verb, _ in names_of(scene)]
    first = verbs.index("bind")
    assert verbs[first:] == ["bind"] * 4, "no member is asked about after that"
    assert {pod for verb, pod in names_of(scene)[:first] if verb == "filter"} == {*_MEMBERS}
    # Each one sees one node less, although no sibling has a node by the API.
    asked = [len(call.nodes) for call in scene.recorder.of("gate/filter")][-4:]
    assert asked == [4, 3, 2, 1]


def test_none_starts_on_fewer_nodes_than_it_needs_and_all_once_there_is_one_more(scene: Scene) -> None:
    *_, last = scene.make_nodes(4, cpu="1")
    scene.api.patch(f"/api/v1/nodes/{last}", {"spec": {"unschedulable": True}})
    scene.start(scene.recorder.entry("gate", "filter", "bind"), podMaxBackoffSeconds=1)
    scene.recorder.replies["gate/bind"] = scene.bind
    make_group(scene, *_MEMBERS)
    for name in _MEMBERS:
        scene.refusal(name)
    assert scene.recorder.of("gate/bind") == []
    scene.api.patch(f"/api/v1/nodes/{last}", {"spec": {"unschedulable": False}})
    assert len(scene.all_placed()) == 4


def test_a_member_that_is_refused_refuses_the_group(scene: Scene) -> None:
    nodes = scene.make_nodes(4, cpu="1")
    replies = dict.fromkeys(_MEMBERS, passing)
    scene.recorder.replies["gate/filter"] = by_pod({**replies, "blue": refusing(*nodes, reason="not for blue")})
    scene.recorder.replies["gate/bind"] = scene.bind
    scene.start(scene.recorder.entry("gate", "filter", "bind"), podMaxBackoffSeconds=1)
    make_group(scene, *_MEMBERS)
    assert "not for blue" in scene.refusal("blue")
    assert not any(scene.places().values())
    scene.recorder.replies["gate/filter"] = passing
    # As with any pod that an extender has refused, an event has to come: here one of its own.
    scene.api.patch(f"{scene.path}/blue", {"metadata": {"annotations": {"example.org/woken": "1"}}})
    assert len(scene.all_placed()) == 4


def test_a_member_that_cannot_be_bound_leaves_the_others_bound(scene: Scene) -> None:
    scene.make_nodes(4, cpu="1")
    refused = iter([True])

    def bind(request: Object) -> Object:
        return {"Error": "not now"} if request["PodName"] == "blue" and next(refused, False) else scene.bind(request)

    scene.recorder.replies["gate/bind"] = bind
    scene.start(scene.recorder.entry("gate", "filter", "bind"), podMaxBackoffSeconds=1)
    make_group(scene, *_MEMBERS)
    wait_for("the others", lambda: len([one for one in scene.places().values() if one]) >= 3 or None)
    assert len(scene.all_placed()) == 4, "it is tried again by itself"
    assert len(scene.recorder.of("gate/bind", pod="blue")) == 2


def test_no_extender_is_asked_whom_a_group_evicts(scene: Scene) -> None:
    scene.make_nodes(4, cpu="1")
    name = f"{scene.name}-high"
    scene.api.create(_PRIORITIES, {"metadata": {"name": name}, "value": 1000})
    scene.recorder.replies["gate/bind"] = scene.bind
    scene.start(scene.recorder.entry("gate", "filter", "preempt", "bind"), podMaxBackoffSeconds=1)
    for number in range(4):
        scene.make_pod(f"low-{number}", cpu="1")
    assert len(scene.all_placed()) == 4
    make_group(scene, *_MEMBERS, priorityClassName=name)
    wait_for("the others to be evicted", lambda: not any(one.startswith("low") for one in scene.living()) or None)
    assert scene.recorder.of("gate/preempt") == []
    scene.api.delete(f"{_PRIORITIES}/{name}")
