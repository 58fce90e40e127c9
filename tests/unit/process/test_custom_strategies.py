"""Custom strategies in both programs: whatever compiles policies there knows them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.api.params import Params
from fairlead.kube.http.client import Client
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.strategies.contract import Filter, Strategy, Use, Verdict
from fairlead.strategies.template import STRATEGY
from scripted.loop import in_loop
from scripted.server import login_to
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
_ENDLESS = """\
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: p}
spec:
  match: {podSelector: {matchLabels: {endless: "true"}}}
  filters: [{name: f, custom: {name: endless}}]
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
    operator = OperatorReplica(settings, Client(login_to("https://nowhere")), SettingsFile(file))
    options = operator.core.policies.options
    assert [*options.custom] == [*_CUSTOM]
    assert options.custom == operator.core.strategies.custom
    (said,) = [one for one in caplog.records if one.message == "strategies.loaded"]
    assert vars(said)["strategies"] == ["template"]
    assert "template" not in operator.core.strategies.built_in


@in_loop
async def test_so_it_does_after_its_settings_have_changed(tmp_path: Path) -> None:
    nowhere, file = Address("", 0), tmp_path / "settings.yaml"
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere, custom=_CUSTOM)
    operator = OperatorReplica(settings, Client(login_to("https://nowhere")), SettingsFile(file))
    file.write_text("annotationPrefixes: [example.com/]\n")
    await operator.settings_reloader.reload()
    options = operator.core.policies.options
    assert (options.annotation_prefixes, [*options.custom]) == (("example.com/",), [*_CUSTOM])
    assert options.custom == operator.core.strategies.custom


def _forever(*_: object) -> Verdict:
    while True:
        pass


def _endless(params: Params) -> Filter:
    assert STRATEGY.filter is not None
    return replace(STRATEGY.filter.compile(params), for_pod=lambda _: _forever)


@in_loop
async def test_one_that_does_not_return_ends_no_call_of_others(tmp_path: Path) -> None:
    assert STRATEGY.filter is not None
    custom = {"endless": Strategy(name="endless", filter=Use(STRATEGY.filter.params, _endless))}
    async with running(tmp_path, custom=custom) as one:
        await one.ready()
        connection = await one.connect()
        said = await one.served_text(_ENDLESS)
        assert "serves" in said
        endless = body(["a", "b"], pod={"labels": {"endless": "true"}})
        hanging = await connection.call("/filter", endless)
        assert json.loads(hanging.body)["Error"] or not json.loads(hanging.body)["NodeNames"]
        for _ in range(20):
            reply = await connection.call("/filter", body(["a", "b"]))
            assert json.loads(reply.body)["NodeNames"] == ["a", "b"]
        again = json.loads((await connection.call("/filter", endless)).body)
        assert (again["Error"], again["NodeNames"]) == ("", [])
        assert one.core.strategies.guard.entered < 5, "it was not asked again"
