"""Custom strategies in both programs: whatever compiles policies there knows them."""

import json
from pathlib import Path

import pytest

from fairlead.kube.access.access import Access
from fairlead.kube.access.credentials import StaticCredentials
from fairlead.kube.http.client import Client
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.strategies.template import STRATEGY
from scripted.loop import in_loop
from support.process.standalone import running
from support.webhook import body

_CUSTOM = {STRATEGY.name: STRATEGY}
_POLICY = """\
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: p}
spec:
  filters: [{name: f, custom: {name: template}}, {name: g, expression: node.metadata.name == 'b'}]
  scores: [{name: s, custom: {name: template, params: {value: %s}}}]
"""


@in_loop
async def test_serve_answers_by_them(tmp_path: Path) -> None:
    async with running(tmp_path, custom=_CUSTOM) as one:
        await one.ready()
        connection = await one.connect()
        for value, said in (("70", "serves"), ("101", "spec.scores[0].custom.params.value: must be at most 100")):
            assert said in await one.served_text(_POLICY % value)
            assert json.loads((await connection.call("/filter", body(["a", "b"]))).body)["NodeNames"] == ["b"]


def test_the_operator_compiles_with_them_whatever_its_settings_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    nowhere, file = Address("", 0), tmp_path / "settings.yaml"
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere, custom=_CUSTOM)
    operator = OperatorReplica(settings, Client(Access("https://nowhere", StaticCredentials())), SettingsFile(file))
    assert operator.core.policies.options.custom == _CUSTOM
    (said,) = [one for one in caplog.records if one.message == "strategies.loaded"]
    assert vars(said)["strategies"] == ["template"]
    assert "template" not in operator.core.strategies


@in_loop
async def test_so_it_does_after_its_settings_have_changed(tmp_path: Path) -> None:
    nowhere, file = Address("", 0), tmp_path / "settings.yaml"
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere, custom=_CUSTOM)
    operator = OperatorReplica(settings, Client(Access("https://nowhere", StaticCredentials())), SettingsFile(file))
    file.write_text("annotationPrefixes: [example.com/]\n")
    await operator.settings_reloader.reload()
    options = operator.core.policies.options
    assert (options.annotation_prefixes, options.custom) == (("example.com/",), _CUSTOM)
