"""`fairlead data` of an API server that says what it is told to."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.main import main
from support.cli.status_api import api_server
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
