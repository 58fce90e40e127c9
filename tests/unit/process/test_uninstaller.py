"""The end, as far as it is about the operator that still leads."""

import asyncio
from typing import Any

import pytest

from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.pki.identities import REPLICAS
from fairlead.process.cluster_claim import CLAIM
from fairlead.process.uninstaller import Uninstaller
from support.faults import virtual
from support.faults.api import Happened
from support.faults.cluster import DEPLOYMENT, NAMESPACE, FakeCluster
from support.faults.faults import Wire

LEASE = ("coordination.k8s.io", "leases", NAMESPACE, "fairlead")
LABELS = {"fairlead.dev/scheduler": "s", "app.kubernetes.io/managed-by": "fairlead"}


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        ({"holderIdentity": "fairlead-1_u"}, LeaseTimings().act_s),
        ({"holderIdentity": ""}, 0),
        ({"holderIdentity": "fairlead-uninstall"}, 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_nothing_is_deleted_before_a_leader_has_stopped(spec: dict[str, Any] | None, waits: float) -> None:
    cluster, happened = FakeCluster(), dict[str, float]()
    cluster.api.put(DEPLOYMENT, {"metadata": {"labels": LABELS}, "spec": {"selector": {}}})
    if spec is not None:
        cluster.api.put(LEASE, {"spec": spec})

    async def end() -> None:
        time = asyncio.get_running_loop().time

        def hear(one: Happened) -> None:
            happened.setdefault(f"{one.type} {one.key[3]}", time())

        cluster.api.heard.append(hear)
        async with Wire(cluster.api).client() as client:
            await Uninstaller(
                objects=ObjectClient(client), namespace=NAMESPACE, operator="x=y", lasts_s=100, report=lambda _: None
            ).run()

    virtual.run(end())
    assert happened["DELETED kube-scheduler-s"] - happened.get("MODIFIED fairlead", 0.0) == waits


@pytest.mark.parametrize(("holder", "stays"), [(NAMESPACE, False), ("another", True)])
def test_another_operator_may_manage_the_policies_once_ours_does_not(holder: str, *, stays: bool) -> None:
    claim, cluster = ("coordination.k8s.io", "leases", "kube-system", CLAIM.name), FakeCluster()
    cluster.api.put(claim, {"spec": {"holderIdentity": holder}})

    async def end() -> None:
        async with Wire(cluster.api).client() as client:
            await Uninstaller(
                objects=ObjectClient(client), namespace=NAMESPACE, operator="x=y", lasts_s=100, report=lambda _: None
            ).run()

    virtual.run(end())
    assert (claim in cluster.api.objects) is stays


POLICY = ("fairlead.dev", "schedulerextenderpolicies", "", "p")


@pytest.mark.parametrize(
    ("others", "status"),
    [
        pytest.param({}, "False", id="the only operator"),
        pytest.param({("apps", "deployments", "other", "fairlead"): {}}, "True", id="another one is there"),
        pytest.param(
            {("coordination.k8s.io", "leases", "kube-system", CLAIM.name): "other"}, "True", id="...and leads"
        ),
        pytest.param({("coordination.k8s.io", "leases", "kube-system", CLAIM.name): NAMESPACE}, "False", id="it led"),
    ],
)
def test_a_status_is_taken_back_unless_another_operator_writes_it(others: dict[Any, Any], status: str) -> None:
    cluster, said = FakeCluster(), list[str]()
    conditions = [{"type": "Ready", "status": "True", "reason": "Ready", "message": "its rules serve"}]
    cluster.api.put(POLICY, {"metadata": {"generation": 1}, "spec": {}, "status": {"conditions": conditions}})
    for key, holder in others.items():
        labels = dict(one.split("=") for one in REPLICAS.split(","))
        cluster.api.put(key, {"metadata": {"labels": labels}, "spec": {"holderIdentity": holder} if holder else {}})

    async def end() -> None:
        async with Wire(cluster.api).client() as client:
            work = Uninstaller(
                objects=ObjectClient(client), namespace=NAMESPACE, operator="x=y", lasts_s=100, report=said.append
            )
            assert (await work.find()).is_there is (status == "False")
            await work.run()

    virtual.run(end())
    (ready,) = cluster.api.objects[POLICY]["status"]["conditions"]
    assert ready["status"] == status
    assert ("policies: their statuses say that nothing enforces them" in said) is (status == "False")
    assert said[-1] == "done; 1 policy and the CustomResourceDefinition remain"


@pytest.mark.parametrize("label", ["learned", "grants", "groups", "turns"])
def test_what_replicas_keep_in_config_maps_goes_and_others_stay(label: str) -> None:
    cluster = FakeCluster()
    kept, other = (("", "configmaps", NAMESPACE, name) for name in (f"fairlead-{label}-one", "of-a-user"))
    cluster.api.put(kept, {"metadata": {"labels": {f"fairlead.dev/{label}": ""}}, "data": {}})
    cluster.api.put(other, {"metadata": {"labels": {"app": "x"}}, "data": {}})

    async def end() -> None:
        async with Wire(cluster.api).client() as client:
            await Uninstaller(
                objects=ObjectClient(client), namespace=NAMESPACE, operator="x=y", lasts_s=100, report=lambda _: None
            ).run()

    virtual.run(end())
    assert kept not in cluster.api.objects
    assert other in cluster.api.objects


@pytest.mark.parametrize(("namespace", "stays"), [(NAMESPACE, False), ("another", True)])
def test_node_affinity_that_another_operator_publishes_stays(namespace: str, *, stays: bool) -> None:
    published, cluster = ("fairlead.dev", "publishedaffinities", "", "s"), FakeCluster()
    labels = {"app.kubernetes.io/managed-by": "fairlead", "fairlead.dev/operator-namespace": namespace}
    cluster.api.put(published, {"metadata": {"labels": labels}, "spec": {"schedulerName": "s"}})

    async def end() -> None:
        async with Wire(cluster.api).client() as client:
            await Uninstaller(
                objects=ObjectClient(client), namespace=NAMESPACE, operator="x=y", lasts_s=100, report=lambda _: None
            ).run()

    virtual.run(end())
    assert (published in cluster.api.objects) is stays
