"""`fairlead explain`, of files and of an API server that says what it is told to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from support.cli.status_api import api_server, items
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, namespace, node, pod

SPEC = """
spec:
  variables:
  - {name: wants, expression: "pod.metadata.labels[?'gpu'].orValue('any')"}
  filters:
  - name: class
    expression: variables.wants == 'any' || node.metadata.labels[?'gpu'].orValue('') == variables.wants
    reason: wrong class
  - {name: room, expression: "free['cpu'] >= 2.0", reason: too full}
  scores:
  - {name: roomy, weight: 2, expression: "free['cpu'] * 10.0"}
"""
NIGHT = """
spec:
  match: {conditions: [{name: important, expression: pod.spec.priority > 100}]}
  filters: [{name: night, expression: now.getHours() >= 22}]
"""
POLICY = HEAD.replace("some", "gpu") + SPEC.lstrip()
OTHER = HEAD.replace("some", "night") + NIGHT.lstrip()
T4, V100 = {"gpu": "t4"}, {"gpu": "v100"}
NODES = [
    node("t4-1", labels=T4),
    node("t4-2", labels=T4),
    node("v100-1", labels=V100),
    node("v100-2", labels=V100, room={"cpu": "1"}),
    node("w-1", unschedulable=True),
]
WEB = pod("web", on="t4-1", asks={"cpu": "3"})
TRAIN = pod("train", labels=T4, asks={"cpu": "2", "memory": "4Gi"})
LOST = pod("lost", labels={"gpu": "a100"}, asks={"cpu": "2"})
Run = Callable[..., tuple[int, str, str]]
NOT_SIMULATED = (
    "Not simulated: affinity between pods, topology spread, volumes, resource claims, other pods of a group, "
    "the scheduler's own scores, preemption"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"{POLICY}---\n{OTHER}")
    Path("c.json").write_text(json.dumps(listed(*NODES, WEB, TRAIN, LOST, pod("train", namespace="web"))))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], here: Path) -> Run:
    def run(*asked: str) -> tuple[int, str, str]:
        code = main(["explain", *asked])
        out, err = capsys.readouterr()
        return code, out, err

    return run


FILES = ("--policies", "p.yaml", "--snapshot", "c.json")


def test_nodes_are_grouped_by_verdict_and_each_rule_says_what_it_compared(run: Run) -> None:
    code, out, err = run("pod/train", "-n", "ml", *FILES)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "pod ml/train, scheduler fairlead, requests cpu 2, memory 4Gi",
        "policies: gpu",
        "2 of 5 nodes are possible",
        "",
        "NODES   VERDICT     WHICH    WHY",
        "1       preferred   t4-2     160 points",
        "1       possible    t4-1     100 points",
        "1       rejected    v100-1   gpu/class: wrong class",
        "1       rejected    v100-2   gpu/class: wrong class; gpu/room: too full; Insufficient cpu",
        "1       rejected    w-1      gpu/class: wrong class; node(s) were unschedulable",
        "",
        "WHAT THE RULES COMPARED",
        "gpu/class: wrong class, on 3 nodes, such as v100-1",
        "    node.metadata.labels[?'gpu'].orValue('') == variables.wants   'v100' against 't4'",
        "gpu/room: too full, on v100-2",
        "    free['cpu'] >= 2.0   1",
        "",
        "CLOSEST",
        "v100-1 is possible but for",
        "    gpu/class: wrong class",
        "        node.metadata.labels[?'gpu'].orValue('') == variables.wants   'v100' against 't4'",
        "",
        "No match: night: its condition important is false (pod.spec.priority > 100: 0)",
        f"{NOT_SIMULATED}.",
        "Note: gpu/room, gpu/roomy read the pods on nodes; replicas may be a moment behind.",
    ]


def test_what_is_as_good_to_the_scheduler_is_said(run: Run) -> None:
    Path("p.yaml").write_text(POLICY.replace("free['cpu'] * 10.0", "free['cpu'] * 0.5"))
    _, out, _ = run("pod/train", "-n", "ml", *FILES)
    assert "The scheduler gets a tenth of the points, rounded: for it t4-1 is equally good.\n" in out
    assert json.loads(run("train", "-n", "ml", *FILES, "-o", "json")[1])["asGood"] == ["t4-1"]


def test_data_that_grow_stale_want_the_time_of_the_snapshot(run: Run) -> None:
    data = "spec:\n  data: [{name: load, maxAge: 60s, nodeAnnotation: {key: a.b/load, timeKey: a.b/time}}]"
    Path("p.yaml").write_text(POLICY.replace("spec:", data))
    said = "Note: data of gpu can be stale: give the time when c.json was written as --now."
    assert said in run("train", "-n", "ml", *FILES)[1]
    assert said not in run("train", "-n", "ml", *FILES, "--now", "2027-01-15T22:00:00Z")[1]


def test_pods_of_the_system_are_placed_by_nobody_of_ours(run: Run) -> None:
    Path("c.json").write_text(json.dumps(listed(*NODES, pod("x", namespace="kube-system"))))
    _, out, _ = run("x", *FILES)
    assert "Note: schedulers that the operator manages never place pods of kube-system." in out


def test_a_pod_with_nowhere_to_go_is_told_the_node_that_lacks_the_least(run: Run) -> None:
    code, out, _ = run("lost", *FILES)
    assert code == 0
    assert "UNSCHEDULABLE: none of 5 nodes is possible" in out
    assert "CLOSEST\nt4-1 is possible but for\n    gpu/class: wrong class\n" in out


def test_one_node_in_full(run: Run) -> None:
    code, out, _ = run("train", "-n", "ml", *FILES, "--node", "t4-1")
    assert code == 0
    assert out.splitlines()[:4] == [
        "pod ml/train, scheduler fairlead, requests cpu 2, memory 4Gi",
        "policies: gpu",
        "node t4-1: possible",
        "",
    ]
    assert "gpu/class: passes" in out
    assert "gpu/roomy: 50, which is 50 of 100 and adds 100 points" in out
    _, out, _ = run("train", "-n", "ml", *FILES, "--node", "v100-2")
    assert "node v100-2: rejected\n    the scheduler: Insufficient cpu (requests 2, 1 is free)\n" in out
    assert "gpu/class: rejects: wrong class\n" in out
    assert "  would pass with another result of:\n    node.metadata.labels[?'gpu'].orValue('') ==" in out


def test_programs_read_the_same(run: Run) -> None:
    code, out, _ = run("train", "-n", "ml", *FILES, "-o", "json", "--now", "2027-01-15T22:00:00Z")
    found = json.loads(out)
    assert code == 0
    assert found["pod"]["name"] == "train"
    assert found["now"] == "2027-01-15T22:00:00Z"
    assert found["policies"] == ["gpu"]
    assert found["notFor"][0]["policy"] == "night"
    assert [(one["name"], one["verdict"], one["score"]) for one in found["nodes"]] == [
        ("t4-1", "Possible", 100.0),
        ("t4-2", "Preferred", 160.0),
        ("v100-1", "Rejected", None),
        ("v100-2", "Rejected", None),
        ("w-1", "Rejected", None),
    ]
    assert found["nodes"][3]["rejectedBy"] == [
        {"policy": "gpu", "rule": "class", "reason": "wrong class"},
        {"policy": "gpu", "rule": "room", "reason": "too full"},
    ]
    assert found["nodes"][3]["unfit"] == [{"what": "Insufficient cpu", "detail": "requests 2, 1 is free"}]
    assert found["preferred"] == ["t4-2"]
    assert [(one["rule"], one["rejected"], one["node"]) for one in found["rules"]] == [
        ("class", 3, "v100-1"),
        ("room", 1, "v100-2"),
    ]
    assert found["rules"][1]["flips"][0]["left"] == 1.0
    assert found["closest"]["name"] == "v100-1"
    assert yaml.safe_load(run("train", "-n", "ml", *FILES, "-o", "yaml", "--now", "2027-01-15T22:00:00Z")[1]) == found
    one = json.loads(run("train", "-n", "ml", *FILES, "-o", "json", "--node", "t4-1")[1])["node"]
    assert (one["verdict"], one["filters"][0]["outcome"], one["points"][0]["points"]) == ("Possible", "Passed", 100.0)


READY = """
spec:
  filters: [{name: ready, nodeReadiness: {conditions: [{type: NetworkReady, status: "True"}], holdOff: 20s}}]
"""


def test_programs_read_times_as_people_do(run: Run) -> None:
    Path("r.yaml").write_text(HEAD.replace("some", "ready") + READY.lstrip())
    new = node("new")
    said = {"type": "NetworkReady", "status": "True", "lastTransitionTime": "2027-01-15T21:59:50Z"}
    new["status"]["conditions"] = [said]
    Path("n.json").write_text(json.dumps(listed(new, TRAIN)))
    asked = ("train", "-n", "ml", "--policies", "r.yaml", "--snapshot", "n.json", "--now", "2027-01-15T22:00:00Z")
    whole = {
        "values": {
            "now": "2027-01-15T22:00:00Z",
            "holdOff": "20s",
            "since": "2027-01-15T21:59:50Z",
            "until": "2027-01-15T22:00:10Z",
        },
        "items": [["NetworkReady", {"status": "True", "wanted": "True", "since": "2027-01-15T21:59:50Z"}]],
    }
    found = json.loads(run(*asked, "-o", "json")[1])
    assert [one["noted"] for one in (*found["rules"], *found["closest"]["rules"])] == [whole, whole]
    (rule,) = json.loads(run(*asked, "-o", "json", "--node", "new")[1])["node"]["filters"]
    assert rule["noted"] == whole


def test_a_pod_that_runs_is_judged_as_if_it_did_not(run: Run) -> None:
    _, out, _ = run("web", *FILES)
    assert "It is on t4-1; this shows where it could go now, with its own capacity there free." in out
    assert "3 of 5 nodes are possible" in out


def test_a_pod_of_another_scheduler_is_nobodys(run: Run) -> None:
    Path("c.json").write_text(
        json.dumps(listed(*NODES, pod("x", schedulerName="default-scheduler", schedulingGates=[{"name": "g"}])))
    )
    _, out, _ = run("x", *FILES)
    assert "No policy matches this pod." in out
    assert "It waits for its scheduling gates, g: until then no scheduler tries it." in out
    assert "No match: 2 policies of other schedulers or for similar reasons" in out


@pytest.mark.parametrize(
    ("asked", "said"),
    {
        "no such pod": (("pod/trian", "-n", "ml"), "there is no pod ml/trian in c.json: did you mean train?"),
        "elsewhere": (("web", "-n", "web"), "there is no pod web/web in c.json; there is one in ml: select it with -n"),
        "in two namespaces": (("train",), "there is a pod train in ml, web: select one with -n"),
        "no such node": (("web", "--node", "t4_1"), "there is no node 't4_1': did you mean t4-1?"),
        "no pod": (("node/t4-1",), "'node/t4-1' is not a pod: write pod/NAME, and its namespace as -n NAME"),
        "no name": (("pod/",), "'pod/' is not a pod: write pod/NAME"),
    }.values(),
)
def test_what_is_asked_wrongly_is_one_line(run: Run, asked: tuple[str, ...], said: str) -> None:
    code, out, err = run(*asked, *FILES)
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead explain: {said}")
    assert err.count("\n") == 1


def test_files_need_policies_and_ended_pods_are_not_explained(run: Run) -> None:
    code, _, err = run("web", "--snapshot", "c.json")
    assert (code, err) == (
        2,
        "fairlead explain: --snapshot files hold no policies: also give --policies FILE\n",
    )
    Path("c.json").write_text(json.dumps(listed(*NODES, pod("x", status={"phase": "Failed"}))))
    code, _, err = run("x", *FILES)
    assert (code, err) == (2, "fairlead explain: the pod ml/x has ended (Failed) and is not placed any more\n")


# What follows asks an API server.

PODS, NAMESPACE, LISTED = (
    "/api/v1/pods",
    "/api/v1/namespaces/ml",
    "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies",
)


def _live(text: str = POLICY, *, generation: int = 3, serving: int | None = 3) -> Object:
    made: Object = yaml.safe_load(text)
    made["metadata"] |= {"generation": generation, "uid": "u"}
    return made | {"status": {} if serving is None else {"servingGeneration": serving}}


def _unkinded(obj: Object) -> Object:
    """As in a list of the API server."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _cluster(**changes: object) -> dict[str, object]:
    there: dict[str, object] = {
        "/version": {"gitVersion": "v1.37.1"},
        "/api/v1/nodes": items(*map(_unkinded, NODES)),
        PODS: items(_unkinded(WEB), _unkinded(TRAIN)),
        "/api/v1/configmaps": items(),
        f"{NAMESPACE}/pods/train": TRAIN,
        NAMESPACE: namespace("ml", team="x"),
        "/api/v1/namespaces": items(namespace("ml", team="x")),
        LISTED: items(_live()),
    }
    return there | {globals().get(name, name): value for name, value in changes.items()}


@pytest.fixture
def ask(run: Run, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    def ask(answers: dict[str, object], *more: str, pod: str = "train") -> tuple[int, str, str]:
        with api_server(answers, tmp_path) as file:
            return run(pod, "-n", "ml", "--kubeconfig", str(file), *more)

    return ask


Ask = Callable[..., tuple[int, str, str]]


def test_a_live_pod_is_explained_by_the_policies_of_the_cluster(ask: Ask) -> None:
    code, out, err = ask(_cluster())
    assert (code, err) == (0, "")
    assert "2 of 5 nodes are possible" in out
    assert "Serving: gpu: generation 3, which replicas serve" in out


@pytest.mark.parametrize(
    ("policy", "want"),
    {
        "an older one serves": (_live(serving=2), "gpu: generation 3; replicas still serve generation 2"),
        "nobody has said": (
            _live(serving=None),
            "gpu: generation 3; its status does not say yet which generation is served",
        ),
        "it does not compile": (
            _live(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=2),
            "gpu: generation 3 does not compile, replicas still serve generation 2: spec.scores[0].expression",
        ),
        "nor has it ever": (
            _live(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=None),
            "gpu: generation 3 does not compile, its failurePolicy applies: spec.scores[0].expression",
        ),
    }.values(),
)
def test_which_generation_serves_is_said(ask: Ask, policy: Object, want: str) -> None:
    code, out, _ = ask(_cluster(LISTED=items(policy)))
    assert code == 0
    assert f"Serving: {want}" in out


def test_a_policy_that_never_compiled_refuses_and_one_that_did_is_not_guessed(ask: Ask) -> None:
    broken = POLICY.replace("free['cpu'] * 10.0", "fre['cpu']")
    assert "gpu: policy gpu does not compile" in ask(_cluster(LISTED=items(_live(broken, serving=None))))[1]
    _, out, _ = ask(_cluster(LISTED=items(_live(broken, serving=2))))
    assert "No policy matches this pod." in out
    assert "policy gpu does not compile" not in out


def test_what_runs_on_nodes_is_named_where_it_may_not_be_read_and_not_guessed(ask: Ask) -> None:
    code, out, _ = ask(_cluster(PODS=403))
    assert code == 0
    assert (
        "Note: pods on nodes are unknown, and free capacity is counted as if nodes were empty: pods is forbidden: "
        in out
    )
    assert "Note: not evaluated: gpu/room: it reads the pods on nodes." in out
    assert "Note: not evaluated: gpu/roomy: it reads the pods on nodes." in out
    assert "gpu/class: wrong class" in out


def test_a_namespace_that_may_not_be_read_leaves_out_what_asks_for_it(ask: Ask) -> None:
    by_namespace = POLICY.replace("spec:", "spec:\n  match: {namespaceSelector: {matchLabels: {team: x}}}", 1)
    assert "policies: gpu" in ask(_cluster(LISTED=items(_live(by_namespace))))[1]
    _, out, _ = ask(_cluster(LISTED=items(_live(by_namespace)), NAMESPACE=403))
    assert "Note: not evaluated: gpu as a whole: it reads the pod's namespace." in out
    assert "No policy matches this pod." in out


@pytest.mark.parametrize(
    ("changes", "said"),
    {
        "nodes": ({"/api/v1/nodes": 403}, "you may not list nodes, which this command needs: "),
        "policies": ({LISTED: 403}, "you may not list policies: "),
        "no such kind": ({LISTED: 404}, "this cluster has no CustomResourceDefinition of policies: "),
        "the pod, neither": ({PODS: 403, f"{NAMESPACE}/pods/train": 403}, "get pods ml/train: 403"),
        "no such pod": ({PODS: items(WEB), f"{NAMESPACE}/pods/train": 404}, "there is no pod ml/train in the cluster"),
        "no nodes": ({"/api/v1/nodes": items()}, "the cluster has no nodes"),
        "who asks is not known": ({"/version": 401}, "get version: 401"),
        "the version, neither": ({"/version": 403, "/api/v1/nodes": 403}, "you may not list nodes, "),
    }.values(),
)
def test_what_keeps_an_explanation_is_one_line(ask: Ask, changes: dict[str, object], said: str) -> None:
    code, out, err = ask({**_cluster(), **changes})
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead explain: {said}")
    assert err.count("\n") == 1


def test_policies_from_files_are_asked_about_a_live_pod(ask: Ask) -> None:
    code, out, _ = ask({**_cluster(), LISTED: 403}, "--policies", "p.yaml")
    assert code == 0
    assert "2 of 5 nodes are possible" in out
    assert "Served" not in out


def test_pods_that_wait_in_a_cluster_are_simulated(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = _cluster(PODS=items(*map(_unkinded, (WEB, TRAIN, pod("other", schedulerName="default-scheduler")))))
    with api_server(there, tmp_path) as file:
        live: list[Any] = ["--snapshot", "live", "--pods", "live", "--kubeconfig", str(file), "-o", "json"]
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in found["pods"]] == ["train"]
        files = ["--snapshot", "c.json", *live[2:]]
        assert main(["simulate", "--policies", "p.yaml", *files]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == found["pods"]
    with api_server({**there, PODS: items(_unkinded(WEB))}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == []
        assert main(["simulate", "--policies", "p.yaml", *live[:-2]]) == 0
        assert "No pod waits for a scheduler that these policies name." in capsys.readouterr().out
    with api_server({**there, PODS: 403}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 2
        assert "you may not list pods of all namespaces: " in capsys.readouterr().err
