"""Whom the scheduler evicts for a pod that an extender has a say in."""

from collections.abc import Mapping

import pytest

from extender import Reply, Scene
from extender.replies import always, dropping, refusing, victims

_PREEMPT: Mapping[str, tuple[Reply | None, set[str]]] = {
    "without a preempt verb the pods of a vetoed node die for nothing": (None, {"urgent"}),
    "a preempt verb that echoes saves nobody": (victims, {"urgent"}),
    "a preempt verb that drops the vetoed node saves its pods": (dropping("n1"), {"urgent", "vetoed-1"}),
}


@pytest.mark.parametrize("case", _PREEMPT)
def test_a_full_node_never_reaches_the_filter_and_so_stays_a_candidate(scene: Scene, case: str) -> None:
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
    assert scene.placed("urgent") == "n2"
    assert scene.living() == want_living
    if reply:
        assert scene.recorder.of("gate/preempt")[0].nodes == ["n1", "n2"]


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
