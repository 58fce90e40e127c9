"""The four verbs, in both forms, told as one story; its requests are those that `tests/data/wire` keeps.

Three nodes. `web` is placed on n1. Then everything is full, and `urgent` evicts a pod from n2 and follows it there.
"""

from collections.abc import Iterator, Mapping

import pytest

from extender import Call, Reply, Scene, wire
from extender.replies import dropping, refusing, scoring
from extender.shapes import check
from testbed.api import wait_for
from testbed.fixtures import Cluster

_FORMS: Mapping[str, bool] = {"names": True, "nodes": False}


@pytest.fixture(params=_FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """How the scheduler speaks of nodes and victims."""
    return str(request.param)


@pytest.fixture
def namespace(control_plane: Cluster, form: str) -> Iterator[str]:
    """One that is called the same in every run."""
    name = f"wire-{form}"
    control_plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


def test_four_verbs_arrive_as_the_contract_says(
    scene: Scene, form: str, kubernetes_version: str, pytestconfig: pytest.Config
) -> None:
    calls = _tell(scene, form)
    assert {path: [(call.pod, call.nodes) for call in made] for path, made in calls.items()} == {
        "gate/filter": [("web", ["n1", "n2", "n3"]), ("urgent", ["n2"])],
        "gate/prioritize": [("web", ["n1", "n2"])],
        "gate/preempt": [("urgent", ["n1", "n2", "n3"])],
        "gate/bind": [("web", ["n1"]), ("urgent", ["n2"])],
    }
    samples = {
        f"filter-{form}": calls["gate/filter"][0].body,
        f"filter-nominated-{form}": calls["gate/filter"][1].body,
        f"prioritize-{form}": calls["gate/prioritize"][0].body,
        f"preempt-{form}": calls["gate/preempt"][0].body,
        **({"bind": calls["gate/bind"][0].body} if form == "names" else {}),
    }
    for sample, body in samples.items():
        check(kubernetes_version, sample, body)
        if pytestconfig.getoption("--record", default=False):
            wire.write(kubernetes_version, sample, body)
        kept = wire.read(kubernetes_version, sample)
        assert wire.outline(kept) == wire.outline(body), "`scripts/record` brings what is kept up to date"


def _tell(scene: Scene, form: str) -> dict[str, list[Call]]:
    """Let it happen; the calls by path."""
    replies: dict[str, Reply] = {
        "filter": refusing("n3"),
        "prioritize": scoring({"n1": 9}),
        "preempt": dropping("n1", "n3"),
        "bind": scene.bind,
    }
    scene.recorder.replies |= {f"gate/{verb}": reply for verb, reply in replies.items()}
    scene.make_nodes(3, cpu="2")
    scene.start(scene.recorder.entry("gate", *replies, nodeCacheCapable=_FORMS[form]))
    scene.make_pod("web", cpu="1", labels={"app": "web"}, annotations={"example.com/note": "a < b & c > d, caf\u00e9"})
    assert scene.placed("web") == "n1"
    scene.make_pod("filler-1", on="n1", cpu="1")
    scene.make_pod("filler-2", on="n2", cpu="2", grace_s=600)
    scene.make_pod("filler-3", on="n3", cpu="2")
    scene.make_pod("urgent", cpu="2", urgent=True)
    # A victim that goes at once may have gone before the scheduler knows whom it has nominated.
    urgent, victim = f"{scene.path}/urgent", f"{scene.path}/filler-2"
    wait_for("the victim to go", lambda: "deletionTimestamp" in scene.api.get(victim)["metadata"])
    wait_for("urgent to be nominated", lambda: "nominatedNodeName" in scene.api.get(urgent)["status"])
    scene.api.delete(victim, gracePeriodSeconds="0")
    assert scene.placed("urgent") == "n2"
    return {f"gate/{verb}": scene.recorder.of(f"gate/{verb}") for verb in replies}
