"""What a bind call that is not answered at once means: for its pod, for others, and when it fails."""

import functools
import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import psutil
import pytest

from extender import Call, Scene
from extender.replies import by_pod, passing, refusing, victims
from testbed import process
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, StartScheduler

_LONGEST_S = 60.0


class Held:
    """Bind calls about one pod that wait until they are let go; those about others are answered."""

    def __init__(self, scene: Scene, name: str = "held") -> None:
        self.scene, self.name = scene, name
        self.error = "not all members found room"
        self._let_go = threading.Event()

    def reply(self, request: Object) -> Object:
        """Bind, or hold and then fail."""
        if request["PodName"] != self.name:
            return self.scene.bind(request)
        self._let_go.wait(_LONGEST_S)
        return {"Error": self.error}

    def let_go(self) -> None:
        """Answer all that are held, and those to come, with an error."""
        self._let_go.set()


@pytest.fixture
def held(scene: Scene) -> Iterator[Held]:
    made = Held(scene)
    scene.recorder.replies["gate/bind"] = made.reply
    yield made
    made.let_go()


def _start(scene: Scene, *verbs: str, **fields: object) -> None:
    scene.start(scene.recorder.entry("gate", "filter", "bind", *verbs, **fields), podMaxBackoffSeconds=1)


def test_an_open_bind_call_keeps_the_room_of_its_pod_while_others_are_placed(scene: Scene, held: Held) -> None:
    scene.make_nodes(1, cpu="3")
    _start(scene, httpTimeout="60s")
    scene.make_pod("held", cpu="2")
    scene.called("gate/bind", pod="held")
    scene.make_pod("beside", cpu="1")
    assert scene.placed("beside") == "n1"
    scene.make_pod("next", cpu="1")
    assert "Insufficient cpu" in scene.refusal("next")
    assert scene.places() == {"held": "", "beside": "n1", "next": ""}
    held.let_go()
    assert scene.placed("next") == "n1", "a bind that failed frees its room at once"


def test_the_scheduler_gives_a_bind_call_up_after_its_timeout(scene: Scene, held: Held) -> None:
    scene.make_nodes(1, cpu="2")
    _start(scene, httpTimeout="2s")
    scene.make_pod("held", cpu="2")
    assert re.search("deadline exceeded|Timeout exceeded", scene.refusal("held", "SchedulerError"))
    scene.called("gate/bind", pod="held", times=2)
    held.let_go()


def test_a_bind_that_fails_wakes_pods_that_an_extender_refused(scene: Scene, held: Held) -> None:
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = by_pod({"held": passing, "web": refusing("n1", reason="full of cats")})
    _start(scene, httpTimeout="60s")
    scene.make_pod("held")
    scene.called("gate/bind", pod="held")
    scene.make_pod("web")
    calls = wait_for("the refused pod to be put away", lambda: scene.calls_when_parked("web"))
    held.let_go()
    scene.called("gate/filter", pod="web", times=calls + 1)


def _versions_at_calls(scene: Scene, path: str, replies: list[Object]) -> list[str]:
    """Answer the calls about a pod one after the other, and return which version it had at each."""
    seen: list[str] = []

    def reply(_: Object) -> Object:
        seen.append(str(scene.pod("web")["metadata"]["resourceVersion"]))
        return replies[min(len(seen), len(replies)) - 1]

    scene.recorder.replies[path] = reply
    scene.make_nodes(1)
    _start(scene)
    scene.make_pod("web")
    return seen


def test_a_bind_that_fails_changes_its_pod_exactly_when_the_text_is_another(scene: Scene) -> None:
    """With one text, what stands in the pod's condition already is not written again."""
    texts = ["no room (1)", "no room (1)", "no room (2)", "no room (2)", "no room (3)"]
    seen = _versions_at_calls(scene, "gate/bind", [{"Error": text} for text in texts])
    wait_for("one more call than there are texts", lambda: len(seen) > len(texts), timeout_s=60)
    changes = [before != after for before, after in itertools.pairwise(seen)]
    assert changes[: len(texts)] == [True, False, True, False, True]


def test_a_pod_that_finds_no_node_twice_for_one_reason_is_written_once(scene: Scene) -> None:
    refused: Mapping[str, Any] = {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": "waits for its group"}}
    seen = _versions_at_calls(scene, "gate/filter", [dict(refused)])
    path = f"/apis/storage.k8s.io/v1/namespaces/{scene.name}/csistoragecapacities"
    scene.api.create(path, {"metadata": {"name": "wake"}, "storageClassName": "none"})
    for number in range(3):
        calls = wait_for("the refused pod to be put away", lambda: scene.calls_when_parked("web"))
        scene.api.patch(f"{path}/wake", {"metadata": {"annotations": {"touched": str(number)}}})
        scene.called("gate/filter", pod="web", times=calls + 1)
    assert seen[0] != seen[1], "its condition was written"
    assert len({*seen[1:]}) == 1


def test_a_pod_whose_bind_call_is_open_may_be_a_victim_and_is_deleted_if_it_is_echoed(scene: Scene, held: Held) -> None:
    scene.make_nodes(1, cpu="2")
    scene.recorder.replies["gate/preempt"] = victims
    _start(scene, "preempt", httpTimeout="60s")
    scene.make_pod("held", cpu="2")
    scene.called("gate/bind", pod="held")
    uid = scene.pod("held")["metadata"]["uid"]
    scene.make_pod("urgent", cpu="2", urgent=True)
    request = scene.called("gate/preempt", pod="urgent")[0].request
    assert [one["UID"] for one in request["NodeNameToMetaVictims"]["n1"]["Pods"]] == [uid]
    wait_for("the pod to be deleted", lambda: "held" not in scene.living())
    assert scene.placed("urgent") == "n1", "its room is free although its bind call is open"


def test_a_volume_that_waits_for_its_first_consumer_is_bound_before_bind_is_called(scene: Scene) -> None:
    scene.make_nodes(1)
    name, phases = f"claim-{scene.name}", list[str]()
    claims = f"/api/v1/namespaces/{scene.name}/persistentvolumeclaims"

    def reply(request: Object) -> Object:
        phases.append(scene.api.get(f"{claims}/{name}")["status"]["phase"])
        return scene.bind(request)

    scene.recorder.replies["gate/bind"] = reply
    amount, mode = {"storage": "1Gi"}, ["ReadWriteOnce"]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    wait = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    scene.api.create("/apis/storage.k8s.io/v1/storageclasses", {**kind, "metadata": {"name": name}, **wait})
    term = {"matchExpressions": [{"key": "scene", "operator": "In", "values": [scene.name]}]}
    volume = {"capacity": amount, "accessModes": mode, "storageClassName": name, "local": {"path": "/none"}}
    volume |= {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    try:
        scene.api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
        claim = {"accessModes": mode, "storageClassName": name, "resources": {"requests": amount}}
        scene.api.create(claims, {"metadata": {"name": name}, "spec": claim})
        _start(scene)
        data = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        spec: Object = {"schedulerName": scene.name, "volumes": [data], "tolerations": [{"operator": "Exists"}]}
        spec |= {"terminationGracePeriodSeconds": 0}  # no kubelet would end it, and it would keep its room
        spec |= {"containers": [{"name": "main", "image": "main"}]}
        scene.api.create(scene.path, {"metadata": {"name": "web"}, "spec": spec})
        assert scene.placed("web") == "n1"
        assert phases == ["Bound"]
    finally:
        scene.api.delete(f"{scene.path}/web")
        for path in (f"{claims}/{name}", f"/api/v1/persistentvolumes/{name}"):
            scene.api.delete(path)
        scene.api.delete(f"/apis/storage.k8s.io/v1/storageclasses/{name}")


def test_a_new_pod_wakes_no_pod_that_an_extender_refused(scene: Scene) -> None:
    """Also if both have the same labels and the same owner."""
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = refusing("n1", reason="waits for its group")
    _start(scene)
    labels = {"job-name": "whole"}
    scene.make_pod("first", labels=labels)
    calls = wait_for("the first to be put away", lambda: scene.calls_when_parked("first"))
    siblings = [f"sibling-{number}" for number in range(4)]
    for name in siblings:
        scene.make_pod(name, labels=labels)
        wait_for(f"{name} to be put away", functools.partial(scene.calls_when_parked, name))
    woken = wait_for("the first to lie there still", lambda: scene.calls_when_parked("first")) - calls
    assert woken <= 1, "its own condition wakes it once, before or after it was first seen put away"


def _is_open(call: Call) -> bool:
    connections = psutil.net_connections("tcp")
    return any(one.status == psutil.CONN_ESTABLISHED and one.laddr[1:] == (call.connection,) for one in connections)


@pytest.fixture
def leader(scene: Scene, held: Held, scheduler: StartScheduler, ground: Cluster) -> psutil.Process:
    """A scheduler with an open bind call, beside which another one waits to lead."""
    scene.make_nodes(1)
    times = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    lease = {"leaderElect": True, "resourceName": scene.name, "resourceNamespace": scene.name, **times}
    entry = scene.recorder.entry("gate", "filter", "bind", httpTimeout="60s")
    config = {"profiles": [{"schedulerName": scene.name}], "extenders": [entry], "leaderElection": lease}
    first, _ = scheduler(config), scheduler(config)
    scene.make_pod("held")
    (call,) = scene.called("gate/bind", pod="held")
    assert _is_open(call)
    found = process.find(ground.folder, first.process)
    assert found is not None
    return found


def test_a_scheduler_that_is_told_to_end_hangs_up_and_the_next_one_binds(scene: Scene, leader: psutil.Process) -> None:
    """It gives its Lease away before it hangs up, so that the next one may call first."""
    leader.terminate()
    first, second = scene.called("gate/bind", pod="held", times=2)
    wait_for("the first call to end", lambda: not _is_open(first) or None)
    assert _is_open(second)


def test_a_bind_call_of_a_scheduler_that_stands_still_is_open_while_the_next_one_leads(
    scene: Scene, leader: psutil.Process
) -> None:
    """Both have reserved room for the pod, each in a cache of its own."""
    leader.suspend()
    first, second = scene.called("gate/bind", pod="held", times=2)
    assert _is_open(first)
    assert _is_open(second)
