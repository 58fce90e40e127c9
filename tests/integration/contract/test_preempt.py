"""Whom the scheduler evicts for a pod that an extender has a say in."""

from collections.abc import Mapping

import pytest

from extender import Reply, Scene
from extender.replies import always, dropping, refusing, victims
from testbed.api import wait_for

_PREEMPT: Mapping[str, tuple[Reply | None, set[str]]] = {
    "without a preempt verb the pods of a vetoed node die for nothing": (None, {"urgent"}),
    "a preempt verb that echoes saves nobody": (victims, {"urgent"}),
    "a preempt verb that drops the vetoed node saves its pods": (dropping("n1"), {"urgent", "vetoed-1"}),
}
_MAY_MISS_THE_END_OF_A_VICTIM = ("1.33.", "1.34.")
"""It forgets that it evicts for a pod just before it deletes the last victim. The condition that it writes on that
victim first may have it try the pod again, and evict the victim a second time; the victim's end, if it comes meanwhile,
is then not heard, and the pod waits for another event. Since 1.35 it remembers the last victim
(`lastVictimsPendingPreemption` in pkg/scheduler/framework/preemption/preemption.go)."""


@pytest.mark.parametrize("case", _PREEMPT)
def test_a_full_node_never_reaches_the_filter_and_so_stays_a_candidate(
    scene: Scene, kubernetes_version: str, case: str
) -> None:
    """The filter vetoes n1, which would cost the scheduler fewer victims than n2."""
    reply, want_living = _PREEMPT[case]
    scene.make_nodes(2, cpu="2")
    scene.make_pod("vetoed-1", on="n1", cpu="2")
    scene.make_pods(["permitted-1", "permitted-2"], on="n2", cpu="1")
    scene.recorder.replies["gate/filter"] = refusing("n1", reason="full of cats")
    if reply:
        scene.recorder.replies["gate/preempt"] = reply
    scene.start(scene.recorder.entry("gate", "filter", *(["preempt"] if reply else [])))
    scene.make_pod("urgent", cpu="2", urgent=True)
    if kubernetes_version.startswith(_MAY_MISS_THE_END_OF_A_VICTIM):
        wait_for("urgent to be placed, once a pod has left a node", lambda: _is_placed_or_one_leaves(scene), every_s=1)
    assert scene.placed("urgent") == "n2"
    assert scene.living() == want_living
    if reply:
        assert scene.recorder.of("gate/preempt")[0].nodes == ["n1", "n2"]


def _is_placed_or_one_leaves(scene: Scene) -> bool:
    """Whether `urgent` is placed; if not, a pod comes to a node and leaves it, which has the scheduler try again."""
    if scene.places()["urgent"]:
        return True
    scene.make_pod("passer-by", on="n1")
    scene.api.delete(f"{scene.path}/passer-by")
    return False


def test_no_candidate_left_means_no_eviction(scene: Scene) -> None:
    scene.make_nodes(1, cpu="2")
    scene.make_pod("victim", on="n1", cpu="2")
    scene.recorder.replies["gate/preempt"] = dropping("n1")
    scene.start(scene.recorder.entry("gate", "filter", "preempt"))
    scene.make_pod("urgent", cpu="2", urgent=True)
    assert scene.refusal("urgent").endswith("preemption: no candidate node for preemption")
    assert scene.living() == {"urgent", "victim"}
    assert scene.recorder.of("gate/filter") == []


def test_an_invented_victim_stops_preemption(scene: Scene) -> None:
    scene.make_nodes(1, cpu="2")
    scene.make_pod("victim", on="n1", cpu="2")
    scene.recorder.replies["gate/preempt"] = always({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "nobody"}]}}})
    scene.start(scene.recorder.entry("gate", "filter", "preempt"))
    scene.make_pod("urgent", cpu="2", urgent=True)
    assert "but the pod is not found on that node" in scene.refusal("urgent")
    assert scene.living() == {"urgent", "victim"}
