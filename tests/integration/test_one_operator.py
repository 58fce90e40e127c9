"""Two operators beside one real API server: one manages the policies, the other says who does, and follows it."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fairlead.control.reconcile.object_client import ObjectClient, ref_of
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.process.cluster_claim import CLAIM
from fairlead.process.uninstaller import Uninstaller
from support.kube.crd import POLICIES
from support.process.operating import Operating
from support.render.scheduler_bindings import chart_bindings
from testbed import process
from testbed.api import wait_for
from testbed.fixtures import Cluster

_NAMES = ("first-system", "second-system")
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/schedulerextenderpolicies.fairlead.dev"


@pytest.fixture
def operators(with_crd: Cluster, tmp_path: Path) -> Iterator[Callable[..., Operating]]:
    made: list[Operating] = []

    def begin(namespace: str, settings: str = "") -> Operating:
        with_crd.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        folder = tmp_path / namespace
        folder.mkdir()
        made.append(Operating(with_crd, namespace, folder, settings))
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.kill()
        for binding in chart_bindings(one.namespace):  # of one that never led, which belong to nothing
            with_crd.api.delete(ref_of(binding).path)
        with_crd.api.delete(_LEASE.replace("kube-system", one.namespace))
        with_crd.api.delete(f"/api/v1/namespaces/{one.namespace}")
    with_crd.api.delete(_LEASE)


def test_a_second_operator_refuses_to_lead_until_the_first_has_gone(
    operators: Callable[..., Operating], with_crd: Cluster
) -> None:
    first, second = map(operators, _NAMES)
    wait_for("the first to lead", lambda: _tells(first, "fairlead_leader 1.0"))
    why = "the operator in the namespace first-system manages the policies"
    wait_for("the second to say why not", lambda: why in second.probe("readyz")[1])
    assert second.is_ready(), "schedulers that are wired to it are answered"
    assert _tells(second, "fairlead_leader 0.0")
    assert _tells(second, 'fairlead_other_operator{namespace="first-system"} 1.0')

    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    gang = {"name": "jobs", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "2"}
    spec = {"schedulerName": "s", "filters": [{"name": "f", "expression": "true"}], "binding": {"gang": [gang]}}
    with_crd.api.create(POLICIES, {**kind, "metadata": {"name": "some"}, "spec": spec})
    wait_for("the first's scheduler", lambda: _has_scheduler(with_crd, "first-system"))
    assert not _has_scheduler(with_crd, "second-system")
    for one in (first, second):  # a scheduler that calls the second would wait for its groups in vain otherwise
        wait_for("it to hold groups", partial(_tells, one, 'fairlead_held_binds{scheduler="s"} 0.0'))

    process.kill(one for one in [process.find(with_crd.folder, first.name)] if one)
    asyncio.run(_uninstall(with_crd, "first-system"))
    assert not with_crd.api.exists(_LEASE)
    wait_for("the second to lead", lambda: _tells(second, "fairlead_leader 1.0"))
    assert with_crd.api.get(_LEASE)["spec"]["holderIdentity"] == "second-system"
    assert CLAIM.name in _LEASE
    wait_for("its scheduler", lambda: _has_scheduler(with_crd, "second-system"))
    assert "manages the policies" not in second.probe("readyz")[1]


def test_two_that_were_told_different_namespaces_of_the_claim_are_detected_and_one_leads(
    operators: Callable[..., Operating], with_crd: Cluster
) -> None:
    names = ("told-a-system", "told-b-system", "told-nothing-system")  # those of the other test may still be going
    first = operators(names[0], f"claimNamespace: {names[0]}")
    wait_for("the first to lead", lambda: _tells(first, "fairlead_leader 1.0"))
    at = _LEASE.replace("kube-system", "{}")
    assert with_crd.api.get(at.format(names[0]))["spec"]["holderIdentity"] == names[0]
    assert not with_crd.api.exists(_LEASE)

    second = operators(names[1], f"claimNamespace: {names[1]}")
    why = f"the operator in the namespace {names[0]} manages the policies, and has another claimNamespace"
    wait_for("the second to say why not", lambda: why in second.probe("readyz")[1])
    assert _tells(second, f'fairlead_other_operator{{namespace="{names[0]}"}} 1.0')
    assert _tells(second, "fairlead_leader 0.0")
    assert not with_crd.api.exists(at.format(names[1]))
    assert _tells(first, "fairlead_leader 1.0")

    second.kill()
    third = operators(names[2])  # kube-system's claim counts more
    wait_for("the third to lead", lambda: _tells(third, "fairlead_leader 1.0"))
    wait_for("the first to step down", lambda: _tells(first, "fairlead_leader 0.0"), timeout_s=90)
    assert _tells(first, f'fairlead_other_operator{{namespace="{names[2]}"}} 1.0')


def _tells(one: Operating, sample: str) -> bool:
    return sample in one.probe("metrics")[1].splitlines()


def _has_scheduler(cluster: Cluster, namespace: str) -> bool:
    return cluster.api.exists(f"/apis/apps/v1/namespaces/{namespace}/deployments/kube-scheduler-s")


async def _uninstall(cluster: Cluster, namespace: str) -> None:
    async with Client(from_kubeconfig([cluster.kubeconfig])) as client:
        await Uninstaller(
            objects=ObjectClient(client), namespace=namespace, operator="none=none", lasts_s=60, report=lambda _: None
        ).run()
