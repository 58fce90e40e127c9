"""The walk of kube-safe-scheduler's README, with its agents as policies: from a scheduler to the logs."""

import shutil

from extender import Stage
from support.docs.pages import CHECKOUT
from support.process.serving import Serving
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

_AGENTS = CHECKOUT / "examples" / "kube-safe-scheduler"
_SCHEDULER = "my-scheduler"
# As the project's annotators write: cpu in thousandths of a core, memory in bytes, congestion up to 100.
_STATISTICS = {"std-free-cpu": "400", "mean-free-memory": "4294967296", "std-free-memory": "536870912"}
_IDLE = _STATISTICS | {"mean-free-cpu": "2500"}
_OVERLOADED = _STATISTICS | {"mean-free-cpu": "1100"}
_CALL = "call.answered"


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
    for policy in _AGENTS.glob("*.yaml"):
        shutil.copy(policy, serving.policies)
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
