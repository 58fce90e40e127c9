"""What a shell is offered at Tab that only the cluster knows, and what if the cluster does not answer."""

import socket
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.completions import cluster_names
from fairlead.cli.main import main
from policies.good import gang, policy
from support.cli.status_api import api_server, items, kubeconfig
from support.kube.crd import POLICIES


def _named(*names: str) -> dict[str, object]:
    return items(*({"metadata": {"name": name}} for name in names))


_DATA: Final[list[dict[str, Any]]] = [
    {"name": "load", "prometheus": {"query": "load"}},
    {"name": "disk", "nodeMetrics": {}},
    {"name": "own", "nodeLabel": {"key": "own"}},
]
_HOT: Final = {"metadata": {"name": "hot"}, "spec": {"data": _DATA}}
_ROOMS: Final = {"metadata": {"name": "rooms"}, "spec": {"scores": [{"name": "room", "mode": "Shadow"}]}}
_GANG: Final = gang(group="pod.metadata.annotations[?'job'].orValue('')")
_JOBS: Final = policy(binding={"gang": [_GANG]}) | {"metadata": {"name": "jobs", "uid": "u", "generation": 1}}


def _member(name: str, job: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "ml", "uid": name, "annotations": {"job": job}}
    return {"metadata": metadata, "spec": {"schedulerName": "fairlead"}}


_ANSWERS: Final[dict[str, object]] = {
    "/api/v1/nodes": _named("gpu-1", "gpu-2", "small"),
    "/api/v1/namespaces": _named("default", "ml"),
    "/api/v1/namespaces/default/pods": _named("web-0", "web-1", "pony"),
    "/api/v1/namespaces/ml/pods": _named("train"),
    "/apis/apps/v1/namespaces/ml/deployments": _named("web", "api"),
    "/apis/batch/v1/namespaces/default/jobs": _named("train"),
    POLICIES: items(
        *(
            _HOT,
            _JOBS,
            _ROOMS,
            {"metadata": {"name": "labels"}, "spec": {"data": _DATA[2:]}},
            {"metadata": {}, "spec": {}},
        )
    ),
    f"{POLICIES}/hot": _HOT,
    "/api/v1/pods": items(*(_member(name, job) for name, job in (("a", "red"), ("b", "red"), ("c", "r$(id)")))),
}
OFFERED: Final[dict[str, tuple[list[str], list[str]]]] = {
    "pods": (["explain", ""], ["web-0", "web-1", "pony"]),
    "pods that begin so": (["explain", "web"], ["web-0", "web-1"]),
    "pods with their kind": (["explain", "pod/w"], ["pod/web-0", "pod/web-1"]),
    "pods with a short kind": (["explain", "po/"], ["po/web-0", "po/web-1", "po/pony"]),
    "what begins as a kind does": (["explain", "po"], ["pony", "pod/web-0", "pod/web-1", "pod/pony"]),
    "pods after their kind": (["explain", "pod", ""], ["web-0", "web-1", "pony"]),
    "nothing after a pod": (["explain", "web-0", ""], []),
    "nothing after a kind and a pod": (["explain", "pod", "web-0", ""], []),
    "deployments": (["explain", "-n", "ml", "deploy/"], ["deploy/web", "deploy/api"]),
    "deployments in full": (["explain", "-n", "ml", "deployments.apps/w"], ["deployments.apps/web"]),
    "jobs after their kind": (["explain", "job", ""], ["train"]),
    "no other kind": (["explain", "node/"], []),
    "pods of a namespace": (["explain", "-n", "ml", ""], ["train"]),
    "pods of a namespace after =": (["explain", "--namespace=ml", ""], ["train"]),
    "pods of a file": (["explain", "--snapshot", "now.json", ""], []),
    "nodes": (["explain", "web-0", "--node", "gpu"], ["gpu-1", "gpu-2"]),
    "nodes of devices": (["devices", ""], ["gpu-1", "gpu-2", "small"]),
    "namespaces": (["explain", "-n", ""], ["default", "ml"]),
    "namespaces of status": (["status", "--namespace", "d"], ["default"]),
    "policies that measure": (["data", ""], ["hot"]),
    "policies with something in shadow": (["shadow", ""], ["rooms"]),
    "entries": (["data", "hot", ""], ["load", "disk"]),
    "groups, but none that a shell would obey": (["groups", ""], ["ml/red"]),
    "groups that begin so": (["groups", "ml/b"], []),
}


def _asked(words: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["__complete", words[0], "--kubeconfig", str(file), *words[1:]]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    *lines, last = out.splitlines()
    assert last == ":4"
    return lines


@pytest.mark.parametrize("case", OFFERED)
def test_names_are_offered(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, want = OFFERED[case]
    with api_server(_ANSWERS, tmp_path) as file:
        assert _asked(words, file, capsys) == want


@pytest.mark.parametrize("case", OFFERED)
def test_a_cluster_that_refuses_is_no_error(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(dict.fromkeys(_ANSWERS, 403), tmp_path) as file:
        assert _asked(OFFERED[case][0], file, capsys) == []


def test_a_cluster_that_does_not_answer_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_names, "WITHIN_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = kubeconfig(f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        assert _asked(["explain", ""], file, capsys) == []
    assert _asked(["explain", ""], file, capsys) == []  # nothing listens there any more
    file.write_text("a: [")
    assert _asked(["explain", ""], file, capsys) == []
    assert _asked(["explain", ""], tmp_path / "none", capsys) == []
