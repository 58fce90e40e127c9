"""`fairlead data` of an API server that says what it is told to."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest

from fairlead.cli.inputs.replica_values import page_of
from fairlead.cli.main import main
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES

READY: dict[str, Any] = {"type": "DataReady", "status": "True", "reason": "Fresh", "message": "all are there"}
STALE: dict[str, Any] = {"type": "DataReady", "status": "False", "reason": "DataStale", "message": "load: 1 of 2 nodes"}


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ({"metadata": {"name": "p"}, "status": {"conditions": [READY]}}, 0, ""),
        ({"metadata": {"name": "p"}, "status": {"conditions": [STALE]}}, 1, "p: DataStale: load: 1 of 2 nodes"),
        ({"metadata": {"name": "p"}}, 0, "p: nothing is measured for it"),
        (404, 2, "fairlead data: there is no policy 'p'; `kubectl get sep` lists them"),
        (403, 2, "fairlead data: "),
    ],
)
def test_exit_codes(answer: object, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server({f"{POLICIES}/p": answer}, tmp_path) as file:
        assert main(["data", "p", "--kubeconfig", str(file)]) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err


def test_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = {"metadata": {"name": "p"}, "status": {"conditions": [STALE]}}
    with api_server({f"{POLICIES}/p": policy}, tmp_path) as file:
        assert main(["data", "p", "-o", "json", "--kubeconfig", str(file)]) == 1
    assert json.loads(capsys.readouterr().out)["ready"] is False


ENTRY: dict[str, Any] = {
    "name": "load",
    "source": "prometheus default: load",
    "intervalSeconds": 15,
    "observedTime": "2026-01-01T00:00:00Z",
    "replicas": [
        {"name": "r-1", "nodes": 7, "withValue": 7, "oldestAgeSeconds": 3, "lastSuccess": "2026-01-01T00:00:00Z"},
        {"name": "r-2", "nodes": 7, "withValue": 5, "oldestAgeSeconds": 20, "lastSuccess": "2026-01-01T00:00:00Z"},
    ],
}
HOT: dict[str, Any] = {
    "metadata": {"name": "hot"},
    "spec": {"data": [{"name": "load", "prometheus": {"query": "load"}}, {"name": "disk", "nodeMetrics": {}}]},
    "status": {"conditions": [STALE], "data": [ENTRY, {"name": "disk", "source": "nodeMetrics disk"}]},
}
NEW: dict[str, Any] = {"metadata": {"name": "a-new"}, "spec": {"data": [{"name": "x", "configMap": {"name": "x"}}]}}
LABELS: dict[str, Any] = {"metadata": {"name": "labels"}, "spec": {"data": [{"name": "x", "nodeLabel": {"key": "x"}}]}}


def test_without_a_policy_those_that_measure_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server({POLICIES: items(HOT, NEW, LABELS)}, tmp_path) as file:
        assert main(["data", "--kubeconfig", str(file)]) == 1
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert [line[:10] for line in lines] == [
            ["POLICY", "DATA", "ENTRY", "SOURCE", "WITH", "VALUE", "OLDEST", "LAST", "SUCCESS"],
            ["a-new", "unknown", "-", "-", "-", "-", "-"],
            ["hot", "DataStale", "load", "prometheus", "default:", "load", "5", "of", "7", "20s"],
            ["hot", "DataStale", "disk", "nodeMetrics", "disk", "-", "-", "-"],
        ]
        assert main(["data", "-o", "json", "--kubeconfig", str(file)]) == 1
        listed = json.loads(capsys.readouterr().out)["policies"]
        assert [(one["policy"], one["ready"]) for one in listed] == [("a-new", None), ("hot", False)]
        assert listed[1]["entries"][0] == ENTRY


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (items(), 0, "no policy measures values\n"),
        (items(LABELS), 0, "no policy measures values\n"),
        (404, 2, "fairlead data: this cluster has no CustomResourceDefinition of policies: install the chart\n"),
        (403, 2, "fairlead data: "),
    ],
)
def test_a_list_of_nothing(
    answer: object, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with api_server({POLICIES: answer}, tmp_path) as file:
        assert main(["data", "--kubeconfig", str(file)]) == code
    printed = capsys.readouterr()
    assert (printed.out + printed.err).startswith(said)


def test_one_entry_of_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server({f"{POLICIES}/hot": HOT}, tmp_path) as file:
        assert main(["data", "hot", "disk", "-o", "json", "--kubeconfig", str(file)]) == 1
        assert [one["name"] for one in json.loads(capsys.readouterr().out)["entries"]] == ["disk"]
        assert main(["data", "hot", "laod", "--kubeconfig", str(file)]) == 2
        assert capsys.readouterr().err == "fairlead data: hot measures no entry 'laod': did you mean load?\n"


def test_the_values_of_the_nodes_are_those_of_a_replica(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = {
        "red-1": {"value": 0.95, "time": "2026-01-01T00:00:00Z", "ageSeconds": 3.2},
        "red-2": {"value": 123456.0, "default": True},
        "red-3": {"fault": "is stale", "time": "2026-01-01T00:00:00Z", "ageSeconds": 700.0},
    }
    answer = AsyncMock(return_value=("fairlead-a", {page_of("hot", "load"): {"nodes": nodes}}))
    with (
        api_server({f"{POLICIES}/hot": HOT}, tmp_path) as file,
        patch("fairlead.cli.inputs.replica_values.ask_replica", answer),
    ):
        assert main(["data", "hot", "--kubeconfig", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  values of fairlead-a:")
    assert [line.split() for line in lines[at + 1 : at + 5]] == [
        ["NODE", "VALUE", "AGE", "REMARK"],
        ["red-1", "0.95", "3s"],
        ["red-2", "123,456", "-", "the", "default"],
        ["red-3", "-", "11m", "is", "stale"],
    ]
    assert lines[at + 6].startswith("disk: nodeMetrics disk")


def test_who_may_not_ask_a_replica_is_told_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server({f"{POLICIES}/hot": HOT, "/api/v1/pods": 403}, tmp_path) as file:
        assert main(["data", "hot", "--kubeconfig", str(file)]) == 1
    assert "\nThe values of the nodes are not shown: " in capsys.readouterr().out
