"""The walks of kube-safe-scheduler's READMEs, with its agents as policies: from a scheduler to the logs."""

import shutil
from datetime import UTC, datetime

from extender import Stage
from support.docs.pages import CHECKOUT
from support.process.serving import Serving
from testbed.api import Object, wait_for
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

_AGENTS = CHECKOUT / "examples" / "kube-safe-scheduler"
_SCHEDULER = "my-scheduler"
# As the project's annotators write: cpu in thousandths of a core, memory in bytes, congestion up to 100.
_STATISTICS = {"std-free-cpu": "400", "mean-free-memory": "4294967296", "std-free-memory": "536870912"}
_IDLE = _STATISTICS | {"mean-free-cpu": "2500"}
_OVERLOADED = _STATISTICS | {"mean-free-cpu": "1100"}
_CALL = "call.answered"
_RL_SCHEDULER = "rl-scheduler"
# What the agents say is seen if nothing else scores.
_NO_SCORES: Object = {"score": {"disabled": [{"name": "*"}]}}


def _copy(serving: Serving, *agents: str) -> None:
    for agent in agents:
        shutil.copy(_AGENTS / f"{agent}.yaml", serving.policies)


def test_several_agents_beside_one_scheduler(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    # Three nodes of four cores. Annotators have measured them: one is overloaded, one of the idle ones is congested.
    free, congested, overloaded = kwok_nodes(3, equal(cpu="4", memory="8Gi"))
    for node, annotations in (
        (free, _IDLE | {"congestion-factor": "5"}),
        (congested, _IDLE | {"congestion-factor": "100"}),
        (overloaded, _OVERLOADED | {"congestion-factor": "0"}),
    ):
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}})

    # Step 1, instead of an image for each agent: a folder with the policies of safe, congestion and foo.
    _copy(serving, "safe", "congestion", "foo")
    serving.start()
    serving.says("safe", "congestion", "foo")

    # Step 2: one scheduler, my-scheduler, that calls one extender for all three.
    stage.start(*serving.entries(binds=False), profiles=[{"schedulerName": _SCHEDULER}])

    # Step 3: a test pod. safe rejects one node, congestion decides between the others; the event says where it went.
    stage.make_pods(["test-pod"], cpu="500m", scheduler=_SCHEDULER)
    assert stage.placed("test-pod") == free
    assert stage.events("test-pod") == {("Scheduled", f"Successfully assigned {stage.name}/test-pod to {free}")}

    # A pod that would overload every node stays pending, and its event has the reason of each node.
    stage.make_pods(["large"], cpu="3", scheduler=_SCHEDULER)
    want = "0/3 nodes are available: 3 overload risk on cpu."
    assert stage.refusal("large").startswith(want)
    assert {(reason, note.startswith(want)) for reason, note in stage.events("large")} == {("FailedScheduling", True)}

    # Step 4: the log. It is one for all agents, and at INFO it has no line for a call.
    assert _CALL not in serving.log()
    assert "policy_set.serving" in serving.log()

    # At TRACE each call has its line, with the verb and the UID of the pod.
    serving.kill()
    serving.log_level = "TRACE"
    serving.start()
    stage.make_pods(["traced"], cpu="500m", scheduler=_SCHEDULER)
    assert stage.placed("traced") == free
    uid = stage.pod("traced")["metadata"]["uid"]
    lines = [line for line in serving.log().splitlines() if _CALL in line and f"pod={uid}" in line]
    assert [any(f"verb={verb} " in line for line in lines) for verb in ("filter", "prioritize")] == [True, True], lines


def test_the_agents_that_learn(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    nodes = {*kwok_nodes(3, equal(cpu="4", memory="8Gi"))}
    _copy(serving, "pigeon", "kuberl")
    serving.start()
    serving.says("pigeon", "kuberl", f"outcomes: {_RL_SCHEDULER}")  # it learns from pods that come from now on
    profiles = [{"schedulerName": name, "plugins": _NO_SCORES} for name in (_SCHEDULER, _RL_SCHEDULER)]
    stage.start(*serving.entries(binds=False), profiles=profiles)

    # pigeon: while all pods are equal, each has a node of its own.
    for number in range(1, 4):
        _place(stage, f"equal-{number}", cpu="500m")
        _until_learned(serving, "pigeon", number)
    assert len({stage.placed(f"equal-{number}") for number in range(1, 4)}) == len(nodes)
    # Once there are large ones, small ones go beside them, so that the next large one finds room.
    large = _place(stage, "large", cpu="3")
    _until_learned(serving, "pigeon", 4)
    assert _place(stage, "small", cpu="500m") == large

    # kubeRL: pods of one type fail on two nodes, one after the other. The next one goes to the third.
    failed = set[str]()
    for number in range(1, 3):
        name = f"fails-{number}"
        failed.add(_place(stage, name, scheduler=_RL_SCHEDULER, podtype="D"))
        _fail(stage, name)
        _until_learned(serving, "kuberl", number)
    assert len(failed) == 2
    assert {_place(stage, "works", scheduler=_RL_SCHEDULER, podtype="D")} == nodes - failed


def _place(stage: Stage, name: str, cpu: str = "0", scheduler: str = _SCHEDULER, **labels: str) -> str:
    stage.make_pods([name], cpu=cpu, scheduler=scheduler, labels=labels)
    return stage.placed(name)


def _fail(stage: Stage, name: str) -> None:
    """Let the container of a pod exit with 1, as a kubelet would tell it."""
    wait_for(f"{name} to run", lambda: stage.pod(name).get("status", {}).get("phase") == "Running")
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    exited = {"exitCode": 1, "startedAt": at, "finishedAt": at, "containerID": f"containerd://{name}"}
    status = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    failed = {"containerStatuses": [status | {"state": {"terminated": exited}}]}
    stage.api.patch(f"{stage.path}/{name}/status", {"status": failed})


def _until_learned(serving: Serving, policy: str, entries: int) -> None:
    wait_for(
        f"{policy} to know {entries}", lambda: serving.metric("fairlead_learned_entries", policy=policy) == entries
    )
