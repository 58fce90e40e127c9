"""A capability of a few lines, which a replica knows by its class alone."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.metrics import Gauges, Metrics
from fairlead.pki.identities import OPERATOR
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.process.operator import OperatorReplica
from fairlead.process.serving_core import ServingCore
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.replica_state import ReplicaState
from fairlead.webhook.capability import Capability, FindPage, ReadinessCheck
from scripted.loop import in_loop
from scripted.server import login_to
from support.process.standalone import GOOD, World, node, running, waiting


class Quota(msgspec.Struct):
    metadata: Meta


class Names(EventSink):
    """Names of quotas."""

    def __init__(self) -> None:
        self.names = list[str]()

    def put(self, item: Quota, /) -> None:
        if item.metadata.name == "bad":
            raise ValueError("a fault of the sink")
        self.names.append(item.metadata.name)

    def remove(self, key: Key, /) -> None:
        self.names.remove(key[1])


class Quotas(Capability):
    """Quotas of namespaces, of which one must be there."""

    def __init__(self, core: ServingCore) -> None:
        sink = Names()
        self.names = sink.names
        self.log = list[str]()
        where = ObjectRef(Resource("", "v1", "resourcequotas"))
        decode = msgspec.json.Decoder(Quota).decode
        self._reflector = Reflector(core.client, where, decode=decode, sink=sink)
        self._never_run = Reflector(core.client, where, decode=decode, sink=sink)

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        return {"quotas": self._reflector}

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        return {"wanted quotas": self._never_run}

    async def begin(self) -> None:
        self.log.append("begins")

    async def run(self) -> None:
        await self._reflector.run()

    async def stop(self) -> None:
        self.log.append("stops")

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        self.log.extend(f"follows {policy.name}" for policy in policies)

    def checks(self) -> Iterator[ReadinessCheck]:
        yield ReadinessCheck("quota", bool(self.names), "there is one" if self.names else "there is none")

    def remarks(self) -> Iterator[ReadinessCheck]:
        yield ReadinessCheck("quota names", ok=True, text=", ".join(self.names))

    def missing_permissions(self) -> Iterator[str]:
        yield "you may not edit quotas"

    def lacking(self) -> Iterator[str]:
        yield "quotas (its API)"

    def register(self, metrics: Metrics) -> None:
        metrics.add(Gauges("fairlead_quotas", "Quotas.", (), lambda: {(): len(self.names)}))

    def report(self, state: ReplicaState) -> ReplicaState:
        return msgspec.structs.replace(state, issuer=f"{len(self.names)} quotas")

    @property
    def pages(self) -> Mapping[str, FindPage]:
        return {"/quotas/": {"all": self.names}.get}


@in_loop
async def test_a_replica_watches_runs_checks_counts_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, verified = list[Quotas](), list[Reflector[Any]]()

    async def check(reflector: Reflector[Any]) -> int:
        verified.append(reflector)
        return 0

    monkeypatch.setattr(Reflector, "check", check)

    def quotas(core: ServingCore) -> Quotas:
        made.append(Quotas(core))
        return made[-1]

    world = World({"nodes": [node("a")], "pods": [waiting("x")], "resourcequotas": []})
    async with running(tmp_path, world, capabilities=[quotas]) as one:
        await one.ready()
        await one.served(GOOD)
        status, text = await one.probe("/readyz")
        assert (status, "[-] quota: there is none" in text, "[+] quotas: 0" in text) == (503, True, True)
        world.objects["resourcequotas"] += [node("bad"), node("small")]
        one.app.replica.parts.all_reflectors["quotas"].relist()
        await one.until(lambda: made[0].names == ["small"])
        status, text = await one.probe("/readyz")
        assert (status, "[+] quota: there is one" in text, "[+] quota names: small" in text) == (200, True, True)
        assert "[+] quotas: 1; an internal fault (ValueError) with bad; the log says where\n" in text
        assert "[+] wanted quotas: not listed yet" in text, "it keeps no replica from being ready"
        metrics = (await one.probe("/metrics"))[1]
        assert 'fairlead_mirror_objects{kind="wanted quotas"} 0.0' in metrics
        assert "fairlead_quotas 1.0" in metrics
        assert 'fairlead_mirror_relists_total{kind="quotas",reason="asked"} 1.0' in metrics
        await one.app.replica.verify()
        assert {made[0].reflectors["quotas"], made[0].on_demand["wanted quotas"]} < {*verified}
        reader = await one.connect(OPERATOR)
        page = await reader.call("/quotas/all", b"", "GET")
        assert (page.status, json.loads(page.body)) == (200, ["small"])
        assert (await reader.call("/quotas/none", b"", "GET")).status == 404
        other = await one.connect()
        assert (await other.call("/quotas/all", b"", "GET")).status == 403
    assert made[0].log == ["begins", "follows p", "stops"]


@pytest.fixture
def operator() -> OperatorReplica:
    nowhere = Address("", 0)
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere)
    return OperatorReplica(settings, Client(login_to("https://nowhere")), SettingsFile(None))


def test_its_part_is_in_the_report(operator: OperatorReplica) -> None:
    operator.core.add(Quotas(operator.core))
    report = operator.report()
    assert (report.issuer, report.missing_permission) == ("0 quotas", "you may not edit quotas")
    operator.aside.ask()
    assert "quotas (its API)" in operator.replica.server.aside


def test_a_capability_may_leave_out_every_part(operator: OperatorReplica) -> None:
    before = operator.report()
    capability = Capability()
    operator.core.add(capability)
    asyncio.run(capability.tend())
    assert operator.report() == before
