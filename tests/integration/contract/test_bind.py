"""What the extender owes the scheduler when it binds, and what it may write in passing."""

import pytest

from extender import Scene
from testbed.api import ApiError


def test_annotations_of_the_binding_arrive_on_the_pod(scene: Scene) -> None:
    scene.make_nodes(1)
    annotations = {"fairlead.dev/class": "a100"}
    scene.recorder.replies["gate/bind"] = lambda request: scene.bind(request, annotations=annotations)
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.make_pod("web")
    assert scene.placed("web") == "n1"
    assert scene.pod("web")["metadata"]["annotations"] == annotations


def test_a_binding_is_for_the_pod_of_that_uid_and_only_once(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.make_pod("web")
    known = {"PodName": "web", "PodUID": scene.pod("web")["metadata"]["uid"], "Node": "n1"}
    with pytest.raises(ApiError, match="Precondition failed: UID") as refused:
        scene.bind(known | {"PodUID": "another"})
    scene.bind(known)
    with pytest.raises(ApiError, match="already assigned to node") as repeated:
        scene.bind(known)
    assert (refused.value.status, repeated.value.status) == (409, 409)


def test_a_bind_that_fails_is_tried_again(scene: Scene) -> None:
    """The scheduler begins anew: it filters again, too."""
    scene.make_nodes(1)
    scene.recorder.replies["gate/bind"] = lambda request: (
        scene.bind(request) if len(scene.recorder.of("gate/bind")) > 1 else {"Error": "the device is gone"}
    )
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.make_pod("web")
    assert "the device is gone" in scene.refusal("web", "SchedulerError")
    assert scene.placed("web") == "n1"
    assert [call.path for call in scene.recorder.calls] == ["gate/filter", "gate/bind"] * 2
