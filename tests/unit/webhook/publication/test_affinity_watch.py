"""A replica reports what pods and nodes lack of what is published, and counts pods that have it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from fairlead.cooperative import Share
from fairlead.metrics import Metrics
from fairlead.mirror import decode
from fairlead.render.operator_settings import parse_settings
from fairlead.replica_state import PolicyState, PublicationGaps, PublicationState, ReplicaState
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender.rejected_pods import RejectedPods
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.publication.affinity_watch import GATHER_S, LOOK_S, AffinityWatch
from fairlead.webhook.publication.publication_survey import MISSED_KEPT_S, Surveyor
from support.faults import virtual
from support.faults.api import Key
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire
from support.mirror import FedMirror, pod, written
from support.policy import policy
from support.published import SCHEDULER, affinity, part, required, requirement
from support.webhook import Asking

OBJECT: Key = ("fairlead.dev", "publishedaffinities", "", SCHEDULER)
FILTER = {"pool": "node.metadata.labels[?'pool'].orValue('') == 'a'"}
P = policy("p", filters=FILTER, publish="NodeAffinity")
POOL, LOOSER = requirement("pool", "a"), requirement("pool", "a", "b")
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
ON = "publishedAffinity: {enabled: true}"
SHORTLY = LOOK_S + GATHER_S + 1


class Scene:
    """A replica with a mirror, in an API server with published affinity."""

    def __init__(self) -> None:
        self.cluster, self.told, self.metrics = FakeCluster(), FedMirror(), Metrics()
        self.told.namespace("ml")
        self.told.namespace(NAMESPACE)

    def now(self) -> int:
        return int(self.cluster.now().timestamp()) * SECOND_NS

    def publish(self, version: str, *parts: Any) -> None:
        fields = [{"manager": "fairlead", "time": f"{self.cluster.now():%Y-%m-%dT%H:%M:%SZ}"}]
        spec = affinity(version, *parts)
        self.cluster.api.put(OBJECT, {"metadata": {"managedFields": fields}, "spec": spec})

    def create(self, name: str, version: str | None = "1", *terms: Any, namespace: str = "ml", **status: Any) -> None:
        annotations = {} if version is None else {"fairlead.dev/published-affinity": version}
        spec: dict[str, Any] = {"schedulerName": SCHEDULER, **({"affinity": required(*terms)} if terms else {})}
        made = pod(name, on="", annotations=annotations, **spec, **status)
        made["metadata"] |= {
            "namespace": namespace,
            "creationTimestamp": f"{self.cluster.now():%Y-%m-%dT%H:%M:%SZ}",
        }
        self.told.mirror.unplaced_sink.put(decode.pod(written(made)))

    @property
    def gaps(self) -> PublicationGaps | None:
        one = PolicyState(uid=P.uid, generation="1", serving="1", reason="Compiled", publication=PublicationState())
        return self.watch.report(ReplicaState(policies={"p": one})).policies["p"].gaps

    def values(self, name: str) -> Mapping[str, float]:
        lines = (line.rpartition(" ") for line in self.metrics.exposition().decode().splitlines())
        return {what.partition("{")[2]: float(value) for what, _, value in lines if what.startswith(f"{name}{{")}

    def run(self, story: Callable[["Scene"], Awaitable[None]], namespace: str | None = NAMESPACE) -> None:
        async def work() -> None:
            async with Wire(self.cluster.api).client() as client:
                mirror = self.told.mirror
                self.watch = AffinityWatch(client, mirror, namespace, self._state, self.now)
                self.watch.share = Share(lambda: 0.0)  # of a time that does not pass
                self.watch.register(self.metrics)
                task = asyncio.ensure_future(self.watch.run())
                self.watch.use_settings(parse_settings(ON))
                await self.watch.follow([P])
                try:
                    await story(self)
                finally:
                    task.cancel()

        virtual.run(work())

    def _state(self) -> ServingState:
        asking = Asking([P])
        asking.nodes, asking.mirror.nodes = self.told.mirror.nodes, self.told.mirror.nodes
        asking.serve([P])
        return asking.serving


async def _older(scene: Scene) -> None:
    scene.publish("1", part("p", [POOL]))
    for name in "abcd":
        scene.create(name, "1", [POOL])
    await asyncio.sleep(SHORTLY)
    scene.publish("2", part("p", [LOOSER]))
    await asyncio.sleep(50)
    assert scene.gaps is None  # the edit was a moment ago
    await asyncio.sleep(30)
    assert scene.gaps == PublicationGaps(outdated=4, outdated_pods=("ml/a", "ml/b", "ml/c"))
    scene.create("e", "2", [LOOSER])
    scene.create("e", "2", [LOOSER], conditions=UNSCHEDULABLE)  # it is updated
    for name in "abc":
        scene.told.mirror.unplaced_sink.remove(("ml", name))
    await asyncio.sleep(SHORTLY)
    assert scene.gaps == PublicationGaps(outdated=1, outdated_pods=("ml/d",))
    assert scene.values("fairlead_published_pods_total") == {'policy="p"}': 5.0}


async def _none(scene: Scene) -> None:
    scene.publish("1", part("p", [POOL]))
    await asyncio.sleep(4)
    scene.create("too-early", None)
    await asyncio.sleep(3)
    scene.create("without", None)
    scene.create("of-the-system", None, namespace="kube-system")
    scene.create("of-the-operator", None, namespace=NAMESPACE)
    scene.told.mirror.unplaced_sink.remove(("ml", "without"))  # it got a node at once
    scene.create("pending", None)
    await asyncio.sleep(SHORTLY)
    assert scene.gaps == PublicationGaps(missed=2, missed_pods=("ml/pending", "ml/without"))
    await asyncio.sleep(MISSED_KEPT_S + LOOK_S)
    assert scene.gaps == PublicationGaps(missed=1, missed_pods=("ml/pending",))


async def _late(scene: Scene) -> None:
    scene.publish("1", part("p", [POOL]))
    scene.told.now = FOUND
    scene.told.node("early", labels={"pool": "a"})
    scene.told.node("late")
    scene.told.now += 12 * SECOND_NS
    scene.told.node("late", labels={"pool": "a"})
    await asyncio.sleep(SHORTLY)
    assert scene.gaps == PublicationGaps(late_labels=1, late=("pool came on node late 12s after it had joined",))


FOUND = 1_767_225_600 * SECOND_NS


async def _visible(scene: Scene) -> None:
    scene.told.node(labels={"pool": "b"})
    scene.publish("1", part("p", [POOL]))
    scene.create("a", "1", [POOL], conditions=UNSCHEDULABLE)
    scene.create("b", "1", [POOL])  # the scheduler has not looked at it
    await asyncio.sleep(SHORTLY)
    assert scene.values("fairlead_pods_rejected_only") == {'policy="p",visible="true"}': 1.0}
    scene.watch.rejected = Rejected()
    assert scene.values("fairlead_pods_rejected_only") == {
        'policy="p",visible="true"}': 1.0,
        'policy="p",visible="false"}': 2.0,
    }


class Rejected(RejectedPods):
    def rejected_alone(self) -> Mapping[str, int]:
        return {"p": 2, "gone": 1}


async def _ends(scene: Scene) -> None:
    await _older(scene)
    scene.watch.use_settings(parse_settings("{}"))
    assert (scene.gaps, scene.watch.on_demand) == (None, {})
    scene.create("f", "2", [LOOSER])
    await asyncio.sleep(SHORTLY)
    assert scene.values("fairlead_published_pods_total") == {'policy="p"}': 5.0}


async def _gone(scene: Scene) -> None:
    scene.publish("1", part("p", [POOL]))
    scene.create("a", "1", [POOL])
    await asyncio.sleep(SHORTLY)
    scene.cluster.api.delete(OBJECT)
    await asyncio.sleep(80)
    assert scene.gaps == PublicationGaps(outdated=1, outdated_pods=("ml/a",))


@pytest.mark.parametrize("story", [_older, _none, _late, _visible, _ends, _gone], ids=lambda one: one.__name__[1:])
def test_what_is_reported(story: Callable[[Scene], Awaitable[None]]) -> None:
    Scene().run(story)


def test_of_many_older_pods_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.webhook.publication.publication_survey.OUTDATED_MAX", 30)

    async def story(scene: Scene) -> None:
        scene.publish("1", part("p", [POOL]))
        for number in range(50):
            scene.create(str(number), "0", [LOOSER])
        await asyncio.sleep(80)
        assert scene.gaps is not None
        assert scene.gaps.outdated == 30

    Scene().run(story)


def test_a_fault_is_logged_and_the_next_look_is_as_usual(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Surveyor, "survey", None)
            await asyncio.sleep(SHORTLY)
        assert [one.getMessage() for one in caplog.records] == ["affinity_watch.fault"]
        await _older(scene)

    Scene().run(story)


def test_a_process_without_a_leader_watches_nothing() -> None:
    async def story(scene: Scene) -> None:
        assert not scene.watch.on_demand
        scene.create("a", "1", [POOL])
        await asyncio.sleep(SHORTLY)
        assert (scene.gaps, scene.values("fairlead_published_pods_total")) == (None, {})

    Scene().run(story, namespace=None)
