"""`fairlead serve` uses the Prometheus servers that its settings file has at the moment."""

from pathlib import Path

import yaml

from fairlead.process.settings_file import load_settings
from fairlead.webhook.measured_data.measured_data import MeasuredData
from scripted.loop import in_loop
from support.policy import obj
from support.process.standalone import Running, running

POLICY = obj(
    data=[{"name": "load", "prometheus": {"query": "load"}, "default": 0.5}], filters={"cool": "data.load < 0.9"}
)
URL = "http://127.0.0.1:9"


def _write(path: Path, *names: str) -> None:
    path.write_text(yaml.safe_dump({"prometheus": [{"name": name, "url": URL} for name in names]}))


async def _said(one: Running, wanted: str) -> None:
    """Wait until this is said of the policy."""
    await one.until(lambda: wanted in str(one.core.policies.states.get("p")))


@in_loop
async def test_policies_are_compiled_again_when_the_servers_change(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    _write(path, "ops")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text(yaml.safe_dump(POLICY))
    async with running(tmp_path, file=load_settings(path)) as one:
        await one.ready()
        await _said(one, 'there is no server "default"')
        _write(path, "ops", "default")
        await one.app.settings_reloader.reload()
        await _said(one, "serves")
        (data,) = (each for each in one.core.capabilities if isinstance(each, MeasuredData))
        await one.until(lambda: any(URL in poll.error for poll in data.feed.poll_states.values()))


@in_loop
async def test_unusable_settings_are_named_and_the_servers_before_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    _write(path, "default")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text(yaml.safe_dump(POLICY))
    async with running(tmp_path, file=load_settings(path)) as one:
        await one.ready()
        await _said(one, "serves")
        path.write_text("prometheus: [{name: default}]")
        await one.app.settings_reloader.reload()
        assert "settings.yaml: prometheus[0].url: is missing" in (await one.probe("/readyz"))[1]
        assert "default" in (one.core.policies.options.servers or {})
        _write(path, "default")
        await one.app.settings_reloader.reload()
        assert "settings.yaml" not in (await one.probe("/readyz"))[1]


@in_loop
async def test_the_file_is_looked_at_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    _write(path)
    async with running(tmp_path, file=load_settings(path)) as one:
        await one.ready()
        _write(path, "late")
        await one.until(lambda: "late" in (one.core.policies.options.servers or {}))
