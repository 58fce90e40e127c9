"""`fairlead explain` of workloads, of templates in files, and of all that waits: of files and of an API server."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import owned, workload

POLICY = HEAD.replace("some", "gpu") + (
    "spec:\n  filters:\n"
    "  - {name: class, expression: \"node.metadata.labels[?'gpu'] == pod.metadata.labels[?'gpu']\", "
    "reason: wrong class}\n"
)
T4 = {"gpu": "t4"}
NODES = [node("t4-1", labels=T4), node("v100-1", labels={"gpu": "v100"})]


def replica(name: str, *, on: str = "", hash_: str = "abc", of: str = "web", **more: Any) -> Object:
    made = pod(name, on=on, labels=dict(more.pop("labels", T4)), **more)
    return owned(made, "ReplicaSet", f"{of}-{hash_}", pod_template_hash=hash_)


WEB = [
    replica("web-1", on="t4-1"),
    replica("web-2", labels={"gpu": "a100"}),
    replica("web-3", labels={"gpu": "a100"}),
    replica("web-4", asks={"cpu": "99"}),
]
OTHERS = [replica("web-api-1", of="web-api", labels={"gpu": "a100"}), pod("alone", namespace="web", labels=T4)]
GATED = pod("gated", labels=T4, schedulingGates=[{"name": "quota"}])
STRANGE = pod("strange", schedulerName="faired")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(POLICY)
    write(workload(replicas=4), *WEB, *OTHERS, GATED, STRANGE)

    def run(*asked: str) -> tuple[int, str, str]:
        code = main(["explain", *asked, "--policies", "p.yaml", "--snapshot", "c.json"])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def write(*objects: Object) -> None:
    Path("c.json").write_text(json.dumps(listed(*NODES, *objects)))


def test_of_a_deployment_the_pod_that_most_others_are_like_is_explained(run: Run) -> None:
    code, out, err = run("deploy/web")
    assert (code, err) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()[:8]] == [
        "deployment ml/web: 4 of 4 pods, 3 waiting; this explains web-2.",
        "PODS WHICH WHY",
        "2 ml/web-2, ml/web-3 none of 2 nodes: 2 wrong class",
        "1 ml/web-4 none of 2 nodes: 1 Insufficient cpu, 1 wrong class",
        "",
        "pod ml/web-2, scheduler fairlead, requests nothing",
        "policies: gpu",
        "UNSCHEDULABLE: none of 2 nodes is possible",
    ]
    found = json.loads(run("deploy/web", "-o", "json")[1])
    assert found["pod"]["name"] == "web-2"
    assert {key: value for key, value in found["workload"].items() if key != "groups"} == {
        "kind": "Deployment",
        "namespace": "ml",
        "name": "web",
        "replicas": 4,
        "pods": 4,
        "waiting": 3,
        "explained": "Pod",
        "fault": None,
    }
    assert [(one["verdict"], one["count"]) for one in found["workload"]["groups"]] == [("NoNode", 2), ("NoNode", 1)]


@pytest.mark.parametrize(
    "spelt", ["deployment/web", "deployments/web", "deployment.apps/web", "deployments.v1.apps/web", "deploy web"]
)
def test_kinds_are_spelt_as_kubectl_spells_them(run: Run, spelt: str) -> None:
    assert run(*spelt.split())[1].startswith("deployment ml/web: 4 of 4 pods")


OF_KINDS = {
    "sts/db": (workload("StatefulSet", "db"), owned(pod("db-0", labels=T4), "StatefulSet", "db"), "statefulset ml/db"),
    "ds/agent": (workload("DaemonSet", "agent"), owned(pod("agent-x"), "DaemonSet", "agent"), "daemonset ml/agent"),
    "rs/web-abc": (
        workload("ReplicaSet", "web-abc"),
        owned(pod("w"), "ReplicaSet", "web-abc"),
        "replicaset ml/web-abc",
    ),
    "job/train": (workload("Job", "train"), owned(pod("train-x"), "Job", "train"), "job ml/train"),
    "cj/night": (workload("CronJob", "night"), owned(pod("n"), "Job", "night-29"), "cronjob ml/night"),
}


@pytest.mark.parametrize(("spelt", "of", "its", "said"), [(spelt, *rest) for spelt, rest in OF_KINDS.items()])
@pytest.mark.parametrize("is_there", [True, False])
def test_each_kind_has_its_pods(run: Run, spelt: str, of: Object, its: Object, said: str, is_there: bool) -> None:
    """Also if the snapshot has only the pods, as `kubectl get nodes,pods,namespaces` writes it."""
    write(its, pod("other"), *([of] if is_there else []))
    code, out, err = run(spelt)
    assert (code, err) == (0, "")
    assert out.startswith(f"{said}: 1{'' if spelt == 'ds/agent' or not is_there else ' of 1'} pod, 1 waiting; this ")
    assert f"explains {its['metadata']['name']}.\n\npod ml/{its['metadata']['name']}" in out


def test_a_deployment_without_pods_is_explained_by_its_template(run: Run) -> None:
    failing = workload(replicas=3) | {
        "status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: cpu"}]}
    }
    write(failing, *OTHERS)
    code, out, err = run("deploy/web", "-n", "ml")
    assert (code, err) == (0, "")
    assert out.splitlines()[:6] == [
        "deployment ml/web has no pods (3 wanted): this explains its template.",
        "Its controller creates none: exceeded quota: cpu",
        "",
        "pod ml/web, scheduler fairlead, requests cpu 2",
        "policies: gpu",
        "1 of 2 nodes is possible",
    ]
    found = json.loads(run("deploy/web", "-n", "ml", "-o", "json")[1])["workload"]
    assert (found["explained"], found["pods"], found["fault"]) == ("Template", 0, "exceeded quota: cpu")


def test_of_a_deployment_that_runs_one_pod_is_explained(run: Run) -> None:
    write(workload(replicas=1), WEB[0])
    assert run("deploy/web")[1].startswith("deployment ml/web: 1 of 1 pod, none waits; this explains web-1.\n\npod ml/")


def test_of_a_deployment_that_is_rolled_out_the_newest_pod_is_explained(run: Run) -> None:
    """Older ones may name another scheduler: after opting in, the question is about the new one."""
    old, new = replica("web-a", on="gpu-1", hash_="old"), replica("web-b", on="gpu-1", hash_="new")
    old["metadata"]["creationTimestamp"] = "2026-11-21T08:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-11-21T09:00:00Z"
    write(workload(replicas=1), old, new)
    said = "deployment ml/web: 2 pods (1 wanted), none waits; this explains web-b.\n\npod ml/web-b,"
    assert run("deploy/web")[1].startswith(said)


@pytest.mark.parametrize(
    ("asked", "said"),
    {
        "a name that is near": (("deploy/wbe",), "there is no deployment wbe in c.json: did you mean web?"),
        "nothing near": (
            ("sts/db", "-n", "ml"),
            "there is no statefulset ml/db in c.json; `kubectl get nodes,pods,namespaces,statefulsets -A -o json`",
        ),
        "no such kind": (("svc/web",), "'svc/web' is neither a pod nor a workload: write pod/NAME, deploy/NAME,"),
    }.values(),
)
def test_a_workload_that_is_not_there_is_one_line(run: Run, asked: tuple[str, ...], said: str) -> None:
    code, out, err = run(*asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"fairlead explain: {said}")


def test_a_job_that_has_ended_is_not_explained(run: Run) -> None:
    done = workload("Job", "train") | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    write(done, owned(pod("train-x", status={"phase": "Succeeded"}), "Job", "train"))
    ended = "fairlead explain: the job ml/train has ended (Complete): it has no pods to place any more\n"
    assert run("job/train") == (2, "", ended)


def test_the_template_of_a_file_is_explained(run: Run) -> None:
    Path("web.yaml").write_text(yaml.safe_dump(workload(replicas=7)))
    code, out, err = run("-f", "web.yaml")
    assert (code, err) == (0, "")
    assert out.startswith("This explains the template of the deployment ml/web.\n\npod ml/web, scheduler fairlead, ")
    assert "1 of 2 nodes is possible" in out


# Everything that waits.


def test_pods_that_wait_are_grouped_by_the_reason(run: Run) -> None:
    code, out, err = run("--pending", "-n", "ml")
    assert (code, err) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()[:8]] == [
        "6 pods wait for a node in the namespace ml",
        "",
        "PODS WHICH WHY",
        "3 ml/web-2, ml/web-3, ml/web-api-1 none of 2 nodes: 2 wrong class",
        "1 ml/strange no policy here is for scheduler faired (did you mean fairlead?)",
        "1 ml/web-4 none of 2 nodes: 1 Insufficient cpu, 1 wrong class",
        "1 ml/gated they wait for scheduling gates: quota",
        "",
    ]
    assert "In full: fairlead explain pod/web-2 -n ml --policies p.yaml --snapshot c.json\n" in out


def test_the_command_that_is_suggested_explains_the_same(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of files may need quotes, and the time and the values decide too."""
    Path("c.json").rename("of today.json")
    Path("values.json").write_text("{}")
    given = ["--policies", "p.yaml", "--snapshot", "of today.json", "--data", "values.json"]
    given += ["--now", "2027-01-15T22:00:00Z", "--context", "c"]
    assert main(["explain", "--pending", "-A", *given]) == 0
    [line] = [one for one in capsys.readouterr().out.splitlines() if one.startswith("In full: ")]
    name, command, first, *rest = shlex.split(line.removeprefix("In full: "))
    assert (name, command, first, rest[:2]) == ("fairlead", "explain", "pod/web-2", ["-n", "ml"])
    assert sorted(rest[2:]) == sorted(given)
    assert main([command, first, *rest]) == 0
    assert "pod ml/web-2, " in capsys.readouterr().out


def test_names_in_the_command_that_is_suggested_are_quoted(run: Run) -> None:
    """A snapshot may have names that no API server takes."""
    write(node("n1"), pod("a $(b)", namespace="m l", scheduler="fairlead"))
    [line] = [one for one in run("--pending", "-A")[1].splitlines() if one.startswith("In full: ")]
    assert shlex.split(line)[4:7] == ["pod/a $(b)", "-n", "m l"]


def test_pods_that_wait_are_those_of_all_namespaces_or_of_one(run: Run) -> None:
    found = json.loads(run("--pending", "-A", "-o", "json")[1])
    assert (found["namespace"], found["pods"]) == (None, 7)
    assert {(one["verdict"], one["count"]) for one in found["groups"]} == {
        ("NoNode", 3),
        ("NoNode", 1),
        ("NotScheduled", 1),
        ("Gated", 1),
        ("Possible", 1),
    }
    [one] = json.loads(run("--pending", "-n", "web", "-o", "json")[1])["groups"]
    assert one == {
        "verdict": "Possible",
        "why": "1 of 2 nodes are possible now",
        "count": 1,
        "pods": [
            {"namespace": "web", "name": "alone", "scheduler": "fairlead", "policies": ["gpu"], "possibleNodes": 1}
        ],
    }


def test_if_nothing_waits_that_is_said(run: Run) -> None:
    write(WEB[0])
    assert run("--pending", "-A")[1].splitlines()[0] == "No pod waits for a node in all namespaces."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--pending", "web"), "--pending is for all pods that wait: leave out the pod"),
        (("--pending", "--node", "n"), "--node is for one pod: leave out --pending"),
        (("--pending", "-A", "-n", "ml"), "-n and -A contradict each other: leave out one of them"),
        (("web", "-A"), "-A is for --pending: to explain a pod, give its namespace as -n NAME"),
        ((), "the following arguments are required: pod/NAME, or -f FILE, or --pending"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    asked: tuple[str, ...], said: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(*asked)
    assert said in capsys.readouterr().err


# An API server.


def answers(**more: object) -> dict[str, object]:
    served: Object = yaml.safe_load(POLICY)
    served["metadata"] |= {"generation": 1, "uid": "u"}
    return {
        "/version": {},
        "/api/v1/nodes": items(*NODES),
        "/api/v1/pods": items(*WEB, *OTHERS),
        "/api/v1/namespaces": items(),
        "/api/v1/namespaces/ml": {"metadata": {"name": "ml"}},
        "/api/v1/configmaps": items(),
        POLICIES: items(served | {"status": {"servingGeneration": 1}}),
        "/apis/apps/v1/namespaces/ml/deployments/web": workload(replicas=4),
        "/apis/apps/v1/namespaces/ml/deployments": items(workload()),
        **more,
    }


def live(capsys: pytest.CaptureFixture[str], given: dict[str, object], *asked: str) -> tuple[int, str, str]:
    with api_server(given, Path()) as file:
        code = main([*asked, "--kubeconfig", str(file)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("run")
def test_a_live_deployment_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = live(capsys, answers(), "explain", "deploy/web", "-n", "ml")
    assert code == 0
    same = "deployment ml/web: 4 of 4 pods, 3 waiting; this explains web-2, as 2 more wait for the same reason."
    assert out.splitlines()[0] == same, "no replica answers, which is the reason of all"
    no = live(capsys, answers(), "explain", "deploy/wep", "-n", "ml")
    assert no == (2, "", "fairlead explain: there is no deployment ml/wep in the cluster: did you mean web?\n")
    refused = answers() | {"/apis/apps/v1/namespaces/ml/deployments/web": 403}
    code, _, err = live(capsys, refused, "explain", "deploy/web", "-n", "ml")
    assert (code, err.startswith("fairlead explain: you may not get the deployment ml/web: ")) == (2, True)


@pytest.mark.usefixtures("run")
def test_what_is_suggested_in_a_cluster_is_asked_of_the_same_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = live(capsys, answers(), "explain", "--pending", "-n", "ml")
    [line] = [one for one in out.splitlines() if one.startswith("In full: ")]
    assert line == "In full: fairlead explain pod/web-2 -n ml --kubeconfig kubeconfig"


@pytest.mark.usefixtures("run")
def test_pods_of_a_namespace_are_enough_for_what_waits_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    mine = answers() | {"/api/v1/pods": 403, "/api/v1/namespaces/ml/pods": items(*WEB)}
    code, out, _ = live(capsys, mine, "explain", "--pending", "-n", "ml", "-o", "json")
    found = json.loads(out)
    assert (code, found["pods"]) == (0, 3)
    assert any(note.startswith("pods on nodes are unknown") for note in found["notes"])
    code, _, err = live(capsys, mine, "explain", "--pending", "-A")
    assert (code, err.startswith("fairlead explain: you may not list pods of all namespaces")) == (2, True)


OTHER = POLICY.replace("name: gpu", "name: more").replace("wrong class", "not more")


@pytest.mark.usefixtures("run")
def test_an_edit_is_compared_with_the_cluster_of_which_other_policies_stay(capsys: pytest.CaptureFixture[str]) -> None:
    second: Object = yaml.safe_load(OTHER) | {"status": {"servingGeneration": 1}}
    second["metadata"] |= {"generation": 1, "uid": "v"}
    both = answers()
    both[POLICIES] = items(*both[POLICIES]["items"], second)  # type: ignore[index]
    Path("edit.yaml").write_text(HEAD.replace("some", "gpu") + "spec: {filters: [{name: all, expression: 'true'}]}\n")
    code, out, _ = live(capsys, both, "diff", "--from", "live", "--to", "edit.yaml", "-o", "json")
    assert (code, json.loads(out)["pods"]) == (0, []), "the other policy still rejects them"
    code, out, _ = live(capsys, answers(), "diff", "--from", "live", "--to", "edit.yaml", "-o", "json")
    assert code == 1
    changed = {one["name"] for one in json.loads(out)["pods"]}
    assert changed == {"web-1", "web-2", "web-3", "web-api-1", "alone"}, "those with a node, too"


@pytest.mark.usefixtures("run")
def test_the_policies_of_the_cluster_are_simulated_on_objects_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--policies", "live", "--snapshot", "c.json", "-o", "json")
    code, out, _ = live(capsys, answers(), "simulate", *asked)
    assert code == 0
    assert {tuple(one["policies"]) for one in json.loads(out)["pods"]} == {("gpu",)}
    code, out, _ = live(capsys, answers(), "explain", "web-2", "-n", "ml", *asked)
    assert (code, json.loads(out)["policies"]) == (0, ["gpu"])
    code, _, err = live(capsys, {}, "simulate", "--policies", "live", "p.yaml", "--snapshot", "c.json")
    assert (code, err) == (2, "fairlead simulate: --policies live p.yaml: give either files or live\n")
