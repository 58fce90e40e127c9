"""`fairlead status` of an API server that says what it is told to; compared with tests/data/status."""

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from fairlead.cli.inputs.operator_survey import Survey, survey
from fairlead.cli.main import main
from fairlead.kube.access.login import log_in
from fairlead.kube.http.client import Client
from fairlead.pki.identities import REPLICAS
from support.cli.status import DATA, PODS, SCENES, cluster, metrics, pod, policy
from support.cli.status_api import api_server, items, kubeconfig
from support.kube.crd import POLICIES


@pytest.mark.parametrize("scene", SCENES)
def test_what_is_said_and_the_exit_code(scene: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers, want = SCENES[scene]
    with api_server(answers, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == want
        assert capsys.readouterr().out == (DATA / f"{scene}.txt").read_text(), "make crds"
        assert main(["status", "--kubeconfig", str(file), "-o", "json"]) == want
        printed = capsys.readouterr().out
        assert printed == (DATA / f"{scene}.json").read_text()
        assert main(["status", "--kubeconfig", str(file), "-o", "yaml"]) == want
        assert yaml.safe_load(capsys.readouterr().out) == json.loads(printed)


def test_replicas_that_serve_different_sets_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {f"{PODS}/fairlead-b:8080/proxy/metrics": metrics(generation="ffff")}
    with api_server({**SCENES["well"][0], **other}, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 1
    assert "operator fairlead: SetsDiffer: the replicas serve different sets of policies: 5f3a, ffff" in (
        capsys.readouterr().out
    )


def test_what_answers_in_place_of_metrics_is_no_matter(tmp_path: Path) -> None:
    other = {f"{PODS}/fairlead-b:8080/proxy/metrics": "<html>\nnothing of that kind\n"}
    with api_server({**SCENES["well"][0], **other}, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 0


def test_the_operator_is_found_in_whatever_namespace_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = pod("fairlead-a")
    elsewhere["metadata"]["namespace"] = "other"
    answers = {
        POLICIES: items(),
        "/api/v1/pods": items(elsewhere),
        "/api/v1/namespaces/other/pods": items(elsewhere),
        "/api/v1/namespaces/third/pods": items(),
    }
    with api_server(answers, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 0
        assert "1 of 1 replica ready in other" in capsys.readouterr().out
        assert main(["status", "--kubeconfig", str(file), "--namespace", "third"]) == 1
        assert "operator fairlead: NotThere: it has no pods in third: " in capsys.readouterr().out


def test_a_second_operator_is_wrong_from_either_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = metrics() + '# TYPE fairlead_other_operator gauge\nfairlead_other_operator{namespace="first"} 1.0\n'
    with api_server({**SCENES["well"][0], f"{PODS}/fairlead-b:8080/proxy/metrics": told}, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 1
    out = capsys.readouterr().out
    assert "AnotherOperator: the operator in the namespace first manages the policies; this one does not" in out
    assert "Uninstall one of them" in out
    elsewhere = pod("fairlead-a")
    elsewhere["metadata"]["namespace"] = "second"
    answers = {**SCENES["well"][0], "/api/v1/pods": items(pod("fairlead-a"), elsewhere)}
    with api_server(answers, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 1
    assert "AnotherOperator: other namespaces have operators too: second" in capsys.readouterr().out


CANNOT: dict[str, tuple[dict[str, object], str]] = {
    "the kind is not there": ({"POLICIES": 404}, "this cluster has no CustomResourceDefinition of policies: "),
    "policies may not be listed": ({"POLICIES": 403}, "of that user lacks the rule {apiGroups: "),
    "what answers is no API server": ({"POLICIES": "<html>"}, "the reply cannot be decoded"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_asked_is_2(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes, want = CANNOT[case]
    with api_server(cluster(**changes), tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fairlead status: ")
    assert want in err
    assert err.count("\n") == 1


def test_a_server_that_is_not_there_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--kubeconfig", str(kubeconfig("http://127.0.0.1:1", tmp_path))]) == 2
    err = capsys.readouterr().err
    assert (
        "http://127.0.0.1:1 cannot be reached: Connection refused; check that the cluster is up, and that --kube" in err
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_messages_are_whole_but_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "pods are pending because " + ", ".join(f"rule-{at} rejects all nodes" for at in range(9))
    said = policy("p", warnings=[{"reason": "RejectedByThisPolicyOnly", "count": 2, "message": long}])
    error = {"count": 1, "lastMessage": long, "lastTime": "2026-11-21T03:00:00Z"}
    said["status"]["rules"] = [{"kind": "Filter", "name": "r", "errors": error}]
    with api_server({**SCENES["well"][0], POLICIES: items(said)}, tmp_path) as file:
        asked = ["status", "--kubeconfig", str(file)]
        main(asked)
        printed = capsys.readouterr().out
        terminal = _Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        main(asked)
    assert printed.count(long) == 2
    assert "..." not in printed
    assert long not in terminal.getvalue()
    assert terminal.getvalue().count("...\n") == 2


def test_many_policies_still_leave_what_is_wrong_on_one_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [policy(f"well-{at}") for at in range(100)] + [
        policy(f"bad-{at}", reason="NothingServes") for at in range(30)
    ]
    with api_server({**SCENES["well"][0], POLICIES: items(*many)}, tmp_path) as file:
        assert main(["status", "--kubeconfig", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 60
    assert "  ... and 18 more: -o json lists all" in lines
    assert "  ... and 118 more: -o json lists all" in lines
    assert not any("well-" in line for line in lines)


def test_schedulers_are_listed_by_settings_of_any_version(tmp_path: Path) -> None:
    text = "fieldOfALaterVersion: true\nschedulers: [{name: gpu}, {name: other, alsoLater: 1}]\n"
    for settings, want in ((text, ["gpu", "other"]), ("schedulers: [5]", []), ("a: [", []), ("[]", [])):
        own = {"metadata": {"name": "fairlead", "labels": dict(one.split("=") for one in REPLICAS.split(","))}}
        config = own | {"data": {"settings.yaml": settings}}
        answers = cluster() | {"/api/v1/namespaces/fairlead-system/configmaps": items(config)}
        with api_server(answers, tmp_path) as file:
            assert asyncio.run(_listed(file)) == want


async def _listed(file: Path) -> list[str]:
    async with Client(log_in(file)) as client:
        return [*(await survey(client)).listed]


def test_metrics_that_ask_for_a_token_are_read_as_the_operator_or_it_says_what_that_needs(tmp_path: Path) -> None:
    secured = pod("fairlead-a")
    secured["spec"]["containers"][0]["ports"].append({"name": "metrics", "containerPort": 8444})
    secret = f"/api/v1/namespaces/{secured['metadata']['namespace']}/secrets/fairlead-ca"
    with api_server(cluster(ALL_PODS=items(secured), PODS=items(secured)) | {secret: 403}, tmp_path) as file:
        found = asyncio.run(_surveyed(file))
    assert found.metrics == {}
    (unread,) = found.unread
    assert unread.what == "metrics of fairlead-a"
    assert "fairlead-ca: 403" in unread.why
    assert "with metrics.secure, this needs the Secret of the operator's authority" in unread.why


async def _surveyed(file: Path) -> Survey:
    async with Client(log_in(file)) as client:
        return await survey(client)
