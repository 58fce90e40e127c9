"""A leader for a while: schedulers that are paused, listed, not needed, or run by others."""

import asyncio
from collections.abc import Mapping

from fairlead.control.decide.desired import PAUSED
from fairlead.pki.authority import Phase
from fairlead.render.object_names import SCHEDULER_LABEL, digest
from support.control.leading import STATUS
from support.faults.cluster import (
    DEPLOYMENT,
    HASH,
    NAMESPACE,
    PLACED,
    SCHEDULER,
    FakeCluster,
)
from support.faults.faults import Wire
from support.faults.leader import until
from support.faults.life import CERTIFICATE, POLICY, STAGES, condition, created_objects
from support.faults.stories import begun, drifted, with_scheduler, with_settings

WAKES = "patch csistoragecapacities fairlead-wake-up"
SLOW = "schedulers: [{name: s, timeout: 2s, "
PUBLISHED = ("", "configmaps", NAMESPACE, "kube-scheduler-s")


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
