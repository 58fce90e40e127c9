"""When a refused pod is tried again."""

from extender import Scene
from extender.replies import refusing
from testbed.api import wait_for

_ROUNDS = 6  # the first few may be due to what else changes at the beginning, such as the pod's own condition


def test_an_object_of_storage_capacity_wakes_a_refused_pod(scene: Scene) -> None:
    """Before we touch the object, the scheduler's log says that the pod lies where only an event gets it out."""
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = refusing("n1", reason="full of cats")
    scene.start(scene.recorder.entry("gate", "filter"), podMaxBackoffSeconds=1)
    scene.make_pod("web")
    path = f"/apis/storage.k8s.io/v1/namespaces/{scene.name}/csistoragecapacities"
    for number in range(_ROUNDS):
        calls = wait_for("the refused pod to be put away", lambda: scene.calls_when_parked("web"))
        if number:
            scene.api.patch(f"{path}/wake", {"metadata": {"annotations": {"touched": str(number)}}})
        else:
            scene.api.create(path, {"metadata": {"name": "wake"}, "storageClassName": "none"})
        scene.called("gate/filter", pod="web", times=calls + 1)


def test_an_idle_scheduler_does_not_wait_for_the_backoff(scene: Scene) -> None:
    """It takes a refused pod from the backoff queue when it has nothing else to do; an hour is never waited for."""
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = refusing("n1", reason="full of cats")
    hour = {"podInitialBackoffSeconds": 3600, "podMaxBackoffSeconds": 3600}
    scene.start(scene.recorder.entry("gate", "filter"), **hour)
    scene.make_pod("web")
    path = f"/api/v1/namespaces/{scene.name}/pods/web"
    for number in range(_ROUNDS):
        calls = wait_for("the refused pod to be put away", lambda: scene.calls_when_parked("web"))
        scene.api.patch(path, {"metadata": {"annotations": {"touched": str(number)}}})
        scene.called("gate/filter", pod="web", times=calls + 1)
