"""`--write-config-to` is the scheduler's own strict check of a configuration.

It needs no API server. It does build the extenders, so that the files which `tlsConfig` names have to be there.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.webhook.https.dispatch import PATHS
from testbed import build
from testbed.api import Object
from testbed.certs import Authority
from testbed.versions import program

_ENTRY: Object = {"urlPrefix": "https://127.0.0.1:1/gate", "filterVerb": "filter", "httpTimeout": "1s"}
_SCORES: Object = _ENTRY | {"prioritizeVerb": "prioritize"}

_GOOD: Mapping[str, Object] = {
    "an entry that filters": {"extenders": [_ENTRY]},
    "a weight where something is prioritized": {"extenders": [_SCORES | {"weight": 1}]},
    "a wrong URL": {"extenders": [_ENTRY | {"urlPrefix": "htp:/nowhere at all"}]},
}
_BAD: Mapping[str, tuple[Object, str]] = {
    "an unknown field": (
        {"extenders": [_ENTRY | {"nodeCache": True}]},
        'strict decoding error: unknown field "extenders[0].nodeCache"',
    ),
    "weight 0 where something is prioritized": (
        {"extenders": [_SCORES | {"weight": 0}]},
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ),
    "a time without a unit": (
        {"extenders": [_ENTRY | {"httpTimeout": 1}]},
        "cannot unmarshal number into Go struct field",
    ),
    "two that bind": ({"extenders": [_ENTRY | {"bindVerb": "bind"}] * 2}, "only one extender can implement bind"),
    "a CA together with insecure": (
        {"extenders": [_ENTRY | {"enableHTTPS": True, "tlsConfig": {"caData": "eA==", "insecure": True}}]},
        "specifying a root certificates file with the insecure flag is not allowed",
    ),
    "arguments that a plugin does not know": (
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignored": ["cpu"]}}]}]},
        'unknown field "ignored"',
    ),
    "arguments that a plugin refuses": (
        {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}]},
        "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
    ),
    "two profiles of one name": (
        {"profiles": [{"schedulerName": "twice"}] * 2},
        "profiles[1].schedulerName: Duplicate value",
    ),
}


@pytest.mark.parametrize("case", _GOOD)
def test_it_accepts(kubernetes_version: str, tmp_path: Path, case: str) -> None:
    checked = _check(kubernetes_version, tmp_path, _GOOD[case])
    assert checked.returncode == 0, checked.stderr
    written = yaml.safe_load((tmp_path / "written.yaml").read_text())
    assert written["extenders"][0]["urlPrefix"] == _GOOD[case]["extenders"][0]["urlPrefix"]


@pytest.mark.parametrize("case", _BAD)
def test_it_refuses_and_the_last_line_says_why(kubernetes_version: str, tmp_path: Path, case: str) -> None:
    config, want = _BAD[case]
    checked = _check(kubernetes_version, tmp_path, config)
    assert checked.returncode == 1
    assert want in _last_line(checked)
    assert not (tmp_path / "written.yaml").exists()


@pytest.mark.parametrize("missing", ["", "caFile", "certFile", "keyFile"])
def test_it_reads_the_files_that_tls_names(kubernetes_version: str, tmp_path: Path, missing: str) -> None:
    authority = Authority(tmp_path / "keys")
    pair = authority.issue("scheduler", "scheduler")
    tls = {"caFile": authority.certificate, "certFile": pair.certificate, "keyFile": pair.key}
    files = {key: str(file) + (".gone" if key == missing else "") for key, file in tls.items()}
    checked = _check(kubernetes_version, tmp_path, {"extenders": [_ENTRY | {"enableHTTPS": True, "tlsConfig": files}]})
    assert checked.returncode == bool(missing), checked.stderr
    if missing:
        assert f"couldn't build extenders: open {files[missing]}" in _last_line(checked)


@pytest.mark.parametrize("groups", [False, True], ids=["no groups", "groups"])
def test_it_accepts_what_the_guide_says(kubernetes_version: str, tmp_path: Path, groups: bool) -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/without-the-operator.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    config = yaml.safe_load(next(one for one in blocks if "extenders:" in one))
    if groups:
        del config["extenders"][0]["bindVerb"]
        config["extenders"] += yaml.safe_load(next(one for one in blocks if one.startswith("- urlPrefix:")))
    assert main(["certs", "--out", str(tmp_path / "tls"), "--host", "extender.example"]) == 0
    checked = _check(kubernetes_version, tmp_path, config)
    assert checked.returncode == 0, checked.stderr
    entries = yaml.safe_load((tmp_path / "written.yaml").read_text())["extenders"]
    assert [one["httpTimeout"] for one in entries] == ["1s"] * 3 + ["35s"] * groups
    verbs = [f"{one['urlPrefix']}/{one[verb]}" for one in entries for verb in sorted(one) if verb.endswith("Verb")]
    assert {urlsplit(url).path for url in verbs} == {*PATHS}


def _last_line(checked: subprocess.CompletedProcess[str]) -> str:
    said: str = json.loads(checked.stderr.splitlines()[-1].partition(" err=")[2])
    return said


def _check(version: str, folder: Path, config: Object) -> subprocess.CompletedProcess[str]:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"} | config
    (folder / "config.yaml").write_text(yaml.safe_dump(document))
    scheduler = build.build([program("kube-scheduler", version)])["kube-scheduler"]
    command = [
        str(scheduler),
        f"--config={folder}/config.yaml",
        f"--write-config-to={folder}/written.yaml",
        f"--cert-dir={folder}",
        "--master=http://127.0.0.1:1",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)
