"""A leader for a while, in virtual time: what it sees, and how often it writes."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from generate.crds import installed_policy

from fairlead.api.v1alpha1 import deciding_fields
from fairlead.control.decide.desired import PAUSED
from fairlead.control.loop.controller import LeaderController
from fairlead.control.loop.queue import RESYNC_S
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.kube.errors import UnreachableError
from fairlead.kube.http.transport import Request
from fairlead.pki.authority import Phase
from fairlead.render.object_names import SCHEDULER_LABEL, digest
from support.faults.api import Happened, Key
from support.faults.cluster import (
    AUTHORITY,
    BINDING,
    DEPLOYMENT,
    HASH,
    NAMESPACE,
    PLACED,
    SCHEDULER,
    FakeCluster,
    binding_key,
)
from support.faults.faults import Wire
from support.faults.leader import tell, until
from support.faults.life import CERTIFICATE, POLICY, STAGES, condition, created_objects
from support.faults.stories import begun, drifted, with_scheduler, with_settings
from support.render.scheduler_bindings import chart_bindings

SOON_S = 5.0
STATUS = "patch schedulerextenderpolicies/status p"
WAKES = "patch csistoragecapacities fairlead-wake-up"
SLOW = "schedulers: [{name: s, timeout: 2s, "
PUBLISHED = ("", "configmaps", NAMESPACE, "kube-scheduler-s")


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


@contextmanager
def counted(what: type, method: str) -> Iterator[list[tuple[object, ...]]]:
    """Arguments of each call of a method."""
    calls = list[tuple[object, ...]]()
    real = getattr(what, method)

    async def count(self: object, *args: object) -> object:
        calls.append(args)
        return await real(self, *args)

    with patch.object(what, method, count):
        yield calls


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


def test_a_paused_schedulers_certificate_is_renewed_and_nothing_else_of_it_is_written() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
        await until("it", lambda: condition(cluster, "Ready")[1] == "Paused")
        before = cluster.api.objects[DEPLOYMENT]
        wire.writes.clear()
        STAGES["a wiring change"].act(cluster)
        STAGES["a certificate's renewal"].act(cluster)
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
        await until("its renewal", lambda: STAGES["a certificate's renewal"].done(cluster))
        await asyncio.sleep(1000)
        assert {one for one in wire.writes if "secrets" not in one} - {WAKES} == {STATUS}
        assert cluster.api.objects[DEPLOYMENT] == before
        assert "except certificates" in condition(cluster, "Ready")[2]

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


def test_a_first_configuration_that_runs_late_is_good_all_the_same() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        cluster.no_image = True
        STAGES["the first policy"].act(cluster)
        await until("it", lambda: condition(cluster, "Ready")[1] == "ConfigurationRejected")
        assert "not verified within 180 s" in condition(cluster, "Stalled")[2]
        await asyncio.sleep(1000)
        cluster.no_image = False
        cluster.run()
        await until("Ready", lambda: STAGES["the first policy"].done(cluster), 60)

    begun(story)


def test_a_deployment_that_the_api_server_finds_invalid_is_put_away_and_the_last_good_one_stays() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        before = cluster.api.objects[DEPLOYMENT]["metadata"]["resourceVersion"]
        cluster.api.invalid = "no-such-operator"
        with with_settings(f"{SLOW}placement: {{tolerations: [{{operator: no-such-operator}}]}}}}]"):
            await until("it", lambda: STAGES["a configuration that is refused"].done(cluster))
            status, reason, message = condition(cluster, "Stalled")
            assert (status, reason) == ("True", "ConfigurationRejected")
            assert "the API server rejects it: no-such-operator cannot be had" in message
            assert cluster.api.objects[DEPLOYMENT]["metadata"]["resourceVersion"] == before
            wire.writes.clear()
            await asyncio.sleep(1000)
            assert wire.writes == []
        with with_settings(f"{SLOW}replicas: 3}}]"):
            await until("Ready", lambda: cluster.api.objects[DEPLOYMENT]["spec"]["replicas"] == 3)
            await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))

    with_scheduler(story)


def test_a_first_deployment_that_is_invalid_is_said_and_can_be_mended() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        cluster.api.invalid = "no-such-operator"
        with with_settings(f"{SLOW}placement: {{tolerations: [{{operator: no-such-operator}}]}}}}]"):
            STAGES["the first policy"].act(cluster)
            await until("it", lambda: condition(cluster, "Stalled")[:2] == ("True", "ConfigurationRejected"))
            assert "no-such-operator cannot be had" in condition(cluster, "Ready")[2]
        with with_settings(f"{SLOW}replicas: 2}}]"):
            await until("Ready", lambda: STAGES["the first policy"].done(cluster))

    begun(story)


def test_a_scheduler_that_nobody_needs_goes_though_its_certificate_has_gone_before() -> None:
    """Those of others go with the settings that have named it."""

    async def story(cluster: FakeCluster, _: Wire) -> None:
        with with_settings("tls: {mode: Provided}"):
            cluster.api.delete(CERTIFICATE)
            await until("it", lambda: condition(cluster, "Accepted")[1] == "SchedulerRefused")
            cluster.api.delete(POLICY)
            await until("its end", lambda: STAGES["the last policy's end"].done(cluster))

    with_scheduler(story)


def test_of_a_scheduler_that_others_run_it_is_said_what_could_not_be_written_and_that_it_is_paused() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        labels, template = {SCHEDULER_LABEL: SCHEDULER}, {"metadata": {"annotations": {HASH: "theirs"}}}
        theirs = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"labels": labels},
            "spec": {"replicas": 1, "template": template},
        }
        cluster.api.put(DEPLOYMENT, theirs)
        with with_settings("schedulers: [{name: s, management: ConfigOnly}]"):
            wire.denied = "configmaps kube-scheduler-s"
            STAGES["the first policy"].act(cluster)
            await until("it", lambda: "on purpose" in condition(cluster, "Ready")[2])
            assert condition(cluster, "Ready")[1] == "ReconcileFailed"
            wire.denied = ""
            await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))
            assert drifted(cluster) == []
            cluster.api.delete(PUBLISHED)
            await until("it to be back", lambda: PUBLISHED in cluster.api.objects)
            await until("it to be told", lambda: drifted(cluster) == ["ConfigMap kube-scheduler-s was missing"])
            cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
            await until("it", lambda: condition(cluster, "Ready")[1] == "Paused")
        assert cluster.api.objects[DEPLOYMENT]["spec"] == theirs["spec"]

    begun(story)


def test_a_scheduler_that_was_listed_stays_ours_when_it_is_not_any_more() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        with with_settings("schedulers: [{name: s}]"):
            STAGES["the first policy"].act(cluster)
            await until("Ready", lambda: STAGES["the first policy"].done(cluster))
            cluster.api.delete(POLICY)
            await until("its end", lambda: POLICY not in cluster.api.objects)
        STAGES["the first policy"].act(cluster)
        await until("Ready", lambda: STAGES["the first policy"].done(cluster))

    begun(story)


def test_a_scheduler_of_others_is_not_taken_over_when_it_is_not_listed_any_more() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        with with_settings("schedulers: [{name: s, management: ConfigOnly}]"):
            STAGES["the first policy"].act(cluster)
            await until("Ready", lambda: STAGES["the first policy"].done(cluster))
            theirs = {"spec": {"schedulerName": SCHEDULER, "nodeName": "n"}, "status": {"phase": "Running"}}
            cluster.api.put(PLACED, theirs)
        await until("it to be refused", lambda: condition(cluster, "Accepted")[1] == "SchedulerRefused")
        assert DEPLOYMENT not in cluster.api.objects

    begun(story)


def test_a_scheduler_that_others_run_from_now_on_leaves_what_they_need() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        with with_settings("schedulers: [{name: s, management: ConfigOnly}]"):
            await until("it", lambda: {key[1] for key in created_objects(cluster)} == {"configmaps", "secrets"}, 60)
            assert {CERTIFICATE, PUBLISHED} <= {*created_objects(cluster)}
            await until("Ready", lambda: condition(cluster, "Ready")[:2] == ("True", "Ready"))
        with with_settings("schedulers: [{name: s}]"):
            await until("Ready", lambda: DEPLOYMENT in cluster.api.objects and PUBLISHED not in cluster.api.objects)
            await until("Ready", lambda: STAGES["the first policy"].done(cluster))
        assert drifted(cluster) == []

    with_scheduler(story)


def test_a_scheduler_is_noted_as_ours_before_it_can_place_anything() -> None:
    """Else its own pods would look like those of somebody else's scheduler to whoever leads next."""

    async def story(cluster: FakeCluster, _: Wire) -> None:
        noted = cluster.api.objects["", "configmaps", NAMESPACE, "fairlead-schedulers"]["metadata"]["resourceVersion"]
        deployment = next(one for one in cluster.api.history if one.key[1] == "deployments")
        assert int(noted) < deployment.version

    with_scheduler(story)


def test_a_forged_configuration_is_not_put_back_and_goes() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        good = cluster.api.objects[DEPLOYMENT]
        config = good["metadata"]["annotations"][HASH]
        kept = cluster.api.objects["", "configmaps", NAMESPACE, f"kube-scheduler-s.{config}"]
        forged = ("", "configmaps", NAMESPACE, "zz-the-last-that-is-listed")
        data = {**kept["data"], "pod.yaml": kept["data"]["pod.yaml"].replace("kube-scheduler:", "evil:")}
        assert data != kept["data"]
        cluster.api.put(forged, {**kept, "data": data})
        STAGES["a configuration that is refused"].act(cluster)
        await until("the last good one", lambda: STAGES["a configuration that is refused"].done(cluster))
        assert cluster.api.objects[DEPLOYMENT]["spec"] == good["spec"]
        assert forged not in cluster.api.objects
        said = "ConfigMap zz-the-last-that-is-listed does not match its name and hash"
        assert [one for one in drifted(cluster) if one.startswith(said)]

    with_scheduler(story)


def test_a_paused_scheduler_learns_of_another_authority_and_of_nothing_else() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        def running() -> tuple[str, Mapping[str, str]]:
            config = cluster.api.objects[DEPLOYMENT]["metadata"]["annotations"][HASH]
            return config, cluster.api.objects["", "configmaps", NAMESPACE, f"kube-scheduler-s.{config}"]["data"]

        before, kept = running()
        first = cluster.authority
        STAGES["a wiring change"].act(cluster)
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
        STAGES["the authority's rotation"].act(cluster)
        await until("its begin", lambda: cluster.authority is not None and cluster.authority.phase is not Phase.STABLE)
        await until("its end", lambda: cluster.authority is not None and cluster.authority.phase is Phase.STABLE)
        assert first is not None
        assert cluster.authority is not None
        assert cluster.authority.signing != first.signing
        await asyncio.sleep(1000)
        after, now = running()
        assert after != before
        assert now["ca.crt"] == cluster.authority.server_ca_bundle.decode() != kept["ca.crt"]
        assert now["config.yaml"] == kept["config.yaml"]
        assert condition(cluster, "Ready")[1] == "Paused"
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: None}})
        await until("Ready", lambda: STAGES["a wiring change"].done(cluster))
        assert running()[1]["config.yaml"] != kept["config.yaml"]

    with_scheduler(story)


def test_so_do_others_who_run_a_paused_scheduler_themselves() -> None:
    def published(cluster: FakeCluster) -> Mapping[str, str]:
        data: Mapping[str, str] = cluster.api.objects[PUBLISHED]["data"]
        return data

    async def story(cluster: FakeCluster, wire: Wire) -> None:
        with with_settings("schedulers: [{name: s, management: ConfigOnly}]"):
            STAGES["the first policy"].act(cluster)
            await until("it", lambda: PUBLISHED in cluster.api.objects and condition(cluster, "Ready")[1] == "Ready")
            before = published(cluster)
            cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
            await until("it", lambda: condition(cluster, "Ready")[1] == "Paused")
            STAGES["a wiring change"].act(cluster)
            cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
            STAGES["the authority's rotation"].act(cluster)
            await until("another authority", lambda: published(cluster)["ca.crt"] != before["ca.crt"])
            assert cluster.authority is not None
            assert published(cluster)["ca.crt"] == cluster.authority.server_ca_bundle.decode()
            assert published(cluster)["config.yaml"] == before["config.yaml"]
            annotations = cluster.api.objects[PUBLISHED]["metadata"]["annotations"]
            assert annotations[HASH] == digest(published(cluster)["config.yaml"], published(cluster)["ca.crt"])
            wire.writes.clear()
            await asyncio.sleep(1000)
            assert not [one for one in wire.writes if "configmaps" in one]
            assert condition(cluster, "Ready")[1] == "Paused"
            cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: None}})
            await until("what it is to be", lambda: published(cluster)["config.yaml"] != before["config.yaml"])

    begun(story)


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
