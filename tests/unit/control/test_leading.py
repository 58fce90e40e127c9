"""A leader for a while, in virtual time: what it sees, and how often it writes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fairlead.control.gathering import PAUSED
from faultkit import virtual
from faultkit.cluster import AUTHORITY, NAMESPACE, Cluster
from faultkit.faults import Wire
from faultkit.leader import around, at_work, until
from faultkit.life import CERTIFICATE, POLICY, STAGES, condition, made

SOON_S = 5.0
STATUS = "patch schedulerextenderpolicies/status p"
Story = Callable[[Cluster, Wire], Coroutine[Any, Any, None]]


def told(story: Story) -> None:
    """With a scheduler that runs."""
    cluster = Cluster()

    async def whole() -> None:
        wire = Wire(cluster.api)
        async with at_work(cluster, wire):
            STAGES["the first policy"].act(cluster)
            await until("Ready", lambda: STAGES["the first policy"].done(cluster))
            await asyncio.sleep(100)
            await story(cluster, wire)

    with around(cluster):
        virtual.run(whole())


KINDS = (
    "configmaps", "serviceaccounts", "deployments", "networkpolicies", "poddisruptionbudgets", "clusterrolebindings",
    "rolebindings", "roles", "secrets",
)  # fmt: skip


@pytest.mark.parametrize("plural", KINDS)
def test_what_somebody_deletes_is_back_within_seconds(plural: str) -> None:
    async def story(cluster: Cluster, _: Wire) -> None:
        there = made(cluster, plural)
        assert there
        for key in there:
            cluster.api.delete(key)
            await until(f"{' '.join(key)} to be back", lambda key=key: key in cluster.api.objects, SOON_S)  # type: ignore[misc]

    told(story)


def test_counters_are_written_once_a_minute_and_the_last_ones_in_the_end() -> None:
    async def story(cluster: Cluster, wire: Wire) -> None:
        time = asyncio.get_running_loop().time
        begun, wire.writes[:] = time(), []
        cluster.counted = lambda: int(min(time() - begun, 600))
        await asyncio.sleep(700)
        assert wire.writes.count(STATUS) in (10, 11, 12)
        (rule,) = cluster.api.objects[POLICY]["status"]["rules"]
        assert rule["errors"]["count"] == 600

    told(story)


def test_a_paused_schedulers_certificate_expires_and_the_status_says_so() -> None:
    async def story(cluster: Cluster, wire: Wire) -> None:
        before = cluster.api.objects[CERTIFICATE]
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: "true"}})
        STAGES["a certificate's renewal"].act(cluster)
        wire.writes.clear()
        await until("it", lambda: "is not renewed: its time is two thirds over" in condition(cluster, "Ready")[2])
        await asyncio.sleep(1000)
        assert cluster.api.objects[CERTIFICATE] == before
        assert {*wire.writes} == {STATUS}
        cluster.api.edit(POLICY, metadata={"annotations": {PAUSED: None}})
        await until("its renewal", lambda: STAGES["a certificate's renewal"].done(cluster))

    told(story)


def test_a_spoilt_authority_is_named_and_can_be_mended() -> None:
    async def story(cluster: Cluster, _: Wire) -> None:
        good = cluster.api.objects[AUTHORITY]["data"]
        cluster.api.put(AUTHORITY, {**cluster.api.objects[AUTHORITY], "data": {"tls.key": good["tls.key"]}})
        STAGES["a wiring change"].act(cluster)
        await until("it", lambda: condition(cluster, "Ready")[1] == "ReconcileFailed")
        said = condition(cluster, "Ready")[2]
        assert said.startswith(f"Secret {NAMESPACE}/fairlead-ca, tls.crt is missing: put it back, or delete the Secret")
        cluster.api.put(AUTHORITY, {**cluster.api.objects[AUTHORITY], "data": good})
        await until("Ready", lambda: STAGES["a wiring change"].done(cluster))

    told(story)


def test_a_scheduler_is_noted_as_ours_before_it_can_place_anything() -> None:
    """Else its own pods would look like those of somebody else's scheduler to whoever leads next."""

    async def story(cluster: Cluster, _: Wire) -> None:
        noted = cluster.api.objects["", "configmaps", NAMESPACE, "fairlead-schedulers"]["metadata"]["resourceVersion"]
        deployment = next(one for one in cluster.api.history if one.key[1] == "deployments")
        assert int(noted) < deployment.version

    told(story)
