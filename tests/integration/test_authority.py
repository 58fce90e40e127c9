"""The authority's Secret on a real API server: one survives, whoever writes; and it is followed by name alone."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.kube.access.login import Login, from_kubeconfig
from fairlead.kube.errors import ConflictError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import Phase, read
from fairlead.pki.parsing import digest
from fairlead.pki.rotation import ROTATE, ReplicaTrust
from fairlead.process.replica_certificates import ReplicaCertificates
from scripted.loop import in_loop
from testbed.fixtures import Cluster

CA = "fairlead-ca"


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def access(control_plane: Cluster) -> Login:
    return from_kubeconfig([control_plane.kubeconfig])


def certificates(client: Client, namespace: str) -> SchedulerCertificates:
    return SchedulerCertificates(Secrets(client, namespace), CA, lambda name: f"{name}-client", lambda _: {}, now)


@in_loop
async def test_of_many_replicas_that_start_at_once_one_makes_the_authority(access: Login, namespace: str) -> None:
    async with Client(access) as one, Client(access) as other:
        starting = [certificates(client, namespace).ensure() for client in (one, other) * 5]
        found = await asyncio.gather(*starting)
        assert len({secret.data["tls.crt"] for secret in found}) == 1
        assert len({secret.metadata.uid for secret in found}) == 1


@in_loop
async def test_two_leaders_do_not_both_rotate_it(access: Login, namespace: str, control_plane: Cluster) -> None:
    async with Client(access) as client:
        leader = certificates(client, namespace)
        await leader.ensure()
        path = f"/api/v1/namespaces/{namespace}/secrets/{CA}"
        control_plane.api.patch(path, {"metadata": {"annotations": {ROTATE: "now"}}})
        ends = await asyncio.gather(*(leader.step({}, {}) for _ in range(5)), return_exceptions=True)
        assert [one for one in ends if isinstance(one, BaseException) and not isinstance(one, ConflictError)] == []
        secret = await leader.ensure()
        assert read(secret.data).phase is Phase.INTRODUCED
        assert ROTATE not in secret.metadata.annotations
        versions = {one.authority.next for one in ends if not isinstance(one, BaseException)}
        assert versions == {read(secret.data).next}


@in_loop
async def test_a_rotation_to_its_end_and_an_authority_that_is_deleted(
    access: Login, namespace: str, control_plane: Cluster
) -> None:
    async with Client(access) as client:
        leader = certificates(client, namespace)
        first = read((await leader.ensure()).data)
        await leader.step({"gpu": ""}, {})
        changed = asyncio.Event()
        material = ReplicaCertificates(frozenset({"a.svc"}), now, lambda _: changed.set())
        following = asyncio.create_task(leader.secrets.follow(CA, material).run())
        path = f"/api/v1/namespaces/{namespace}/secrets/{CA}"
        control_plane.api.patch(path, {"metadata": {"annotations": {ROTATE: "now"}}})
        authority, seen = first, []

        async def loaded() -> ReplicaTrust | None:
            while material.authority != authority:
                await changed.wait()
                changed.clear()
            return material.state

        for _ in range(4):
            passed = await leader.step({"gpu": digest(authority.server_ca_bundle)}, {"r": await loaded()})
            authority = passed.authority
            seen.append(authority.phase)
        assert seen == [Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED, Phase.STABLE]
        assert authority.signing != first.signing
        held: Any = control_plane.api.get(f"/api/v1/namespaces/{namespace}/secrets/gpu-client")
        assert (held["type"], sorted(held["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])

        await loaded()
        control_plane.api.delete(path)
        assert read((await leader.ensure(material.authority)).data) == authority
        following.cancel()
