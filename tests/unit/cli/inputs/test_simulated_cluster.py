"""The cluster of four commands: the same options, one client, one time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.cli.inputs import cluster_access
from fairlead.cli.main import main
from fairlead.kube.http.client import Client
from policies.good import device_share
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import workload

NEWEST: Final = "2026-03-01T10:00:00Z"
RULES: Final[dict[str, Any]] = {
    "data": [
        {"name": "load", "nodeAnnotation": {"key": "load", "format": "ValueCommaTime"}, "maxAge": "5m"},
        {"name": "heat", "prometheus": {"query": "heat"}},
    ],
    "filters": [
        {"name": "idle", "expression": "data.load < 0.5", "reason": "busy"},
        {"name": "cool", "expression": "data.heat < 0.5", "reason": "hot"},
    ],
    "binding": {"deviceShare": [device_share()]},
}
POLICY: Final = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "SchedulerExtenderPolicy",
    "metadata": {"name": "p", "uid": "u", "generation": 1},
    "spec": RULES,
}
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "simulate": ("simulate", "--policies", "p.yaml"),
    "explain": ("explain", "p", "--policies", "p.yaml"),
    "diff": ("diff", "--from", "p.yaml", "--to", "q.yaml"),
    "devices": ("devices", "--policies", "p.yaml"),
}
Run = Callable[..., tuple[int, str, str]]


def measured(name: str) -> Object:
    made = node(name)
    made["metadata"]["annotations"] = {"load": "0.4,2026-03-01T09:58:00Z"}
    made["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": NEWEST}]
    return made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    Path("p.yaml").write_text(yaml.safe_dump(POLICY))
    Path("q.yaml").write_text(yaml.safe_dump(POLICY).replace("data.load < 0.5", "data.load < 0.9"))
    Path("c.json").write_text(json.dumps(listed(measured("a"), pod())))
    Path("d.yaml").write_text("p: {heat: {values: {a: 0.1}}}")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--now", "noon"), "--now 'noon' is not a time"),
        (("--now", "2027"), "--now '2027' is not a time"),
        (("--now", "20270115"), "--now '20270115' is not a time"),
        (("--now", "1800000000.5"), "--now '1800000000.5' is not a time"),
        (("--data", "no.yaml"), "no.yaml: no such file"),
        (("--prometheus", "x=http://127.0.0.1:1"), "--prometheus x: the policies ask no server of that name"),
        (("--prometheus-token", "t"), "--prometheus-token: is for servers"),
        (("--snapshot", "c.json", "live"), "--snapshot c.json live: give either files or live"),
        (("--context", "none", "--kubeconfig", "no.config", "--snapshot", "live"), "no.config"),
    ],
)
def test_all_commands_take_the_same_options(run: Run, command: str, option: tuple[str, ...], said: str) -> None:
    files = () if "--snapshot" in option else ("--snapshot", "c.json")
    code, out, err = run(*COMMANDS[command], *files, *option)
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead {command}: ")
    assert said in err


def test_files_are_judged_at_the_newest_time_in_them(run: Run) -> None:
    files = (*COMMANDS["simulate"], "--snapshot", "c.json", "--data", "d.yaml", "-o", "json")
    found = json.loads(run(*files)[1])
    assert found["pods"][0]["nodes"][0]["reasons"] == [], "two minutes old, of five"
    assert f"judged at {NEWEST}, the newest time in c.json; --now gives another" in found["notes"]
    late = json.loads(run(*files, "--now", "2026-03-01T10:10:00Z")[1])
    assert late["pods"][0]["nodes"][0]["reasons"] != []
    assert not any("judged at" in note for note in late["notes"])


def test_values_that_are_newer_than_the_snapshot_count_for_the_time(run: Run) -> None:
    Path("d.yaml").write_text("p: {heat: {at: '2026-03-01T10:20:00Z', values: {a: 0.1}}}")
    found = json.loads(run(*COMMANDS["explain"], "--snapshot", "c.json", "--data", "d.yaml", "-o", "json")[1])
    assert found["now"] == "2026-03-01T10:20:00Z"


def test_a_cluster_is_read_with_one_client(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[float]()

    class Counted(Client):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            opened.append(options["deadline_s"])
            super().__init__(*arguments, **options)

    monkeypatch.setattr(cluster_access, "Client", Counted)
    served = POLICY | {"status": {"servingGeneration": 1}}
    answers = {
        "/version": {},
        "/api/v1/nodes": items(measured("a")),
        "/api/v1/pods": items(pod()),
        "/api/v1/namespaces": items(),
        "/api/v1/namespaces/ml": {"metadata": {"name": "ml"}},
        "/api/v1/configmaps": items(),
        POLICIES: items(served),
    }
    with api_server(answers, Path()) as file:
        for command in (
            ("simulate", "--policies", "live"),
            ("explain", "p", "-n", "ml"),
            ("diff", "--from", "live", "--to", "q.yaml"),
            ("devices",),
        ):
            opened.clear()
            code, out, err = run(*command, "--kubeconfig", str(file), "-o", "json")
            assert (code in (0, 1), "bug" in err, bool(out)) == (True, False, True), err
            assert opened == [cluster_access.REACHED_S, cluster_access.WITHIN_S], "whether it answers, and all else"


def test_workloads_in_pods_are_simulated_as_their_replicas(run: Run) -> None:
    Path("w.yaml").write_text(yaml.safe_dump(workload(replicas=3)))
    files = (*COMMANDS["simulate"], "--snapshot", "c.json", "--data", "d.yaml", "--pods", "w.yaml")
    found = json.loads(run(*files, "-o", "json")[1])["pods"]
    assert [one["name"] for one in found] == ["web-0", "web-1", "web-2"]
    assert "ml/web-0 and 2 alike" in run(*files)[1]


def test_without_pods_those_are_simulated_that_the_policies_are_for(run: Run) -> None:
    Path("c.json").write_text(json.dumps(listed(measured("a"), pod("on", on="a"), pod(), pod("x", schedulerName="y"))))
    found = json.loads(run(*COMMANDS["simulate"], "--snapshot", "c.json", "-o", "json")[1])["pods"]
    assert {one["name"] for one in found} == {"on", "p"}
