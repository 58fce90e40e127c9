"""With an address for metrics they are there and nowhere else, but for the operator itself."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.kube.http.client import Client
from fairlead.pki.identities import OPERATOR
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.replica_state import METRICS_PATH
from scripted.server import login_to
from support.webhook.tls import Ground, connect

NOWHERE = Address("127.0.0.1", 0)
OPEN = OperateSettings(listen=NOWHERE, probes=NOWHERE)
SECURE = replace(OPEN, metrics=NOWHERE)


def replica(settings: OperateSettings) -> OperatorReplica:
    return OperatorReplica(settings, Client(login_to("https://nowhere")), SettingsFile(None))


@pytest.mark.parametrize("settings", [OPEN, SECURE], ids=["open", "secure"])
def test_the_port_of_the_probes_has_them_only_if_they_have_none_of_their_own(settings: OperateSettings) -> None:
    async def story() -> None:
        one = replica(settings)
        port = await one.replica.probes.start("127.0.0.1", 0)
        connection = await connect(port, None)
        answers = {}
        for path in ("/livez", "/metrics"):
            answers[path] = await connection.call(path, b"", "GET", **{"Content-Length": ""})
        await connection.close()
        await one.replica.probes.stop()
        assert answers["/livez"].status == 200
        is_open = settings is OPEN
        assert answers["/metrics"].status == (200 if is_open else 404)
        assert (b"fairlead_" in answers["/metrics"].body) is is_open
        assert (b"with TLS" in answers["/metrics"].body) is not is_open

    asyncio.run(story())


@pytest.mark.parametrize("settings", [OPEN, SECURE], ids=["open", "secure"])
def test_they_have_a_port_of_their_own_if_that_is_asked_for(settings: OperateSettings, tmp_path: Path) -> None:
    async def story() -> None:
        ground = Ground(tmp_path)
        one = replica(replace(settings, tls=ground.files, drain_s=0.0))
        opens = next(part for part in one.replica.others if part.begin.__name__ == "_open_ports")
        await opens.begin()
        assert bool(one.metrics_port) is (settings is SECURE)
        if one.metrics_port:
            connection = await connect(one.metrics_port, ground.client(None))
            answer = await connection.call("/metrics", b"", "GET", **{"Content-Length": ""})
            await connection.close()
            assert (answer.status, b"fairlead_" in answer.body) == (401, False)
        await opens.stop()

    asyncio.run(story())


def test_the_operator_reads_them_at_the_port_of_schedulers_and_no_scheduler_does() -> None:
    page = replica(SECURE).replica.server.pages[METRICS_PATH]
    assert b"fairlead_" in (page(OPERATOR, METRICS_PATH) or b"")
    assert page("fairlead:scheduler:gpu", METRICS_PATH) is None
