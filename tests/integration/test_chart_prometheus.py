"""Credentials for Prometheus that the chart mounts."""

import textwrap
from pathlib import Path

import pytest
import yaml

from fairlead.kube.errors import AccessError
from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.render.operator_settings import parse_settings
from fairlead.webhook.data_sources.server_access import FOLDER, ServerAccess
from support.chart.chart import CASES, CHART, helm, template
from support.chart.objects import the_one
from support.webhook.tls import NOW, YEAR


def _mounted(case: str) -> dict[str, str]:
    """Files of the operator beside its settings, and where each comes from."""
    (volume,) = [
        one
        for one in the_one(template(CASES[case]), "Deployment")["spec"]["template"]["spec"]["volumes"]
        if one["name"] == "settings"
    ]
    found = dict[str, str]()
    for source in volume["projected"]["sources"][1:]:
        ((kind, one),) = source.items()
        if kind == "serviceAccountToken":
            found[one["path"]] = f"{kind} {one.get('audience', '')}"
            continue
        assert one["optional"], "an operator without it starts, and says so"
        for item in one["items"]:
            found[item["path"]] = f"{kind} {one['name']} {item['key']}"
    return found


def test_credentials_for_prometheus_are_mounted_beside_the_settings() -> None:
    assert _mounted("default") == {}
    assert _mounted("everything") == {
        "prometheus/default/ca.crt": "configMap service-ca service-ca.crt",
        "prometheus/default/token": "serviceAccountToken ",
        "prometheus/ops/ca.crt": "secret mimir-ca ca.crt",
        "prometheus/ops/username": "secret mimir-login username",
        "prometheus/ops/password": "secret mimir-login password",
        "prometheus/ops/tls.crt": "secret mimir-client tls.crt",
        "prometheus/ops/tls.key": "secret mimir-client tls.key",
        "prometheus/thanos/token": "secret thanos-token my-token",
        "prometheus/other/token": "serviceAccountToken prometheus",
    }


def test_what_is_mounted_for_prometheus_is_what_is_read(tmp_path: Path) -> None:
    ca = create_authority("ca", NOW, YEAR)
    client = issue_leaf(ca, "client", "client", NOW, YEAR)
    contents = {"ca.crt": ca.certificate, "tls.crt": client.certificate, "tls.key": client.key}
    files = [tmp_path / path for path in _mounted("everything")]
    settings = parse_settings(CASES["everything"].read_text().partition("replicas: 3\nimage:")[0]).prometheus

    def read() -> None:
        for server in settings:
            access = ServerAccess(server, tmp_path / FOLDER / server.name)
            credential = access.credential()
            if access.trust is not None:
                access.trust.context(credential)

    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents.get(file.name, b"x"))
    read()
    for file in files:
        held = file.read_bytes()
        file.unlink()
        with pytest.raises(AccessError, match=str(file)):
            read()
        file.write_bytes(held)


def test_who_installs_it_is_told_whom_prometheus_must_let_in() -> None:
    said = helm("install", "fairlead", str(CHART), "--dry-run=client", f"--values={CASES['everything']}")
    assert "\n  ops: https://mimir.example.com/prometheus\n" in said
    said = said.partition("one more peer under `from`:")[2]
    (peer,) = yaml.safe_load(textwrap.dedent(said.strip("\n").partition("\n\n")[0]))
    deployment = the_one(template(CASES["everything"]), "Deployment")
    assert peer["podSelector"] == deployment["spec"]["selector"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    assert "Prometheus" not in helm("install", "fairlead", str(CHART), "--dry-run=client").partition("NOTES:")[2]
