"""The leader's publisher: what it says while something is missing, and that its objects stay as it wrote them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.publication.affinity_publisher import ADDED_BY, LOOK_S, AffinityPublisher
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.http.transport import Request
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.render.operator_settings import OperatorSettings, parse_settings
from fairlead.replica_state import PolicyState, PublicationState, ReplicaState
from support.faults import virtual
from support.faults.api import Key, refused
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire

KIND, POLICY, BINDING = (one.resource.plural for one in (PUBLISHED_AFFINITIES, *ADDED_BY))
OBJECT: Key = ("fairlead.dev", KIND, "", "s")
ON, OFF = "publishedAffinity: {enabled: true}", "{}"
TERMS = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
PART = {"name": "p", "uid": "u", "generation": 1, "when": [], "terms": TERMS}


class Scene(Wire):
    """An API server that lacks some kinds, the publisher of a leader, and what it says."""

    def __init__(self, *missing: str, settings: str = ON) -> None:
        super().__init__(FakeCluster().api)
        self.missing = {*missing}
        self.settings: OperatorSettings = parse_settings(settings)
        self.index = PolicyIndex(cast("Any", None))
        self.is_leader, self.changes = True, 0
        for kind in {POLICY, BINDING} - self.missing:
            self.install(kind)
        self.publish("NodeAffinity")

    def install(self, kind: str) -> None:
        self.missing.discard(kind)
        if kind != KIND:
            self.api.put(self.key(kind), {"metadata": {}})

    def remove(self, kind: str) -> None:
        self.missing.add(kind)
        for key in [key for key, _ in self.api.of(kind)]:
            self.api.delete(key)

    def key(self, kind: str) -> Key:
        return "admissionregistration.k8s.io", kind, "", f"fairlead.{NAMESPACE}.published-affinity"

    def publish(self, publish: str) -> None:
        metadata = {"name": "p", "uid": "u", "generation": 1}
        self.index.policies["p"] = {"metadata": metadata, "spec": {"schedulerName": "s", "publish": publish}}

    async def once(self, ask: Request, *more: Any, **named: float) -> bytes:
        if ask.where.resource.plural in self.missing:
            raise refused(ask, 404, "NotFound", "the server could not find the requested resource")
        return await super().once(ask, *more, **named)

    def run(self, story: Callable[["Scene"], Awaitable[None]]) -> None:
        async def work() -> None:
            async with self.client() as client:
                self.publisher = AffinityPublisher(
                    objects=ObjectClient(client),
                    policy_index=self.index,
                    states=lambda: {"one": ReplicaState(policies={"p": STATE})},
                    settings=lambda: self.settings,
                    namespace=NAMESPACE,
                    missing_permissions=MissingPermissions(),
                    is_leader=lambda: self.is_leader,
                    on_change=self._changed,
                )
                task = asyncio.ensure_future(self.publisher.run())
                await asyncio.sleep(1)
                try:
                    await story(self)
                finally:
                    task.cancel()

        virtual.run(work())

    def _changed(self) -> None:
        self.changes += 1

    @property
    def said(self) -> str | None:
        return self.publisher.not_installed

    @property
    def written(self) -> Any:
        return self.api.objects.get(OBJECT)


STATE = PolicyState(uid="u", generation="1", serving="1", reason="Compiled", publication=PublicationState(policy=PART))


@pytest.mark.parametrize(
    ("missing", "says", "is_written"),
    [
        ((), "", True),
        ((POLICY,), POLICY, True),
        ((BINDING,), BINDING, True),
        ((POLICY, BINDING), POLICY, True),
        ((KIND,), "CustomResourceDefinition of PublishedAffinity", False),
        ((KIND, POLICY, BINDING), "CustomResourceDefinition of PublishedAffinity", False),
    ],
)
def test_what_is_missing_is_named_and_is_no_more_once_it_is_there(
    missing: tuple[str, ...], says: str, is_written: bool
) -> None:
    async def story(scene: Scene) -> None:
        assert scene.said is not None
        assert says in scene.said
        assert (scene.written is not None) is is_written
        for kind in missing:
            scene.install(kind)
        await asyncio.sleep(LOOK_S + 1)
        assert (scene.said, scene.written["spec"]["policies"]) == ("", [PART])

    Scene(*missing).run(story)


@pytest.mark.parametrize("kind", [KIND, POLICY, BINDING])
def test_what_is_removed_by_hand_is_told_within_a_minute(kind: str) -> None:
    async def story(scene: Scene) -> None:
        assert scene.said == ""
        before = scene.changes
        scene.remove(kind)
        await asyncio.sleep(60)
        assert scene.said
        assert scene.changes == before + 1

    Scene().run(story)


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"policies": []}},
        {"spec": {"schedulerName": "another"}},
        {"metadata": {"labels": {"fairlead.dev/operator-namespace": "another"}}},
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
    ],
)
def test_an_edit_by_hand_is_put_back(edit: dict[str, Any]) -> None:
    async def story(scene: Scene) -> None:
        before = scene.written
        scene.api.edit(OBJECT, **edit)
        assert scene.written != before
        for _ in range(2):
            await asyncio.sleep(LOOK_S + 1)
            after = scene.written
            assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])

    Scene().run(story)


def test_what_is_deleted_by_hand_is_there_again() -> None:
    async def story(scene: Scene) -> None:
        scene.api.delete(OBJECT)
        await asyncio.sleep(LOOK_S + 1)
        assert scene.written["spec"]["policies"] == [PART]

    Scene().run(story)


def test_what_is_published_no_more_goes_at_once_and_so_does_all_when_it_is_switched_off() -> None:
    async def story(scene: Scene) -> None:
        scene.publish("None")
        scene.publisher.request()
        await asyncio.sleep(1)
        assert scene.written is None
        scene.publish("NodeAffinity")
        scene.publisher.request()
        await asyncio.sleep(1)
        assert scene.written is not None
        scene.settings = parse_settings(OFF)
        scene.publisher.request()
        await asyncio.sleep(1)
        assert scene.written is None
        assert "publishedAffinity.enabled is false" in str(scene.said)

    Scene().run(story)


def test_a_replica_that_leads_no_more_writes_nothing() -> None:
    async def story(scene: Scene) -> None:
        scene.is_leader = False
        scene.api.delete(OBJECT)
        await asyncio.sleep(3 * LOOK_S)
        assert scene.written is None

    Scene().run(story)


def test_a_cluster_in_which_no_policy_publishes_is_not_asked() -> None:
    scene = Scene(settings=OFF)
    scene.publish("None")

    async def story(scene: Scene) -> None:
        await asyncio.sleep(3 * LOOK_S)
        assert (scene.said, scene.writes) == (None, [])

    scene.run(story)
