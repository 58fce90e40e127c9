"""A leader for a while: the accounts of the chart's bindings, and owners of what is outside of its namespace."""

import asyncio
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from fairlead.control.decide.desired import PAUSED
from fairlead.control.loop.queue import RESYNC_S
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.kube.errors import UnreachableError
from fairlead.kube.http.transport import Request
from support.control.leading import SOON_S, counted
from support.faults.cluster import (
    BINDING,
    DEPLOYMENT,
    NAMESPACE,
    FakeCluster,
    binding_key,
)
from support.faults.faults import Wire
from support.faults.leader import until
from support.faults.life import POLICY, STAGES, condition
from support.faults.stories import drifted, with_scheduler
from support.render.scheduler_bindings import chart_bindings

if TYPE_CHECKING:
    from support.faults.api import Key


def bound(cluster: FakeCluster) -> set[tuple[str, ...]]:
    """The accounts in each of the chart's bindings."""
    found = (cluster.api.objects[binding_key(one)] for one in chart_bindings(NAMESPACE))
    return {tuple(who["name"] for who in one.get("subjects", ())) for one in found}


def test_the_charts_bindings_have_the_accounts_of_the_schedulers_that_exist() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        account = ("", "serviceaccounts", NAMESPACE, "kube-scheduler-s")
        labels = cluster.api.objects[account]["metadata"]["labels"]
        assert bound(cluster) == {("kube-scheduler-s",)}
        # an account of somebody else who took the labels is not bound
        cluster.api.put((*account[:3], "intruder"), {"metadata": {"labels": labels}})
        for edit in ([], [{"kind": "User", "name": "intruder"}]):
            cluster.api.edit(BINDING, subjects=edit)
            await until("it to be bound again", lambda: bound(cluster) == {("kube-scheduler-s",)}, SOON_S)
        text = f"ClusterRoleBinding {BINDING[3]} was edited"
        await until("it to be told", lambda: drifted(cluster) == [text, text])
        assert cluster.api.objects[BINDING]["roleRef"]["name"] == "system:kube-scheduler"
        STAGES["the last policy's end"].act(cluster)
        await until("its end", lambda: STAGES["the last policy's end"].done(cluster))
        await until("nobody to be bound", lambda: bound(cluster) == {()}, SOON_S)

    with_scheduler(story)


def test_a_binding_that_is_gone_is_named_and_all_is_well_once_the_chart_is_applied_again() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        before = cluster.api.objects[BINDING]
        cluster.api.delete(BINDING)
        await until("it", lambda: condition(cluster, "Ready")[1] == "ReconcileFailed", 60)
        assert (
            f"{BINDING[3]}: 404 NotFound: there is no such binding; the chart creates it"
            in (condition(cluster, "Ready")[2])
        )
        cluster.api.put(BINDING, {key: one for key, one in before.items() if key not in ("subjects", "metadata")})
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"), 60)
        assert bound(cluster) == {("kube-scheduler-s",)}

    with_scheduler(story)


def test_a_change_of_a_binding_causes_one_sync_and_no_reconcile() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        with counted(Reconciler, "reconcile") as reconciled, counted(SchedulerBindings, "sync") as synced:
            cluster.api.edit(BINDING, subjects=[])
            await until("it to be bound again", lambda: bound(cluster) == {("kube-scheduler-s",)}, SOON_S)
            await asyncio.sleep(SOON_S)
            assert (len(synced), reconciled) == (2, []), "the edit, and what was written then"
            cluster.api.edit(DEPLOYMENT, metadata={"annotations": {"example.com/touched": "1"}})
            await until("a reconcile", lambda: bool(reconciled))
            await asyncio.sleep(SOON_S)
            assert len(synced) == 2, "its account is bound"

    with_scheduler(story)


def test_a_leader_goes_on_when_what_it_has_recorded_of_schedulers_cannot_be_read_for_a_while() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        once, fails = wire.once, True

        async def sometimes(ask: Request, *more: Any, **others: Any) -> bytes:
            if fails and ask.verb == "get" and ask.where.name == "fairlead-schedulers":
                raise UnreachableError(ask.verb, ask.where, "on purpose")
            return await once(ask, *more, **others)

        wire.once = sometimes  # type: ignore[method-assign]
        await asyncio.sleep(RESYNC_S + 50)
        fails = False
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))

    with_scheduler(story)


def test_drift_of_a_binding_that_is_corrected_before_another_one_fails_is_reported() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        (last,) = {binding_key(one) for one in chart_bindings(NAMESPACE)[-1:]}
        assert last != BINDING
        with patch("support.faults.leader.tell", lambda *_: None):
            wire.denied = f"{last[1]} {last[3]}"
            cluster.api.edit(last, subjects=[])
            cluster.api.edit(BINDING, subjects=[])
            await until("it", lambda: "on purpose" in condition(cluster, "Ready")[2], 60)
            assert bound(cluster) == {("kube-scheduler-s",), ()}
        wire.denied = ""
        text = f"ClusterRoleBinding {BINDING[3]} was edited"
        await until("it to be told", lambda: text in drifted(cluster), 60)

    with_scheduler(story)


def test_a_right_to_write_a_binding_is_named_while_it_is_missing() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        wire.lacks = (f"clusterrolebindings {BINDING[3]}",)
        cluster.api.edit(BINDING, subjects=[])
        await until("it", lambda: condition(cluster, "Ready")[1] == "Forbidden", 60)
        assert "resources: [clusterrolebindings], verbs: [patch]" in condition(cluster, "Ready")[2]
        wire.lacks = ()
        await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"), 60)
        assert bound(cluster) == {("kube-scheduler-s",)}

    with_scheduler(story)


def test_the_account_of_a_paused_scheduler_stays_bound() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
        await until("it", lambda: condition(cluster, "Ready")[1] == "Paused")
        cluster.api.edit(BINDING, subjects=[])
        await until("it to be bound again", lambda: bound(cluster) == {("kube-scheduler-s",)}, SOON_S)

    with_scheduler(story)


def owners(cluster: FakeCluster) -> dict[str, list[str]]:
    """The UIDs of whom bindings outside of our namespace belong to."""
    return {
        key[3]: [one["uid"] for one in obj["metadata"].get("ownerReferences", ())]
        for kind in ("clusterrolebindings", "rolebindings")
        for key, obj in cluster.api.of(kind)
        if key[2] != NAMESPACE
    }


def test_what_is_bound_outside_of_our_namespace_belongs_to_it() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        uid = cluster.api.objects["", "namespaces", "", NAMESPACE]["metadata"]["uid"]
        found = owners(cluster)
        assert len(found) == 3
        assert {*map(tuple, found.values())} == {(uid,)}
        cluster.api.put(BINDING, {**cluster.api.objects[BINDING], "metadata": {}})
        await until("it to belong to it again", lambda: owners(cluster)[BINDING[3]] == [uid], 20)
        wire.writes.clear()
        await asyncio.sleep(1000)
        assert wire.writes == []

    with_scheduler(story)


def test_what_came_with_the_operator_belongs_to_its_namespace() -> None:
    group, name = "rbac.authorization.k8s.io", f"fairlead.{NAMESPACE}.operator"
    keys: list[Key] = [
        (group, "clusterrolebindings", "", name),
        (group, "rolebindings", "default", f"{name}-in-default"),
        (group, "rolebindings", "kube-system", f"{name}-in-kube-system"),
    ]

    async def story(cluster: FakeCluster, wire: Wire) -> None:
        for key in keys:
            cluster.api.put(key, {"roleRef": {}, "metadata": {"ownerReferences": [dict(OWNER)]}})
        wire.died.set()
        await until("all to belong to it", lambda: all(len(owners(cluster)[key[3]]) == 2 for key in keys), 60)
        assert all(cluster.api.objects[key]["metadata"]["ownerReferences"][0] == OWNER for key in keys)

    with_scheduler(story)


OWNER = {"apiVersion": "v1", "kind": "Namespace", "name": "another", "uid": "x"}
