"""A leader for a while, in virtual time: what it sees, and how often it writes."""

import asyncio
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest
from generate.crds import installed_policy

from fairlead.api.v1alpha1 import deciding_fields
from fairlead.control.loop.controller import LeaderController
from fairlead.control.reconcile.reconciler import Reconciler
from support.control.leading import SOON_S, STATUS, counted
from support.faults.api import Happened
from support.faults.cluster import (
    AUTHORITY,
    DEPLOYMENT,
    HASH,
    NAMESPACE,
    SCHEDULER,
    FakeCluster,
)
from support.faults.faults import Wire
from support.faults.leader import tell, until
from support.faults.life import CERTIFICATE, POLICY, STAGES, condition, created_objects
from support.faults.stories import begun, drifted, with_scheduler

KINDS = (
    "configmaps", "serviceaccounts", "deployments", "networkpolicies", "poddisruptionbudgets", "rolebindings", "roles",
    "secrets",
)  # fmt: skip


@pytest.mark.parametrize("plural", KINDS)
def test_what_somebody_deletes_is_back_within_seconds(plural: str) -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        there = created_objects(cluster, plural)
        assert there
        for key in there:
            cluster.api.delete(key)
            await until(f"{' '.join(key)} to be back", lambda key=key: key in cluster.api.objects, SOON_S)  # type: ignore[misc]

    with_scheduler(story)


def test_a_policy_of_which_nobody_tells_the_leader_is_found_by_what_replicas_have_seen() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        await asyncio.sleep(100)
        STAGES["the first policy"].act(cluster)
        await until("Ready", lambda: STAGES["the first policy"].done(cluster), 60)
        before = cluster.api.objects[DEPLOYMENT]
        STAGES["a wiring change"].act(cluster)
        await until("a roll", lambda: cluster.api.objects[DEPLOYMENT] != before, 60)

    with patch("support.faults.leader.tell", _of_children):
        begun(story)


def _of_children(controller: LeaderController, happened: Happened) -> None:
    if happened.key[:2] != POLICY[:2]:
        tell(controller, happened)


def test_what_somebody_deletes_before_a_new_leader_watches_is_back_soon() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        (key,) = created_objects(cluster, "poddisruptionbudgets")
        with patch("support.faults.leader.tell", lambda *_: None):
            wire.died.set()
            await asyncio.sleep(25)  # by now another one has had its first look
            cluster.api.delete(key)
            await until("it to be back", lambda: key in cluster.api.objects, 60)

    with_scheduler(story)


def test_what_somebody_does_to_a_certificate_is_told_once_and_its_renewal_is_not() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        good = cluster.api.objects[CERTIFICATE]
        cluster.api.delete(CERTIFICATE)
        await until("it to be told", lambda: drifted(cluster) == ["Secret kube-scheduler-s-tls was missing"])
        cluster.api.put(CERTIFICATE, {**good, "data": {**good["data"], "tls.crt": good["data"]["tls.key"]}})
        await until("it to be told", lambda: "Secret kube-scheduler-s-tls was edited" in drifted(cluster))
        STAGES["a certificate's renewal"].act(cluster)
        await until("its renewal", lambda: STAGES["a certificate's renewal"].done(cluster))
        STAGES["the authority's rotation"].act(cluster)
        await until("the end of it", lambda: STAGES["the authority's rotation"].done(cluster))
        await asyncio.sleep(1000)
        assert len(drifted(cluster)) == 2

    with_scheduler(story)


TAMPERED: Mapping[str, Mapping[str, Any]] = {
    "rolebindings": {"roleRef": {"kind": "Role", "name": "another"}},
    "configmaps": {"immutable": True, "data": {"config.yaml": "another"}},
    "deployments": {"spec": {"selector": {}, "replicas": 0, "template": {"metadata": {"annotations": {HASH: "x"}}}}},
}


@pytest.mark.parametrize("plural", TAMPERED)
def test_what_somebody_puts_in_the_place_of_ours_goes(plural: str) -> None:
    """The API server lets nobody change what is another in it."""

    async def story(cluster: FakeCluster, _: Wire) -> None:
        for key in (one for one in created_objects(cluster, plural) if not one[3].endswith(".state")):
            good = cluster.api.objects[key]
            cluster.api.delete(key)
            cluster.api.put(key, {**good, **TAMPERED[plural]})
            text = f"{good['kind']} {key[3]} was edited"
            await until(text, lambda text=text: text in drifted(cluster))  # type: ignore[misc]
            there = cluster.api.objects[key]
            for part in ("roleRef", "data"):
                assert there.get(part) == good.get(part)
            assert there.get("spec", {}).get("selector") == good.get("spec", {}).get("selector")
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))

    with_scheduler(story)


def test_counters_are_written_once_a_minute_and_the_last_ones_in_the_end() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        time = asyncio.get_running_loop().time
        begun, wire.writes[:] = time(), []
        cluster.counted = lambda: int(min(time() - begun, 600))
        await asyncio.sleep(700)
        assert wire.writes.count(STATUS) in (10, 11, 12)
        (rule,) = cluster.api.objects[POLICY]["status"]["rules"]
        assert rule["errors"]["count"] == 600

    with_scheduler(story)


def test_what_only_statuses_show_is_written_without_a_reconcile() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        with counted(Reconciler, "reconcile") as reconciled:
            time = asyncio.get_running_loop().time
            begun, wire.writes[:] = time(), []
            cluster.counted = lambda: int(time() - begun)
            await asyncio.sleep(200)  # replicas answer something else with every poll
            assert wire.writes.count(STATUS) in (3, 4)
            assert len(reconciled) <= 2, "of its worker, and of a resync"

    with_scheduler(story)


def test_no_policy_is_held() -> None:
    """Whoever deletes it waits for nobody, also when no operator is there any more."""

    async def story(cluster: FakeCluster, wire: Wire) -> None:
        touched = "patch schedulerextenderpolicies p"
        assert touched not in wire.writes
        cluster.api.delete(POLICY)
        assert POLICY not in cluster.api.objects

    with_scheduler(story)


def test_a_spoilt_authority_is_named_and_can_be_mended() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        good = cluster.api.objects[AUTHORITY]["data"]
        cluster.api.put(AUTHORITY, {**cluster.api.objects[AUTHORITY], "data": {"tls.key": good["tls.key"]}})
        STAGES["a wiring change"].act(cluster)
        await until("it", lambda: condition(cluster, "Ready")[1] == "ReconcileFailed")
        said = condition(cluster, "Ready")[2]
        assert said.startswith(f"Secret {NAMESPACE}/fairlead-ca, tls.crt is missing: restore it, or delete the Secret")
        cluster.api.put(AUTHORITY, {**cluster.api.objects[AUTHORITY], "data": good})
        await until("Ready", lambda: STAGES["a wiring change"].done(cluster))

    with_scheduler(story)


READY = {"nodeReadiness": {"conditions": [{"type": "NetworkReady"}]}}


def test_what_an_older_crd_has_removed_is_said_and_not_more_often_than_it_changes() -> None:
    own = deciding_fields(installed_policy())
    older = {name: [one for one in fields if one != "nodeReadiness"] for name, fields in own.items()}

    async def story(cluster: FakeCluster, wire: Wire) -> None:
        cluster.api.rules = own
        spec = {"schedulerName": SCHEDULER, "filters": [{"name": "f", "expression": "true"}, {"name": "g", **READY}]}
        policy = cluster.api.put(POLICY, {**cluster.api.objects[POLICY], "spec": spec})
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))
        cluster.api.rules = older
        removed = {**spec, "filters": [{"name": "f", "expression": "true"}, {"name": "g"}]}
        cluster.api.objects[POLICY] = {
            **cluster.api.objects[POLICY],
            "spec": removed,
        }  # as it is read, without an event
        await until("it", lambda: condition(cluster, "Ready")[1] == "CRDOutdated", 65)
        assert condition(cluster, "Stalled")[:2] == ("True", "CRDOutdated")
        said = (
            "nothing decides in spec.filters[1]: the CustomResourceDefinition is older than the operator and lacks "
            "spec.filters.nodeReadiness, so the API server has removed that; apply the one of the operator's version, "
            "and then the policy again"
        )
        assert condition(cluster, "Accepted") == ("False", "CRDOutdated", said)
        wire.writes.clear()
        cluster.api.rules = None  # nobody tells, which changes nothing
        await asyncio.sleep(1000)
        assert condition(cluster, "Accepted")[1] == "CRDOutdated"
        assert wire.writes == []
        cluster.api.rules = own
        cluster.api.put(POLICY, {**cluster.api.objects[POLICY], "spec": policy["spec"]})
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"), 65)

    with_scheduler(story)
